// What all paths share: the two queues, completions, errors. A path is one subclass that moves requests forward.
#pragma once

#include <array>
#include <deque>

#include "lacuna/nic/local/context.hpp"
#include "lacuna/nic/local/inbox.hpp"

namespace lacuna::nic::local {

// A copied work request.
struct Work {
  std::uint64_t wr_id = 0;
  Opcode opcode = Opcode::send;
  bool signaled = true;
  std::uint32_t sges = 0;
  std::uint32_t rkey = 0;
  std::uint64_t remote_addr = 0;
  std::uint64_t total = 0;  // bytes of the sg_list
  std::array<Sge, kMaxSge> sg_list;

  [[nodiscard]] std::span<const Sge> list() const { return {sg_list.data(), sges}; }
};

// Both ends' shares of a connection.
struct Wiring {
  SharedMemory mine;    // our inbox
  SharedMemory theirs;  // the peer's inbox
  std::shared_ptr<PeerMemory> peer;
};

class QueuePair : public nic::QueuePair {
 public:
  QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring);
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return number_; }
  [[nodiscard]] Path path() const override { return options_.path; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_send(const SendRequest& request) override;
  Result<void> post_recv(const RecvRequest& request) override;

  /// Moves whatever can move; true if something did.
  virtual bool progress() = 0;
  [[nodiscard]] const base::Error* fault() const override { return fault_ ? &*fault_ : nullptr; }
  /// The peer is gone, or has closed: nothing more will come.
  void lose_peer(std::string_view how);
  [[nodiscard]] bool peer_closed() const { return peer_inbox().closed.value.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] const PeerMemory& peer() const { return *wiring_.peer; }
  /// Waits until the peer, which was told before that it may no longer, is outside our memory, or dead. False, and said aloud, if it stays
  /// inside for a second: it is stopped, or broken, and may still write.
  bool drain() const;

 protected:
  /// Called with the request that was just posted at the back of recvs_.
  virtual void announce(const Work& recv) = 0;

  [[nodiscard]] Inbox& own_inbox() const { return inbox(wiring_.mine); }
  [[nodiscard]] Inbox& peer_inbox() const { return inbox(wiring_.theirs); }
  void complete_send(Status status);                          // the oldest send
  void complete_recv(Status status, std::uint64_t byte_len);  // the oldest receive
  /// Flushes both queues, once the peer is outside our memory; later posts complete with wr_flush_err.
  void fail(base::Error why);  // flushes both queues; later posts complete with wr_flush_err
  void fail(Opcode opcode, Status status);
  [[nodiscard]] bool failed() const { return fault_.has_value(); }
  [[nodiscard]] bool local_access(std::span<const Sge> list, std::uint32_t rights) const;

  Context& context_;
  std::deque<Work> sends_;
  std::deque<Work> recvs_;
  Wiring wiring_;

 private:
  CompletionQueue& queue_;
  QueuePairOptions options_;
  Limits limits_;
  std::uint32_t number_;
  std::optional<base::Error> fault_;
};

/// What a queue pair's peer wrote that no sound peer writes.
base::Error nonsense(std::string_view what);

std::unique_ptr<QueuePair> make_direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                       Wiring wiring);
std::unique_ptr<QueuePair> make_slots(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                      Wiring wiring);

}  // namespace lacuna::nic::local
