// queue_pair: two queue pairs of one connection and the messages between them. A request leaves through the sender's
// device when it is posted, in order; it arrives as an event at the peer, in order, takes a receive if it needs one,
// and lands; then both ends have their completions.
//
//   post ─▶ sends_ ─ pump() ─▶ Device::send ─▶ event: arrive() ─▶ Device::land ─▶ event: bytes are there, completions
//                                                 │ no receive: again after a multiple of not_ready
//                                                 └ a wrong key: both ends are in error
#pragma once

#include <deque>
#include <list>

#include "lacuna/nic/model/context.hpp"

namespace lacuna::nic::model {

/// A request on its way.
struct Message {
  Opcode opcode = Opcode::send;
  std::uint64_t wr_id = 0;
  std::uint64_t sequence = 0;
  bool signaled = true;
  bool fence = false;
  bool inlined = false;
  std::vector<Sge> list;
  std::vector<std::byte> inline_bytes;
  std::uint64_t remote_addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t imm_data = 0;
  std::int64_t total = 0;
  std::uint32_t bind_key = 0;
  Rights bind_rights;
  std::vector<Sge> bound;
  bool bind_inline = true;
  Time ready = 0;  ///< known to the device; of a read, then asked for at the target
  Pieces local;
  Pieces remote;                    ///< at the target, once it has accepted it
  const Context* source = nullptr;  ///< whose memory it comes from; of inline data nobody's
  Flight flight;
  bool launched = false;
  bool done = false;
  Status status = Status::success;
};
using Shipment = std::shared_ptr<Message>;

struct Receive {
  std::uint64_t wr_id = 0;
  std::uint64_t sequence = 0;
  std::vector<Sge> list;
  std::int64_t total = 0;
};

/// A queue of receives: of a queue pair, or of all of a hub's connections.
struct Receives {
  int depth = 0;
  std::deque<Receive> posted = {};
  std::uint64_t numbered = 0, retired = 0;
  /// Of a hub: connections with a message that waits for a receive, in the order in which they came
  std::deque<std::weak_ptr<Connection>> hungry = {};
  std::deque<int> failed = {};  ///< of a hub: processes at the other ends of connections, as they failed

  /// Errors: those of check_room().
  Result<void> post(Context& context, const RecvRequest& request);
  /// There may be a receive for the first of the hungry.
  void feed(Time now);
};

/// What outlives its handle while messages are under way.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(Context& context, CompletionQueue& queue, const QueuePairOptions& options, std::uint32_t number);
  /// Of a hub.
  Connection(Context& context, CompletionQueue& queue, const QueuePairOptions& options, std::uint32_t number,
             std::shared_ptr<Receives> receives);

  Result<void> post_chain(std::span<const SendRequest> chain);
  Result<void> post_recv(const RecvRequest& request);
  /// Once, of each end.
  void join(const std::shared_ptr<Connection>& peer);
  /// There is a receive for what waits. False: nothing waits.
  bool try_again(Time now);
  /// The handle is gone: nothing more comes of this end.
  void close();
  void retire(Opcode opcode, std::uint64_t sequence);
  void fail(base::Error why, Time now);

  [[nodiscard]] const base::Error* fault() const { return fault_ ? &*fault_ : nullptr; }
  [[nodiscard]] const Limits& limits() const { return shared_.profile.limits; }
  [[nodiscard]] std::uint32_t number() const { return number_; }

 private:
  [[nodiscard]] Shipment message_of(const SendRequest& request);
  void pump(Time now);
  void launch(const Shipment& message);
  Status run_on_keys(Message& message);
  void count(const Message& message) const;  ///< of what its NIC sends
  // At the target.
  void arrive(const Shipment& message, Connection& from);
  void drain(Connection& from);
  bool accept(const Shipment& message, Connection& from);
  void land(const Shipment& message, Connection& from);
  void refuse(const Shipment& message, Connection& from, Status theirs, Status ours);
  void answer_read(const Shipment& message, Connection& from);
  // At the initiator.
  void complete_send(const Shipment& message, Status status, Time time);
  void take_completions(Time now);
  void complete_receive(const Receive& receive, Status status, Opcode opcode, std::int64_t bytes, std::uint32_t imm, Time time);
  /// What is on its way from this end's memory is not read there any more.
  void let_go();
  /// Moves a message's bytes, if both ends still have the memory.
  void move(const Pieces& from, const Context* source, const Pieces& to, const Context* destination, std::int64_t bytes) const;
  void broken(Opcode opcode, Status status, Time now);
  void tell_peer(Time now);
  [[nodiscard]] bool usable() const { return context_ != nullptr && !fault_ && !stopped_; }
  [[nodiscard]] const Nic& nic() const { return shared_.profile.nic; }
  /// How long what needs no port takes to the other end.
  [[nodiscard]] Time flight(const Connection& to) const { return device_.flight(to.device_); }
  template <class F>
  void later(Time time, F f);

  Shared& shared_;
  Context* context_;  // null once closed
  CompletionQueue* queue_;
  QueuePairOptions options_;
  Device& device_;
  std::uint32_t number_;
  std::weak_ptr<Connection> peer_;
  // Lists, which take no memory as long as they are empty: a hub has many connections.
  std::list<Shipment> sends_;   // posted, not launched
  std::list<Shipment> flying_;  // launched, not completed
  std::shared_ptr<Receives> receives_;
  bool of_hub_ = false;
  std::list<Shipment> arrived_;        // here, in order, waiting for a receive
  std::shared_ptr<Connection> waits_;  // the first of them, for this sender to try again
  bool tries_ = false;                 // it will
  Time tried_ = 0;                     // when it did first
  Time landed_ = 0;                    // of what landed the last byte
  Time received_ = 0;                  // the last receive's completion
  bool stopped_ = false;               // a request failed; what is behind it does not run
  bool refused_ = false;               // one of the peer's: it will learn why
  bool failed_ = false;                // the first failure was told; what fails behind it was flushed
  int reads_ = 0;
  std::uint64_t sends_posted_ = 0, sends_retired_ = 0;
  std::optional<base::Error> fault_;
};

class QueuePair final : public nic::QueuePair {
 public:
  explicit QueuePair(std::shared_ptr<Connection> connection) : connection_(std::move(connection)) {}
  ~QueuePair() override { connection_->close(); }
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;
  [[nodiscard]] std::uint32_t number() const override { return connection_->number(); }
  [[nodiscard]] Path path() const override { return Path::wire; }
  [[nodiscard]] const Limits& limits() const override { return connection_->limits(); }
  Result<void> post_chain(std::span<const SendRequest> chain) override { return connection_->post_chain(chain); }
  Result<void> post_recv(const RecvRequest& request) override { return connection_->post_recv(request); }
  [[nodiscard]] const base::Error* fault() const override { return connection_->fault(); }

 private:
  std::shared_ptr<Connection> connection_;
};

}  // namespace lacuna::nic::model
