// A reliable connection, of two endpoints: one for data, one for what both ends say (said.hpp).
//
// Requests wait in a ring until they may start: until the peer has posted a receive, has told what the key stands for,
// and the provider has room. Completions are given out in the order of posting, whatever the provider's order is.
//
//   posted ─▶ started ─▶ done ─▶ polled
//
//   queue_pair.cpp  posting, completions, the end      requests.cpp  what starts      peer.cpp  what the peer says
#pragma once

#include <deque>
#include <set>
#include <unordered_map>
#include <vector>

#include "lacuna/nic/ofi/context.hpp"
#include "lacuna/nic/ofi/control.hpp"
#include "lacuna/nic/ofi/remote_keys.hpp"
#include "lacuna/nic/ofi/usage.hpp"

namespace lacuna::nic::ofi {

class QueuePair final : public nic::QueuePair {
 public:
  QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options);
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return number_; }
  [[nodiscard]] Path path() const override { return Path::wire; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const SendRequest> chain) override;
  Result<void> post_recv(const RecvRequest& request) override;
  [[nodiscard]] const base::Error* fault() const override;

  // For connect.cpp.
  struct Ends {
    Owned<fid_eq> events;  // of both endpoints, which go first
    Endpoint data;
    Endpoint talk;
  };
  Result<void> make_control();
  [[nodiscard]] Control& control() { return *control_; }
  [[nodiscard]] CompletionQueue& queue() { return queue_; }
  Ends& ends() { return ends_; }
  /// The peer's process, where the operating system vouches for it (Hello::process): its end is noticed.
  void watch(std::int64_t process);
  /// The peer is connected, too, and is greeted.
  void open(Limits limits);
  /// Both ends have greeted one another: some providers connect only then, by both ends' polls.
  [[nodiscard]] bool greeted() const { return (heard_ && control_->quiet()) || end_; }

  // For the completion queue.
  void take(Operation::Kind kind, std::uint64_t number, const Outcome& outcome);
  /// Starts what may start, and gives out what is done.
  void advance();

  // For the context.
  /// Looks whether the peer is gone, of which a provider may say nothing by itself.
  void look();
  /// Asks the peer to let go of a region; false: it was never told of it.
  bool revoke(std::uint32_t key);
  /// It has not, and may be writing there.
  [[nodiscard]] bool reaches(std::uint32_t key) const { return !fault_ && revoking_.contains(key) && (!usage_ || usage_->set()); }

 private:
  struct Send {
    std::uint64_t wr_id = 0;
    Opcode opcode = Opcode::send;
    bool signaled = true, fence = false, inlined = false;
    std::uint32_t imm_data = 0, rkey = 0;
    std::uint64_t remote_addr = 0;
    std::vector<Sge> list;
    std::vector<std::byte> bytes;  // inline
    bool asks = true;              // the provider says when it has arrived; else a later one that arrived says so
    bool wrote = false;            // of a write with immediate, the write is under way
    bool done = false;
    int flying = 0;  // operations
    Status status = Status::success;
  };
  struct Receive {
    std::uint64_t wr_id = 0;
    std::vector<Sge> list;
    std::uint64_t takes = 0;  // bytes
    bool spoiled = false;     // this end's memory may not be reached so: an error once a message with bytes comes
    bool done = false;
    bool awaits_length = false;  // the message is here, and the length of its write is still to be said
    Status status = Status::success;
    Completion completion;
  };
  // What the peer's receives up to a number take.
  struct Room {
    std::uint64_t count;
    std::uint64_t bytes;
    bool spoiled;
  };
  // An operation of a request that the provider says nothing of unless it fails.
  struct Silent {
    std::uint64_t number;
    Operation* operation;
  };
  /// Why the connection ends, and what the first request in flight is told.
  struct End {
    Status send;
    Status receive;
    base::Error why;
    std::uint32_t to_say;      // of bye; kSayNothing
    std::uint64_t behind = 0;  // receives that get their message first
  };
  static constexpr std::uint32_t kSayNothing = ~std::uint32_t{0};
  static constexpr std::uint32_t kBroken = 0x100;  // of bye: this end does not know why its data endpoint failed

  Send& send_at(std::uint64_t number) { return sends_[number % sends_.size()]; }
  Receive& receive_at(std::uint64_t number) { return receives_[number % receives_.size()]; }

  // requests.cpp
  void start_sends();
  void start_receives();
  bool start(Send& request, std::uint64_t number);
  bool may_start(const Send& request);
  bool find_memory(Send& request, Pieces& pieces, RemoteRegion*& region);
  void refuse(Send& request, Status status);
  bool post(Send& request, std::uint64_t number, const Pieces& pieces, RemoteRegion* region);
  bool posted(Send& request, std::uint64_t number, long returned, Operation* operation, bool asks);
  [[nodiscard]] bool follows(std::uint64_t number);
  void announce_receives();
  bool fits(Send& request, std::uint64_t bytes);
  bool set_word(Usage& usage, bool set);

  // peer.cpp
  void hear(const Said& message);
  void tell(std::uint32_t key);
  void let_go(std::uint32_t key, bool done);
  void credit(const Said& message);
  void length(const Said& message);
  void farewell(const Said& message);
  void say(const Said& message);

  // queue_pair.cpp
  void take_send(Operation::Kind kind, std::uint64_t number, const Outcome& outcome);
  bool was_silent(Operation::Kind kind, std::uint64_t number);
  void arrived_before(std::uint64_t number);
  void over(std::uint64_t number, bool remote);
  void take_receive(std::uint64_t number, const Outcome& outcome);
  void deliver();
  void deliver_receives();
  void settle();
  void linger();
  void lost();
  void fail(End end);
  void close(Endpoint& endpoint);
  [[nodiscard]] bool reaches_what_goes(const Send& request);
  void flush_send(std::uint64_t number, Status status);
  void flush_receive(std::uint64_t number, Status status);

  Context& context_;
  CompletionQueue& queue_;
  QueuePairOptions options_;
  Limits limits_;
  std::uint32_t number_;
  std::unique_ptr<Control> control_;
  std::optional<Usage> usage_;  // none where a provider's regions end at once
  Ends ends_;
  RemoteKeys remote_;
  base::Fd peer_;  // readable once the peer's process has ended; none: nobody knows which it is
  bool opened_ = false;
  bool heard_ = false;  // anything of the peer

  std::vector<Send> sends_;  // by number, modulo the depth
  std::vector<Receive> receives_;
  std::uint64_t sends_posted_ = 0, sends_started_ = 0, sends_done_ = 0, sends_retired_ = 0;
  std::uint64_t receives_posted_ = 0, receives_started_ = 0, receives_done_ = 0;
  std::deque<Silent> silent_;  // in the order of posting
  std::uint64_t flying_ = 0, reads_flying_ = 0;
  std::uint64_t answers_ = 0;                // that the peer's provider owes for what is flying, but for reads
  std::uint64_t messages_ = 0, credit_ = 0;  // that were started, and that the peer has posted receives for
  std::deque<Room> room_;
  std::unordered_map<std::uint64_t, std::uint64_t> lengths_;  // of writes whose message is not here yet
  std::uint64_t credit_said_ = 0;
  bool refused_ = false;    // a request has failed: none behind it starts
  bool data_dead_ = false;  // operations of the data endpoint fail
  bool asked_why_ = false;
  std::set<std::uint32_t> told_, revoking_;  // keys of this end that the peer knows, and is to let go of
  std::optional<End> end_;                   // once what was done before has been given out
  std::optional<base::Error> fault_;
};

/// What a failed request means to a person.
[[nodiscard]] base::Error cause_of(Status status);

}  // namespace lacuna::nic::ofi
