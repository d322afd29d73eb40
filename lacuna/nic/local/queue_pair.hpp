// What all paths share: the two queues, completions, errors. A path is one subclass that moves requests forward.
#pragma once

#include "lacuna/nic/local/context.hpp"
#include "lacuna/nic/local/work.hpp"

namespace lacuna::nic::local {

/// So long memory's end waits for a peer that is in the middle of it: copies take milliseconds, and a peer that gets no
/// CPU is not broken.
inline constexpr std::int64_t kDrain = 60'000'000'000;  // ns

class QueuePair : public nic::QueuePair {
 public:
  QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring);
  ~QueuePair() override;
  QueuePair(const QueuePair&) = delete;
  QueuePair& operator=(const QueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return number_; }
  [[nodiscard]] Path path() const override { return options_.path; }
  [[nodiscard]] const Limits& limits() const override { return limits_; }
  Result<void> post_chain(std::span<const SendRequest> chain) override;
  Result<void> post_recv(const RecvRequest& request) override;

  /// Moves whatever can move; true if something did.
  virtual bool progress() = 0;
  [[nodiscard]] const base::Error* fault() const override { return fault_ ? &*fault_ : nullptr; }
  /// Flushes both queues, once the peer is outside our memory; later posts complete with wr_flush_err.
  void fail(base::Error why);
  /// The completion of request `sequence` was polled: its place, and those before it, are free.
  void retire(Opcode opcode, std::uint64_t sequence);
  /// The peer is gone, or has closed: nothing more will come.
  void lose_peer(std::string_view how);
  [[nodiscard]] bool peer_closed() const { return peer_inbox().closed.value.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] const PeerMemory& peer() const { return *wiring_.peer; }
  void keep(const SharedBuffer& memory) override try { kept_.push_back(memory); } catch (const std::bad_alloc&) {
    stay_for_good(memory);
  }
  /// Waits until the peer, which was told before that it may no longer, is outside our memory, or dead. False if it
  /// stays inside so long: it is stopped, or broken, and may still write. After kDrain the log says so.
  bool drain(std::int64_t wait_ns = kDrain) const;

 protected:
  /// Called with the request that was just posted at the back of recvs_.
  virtual void announce(const Work& recv) = 0;

  [[nodiscard]] Inbox& own_inbox() const { return inbox(wiring_.mine); }
  [[nodiscard]] Inbox& peer_inbox() const { return inbox(wiring_.theirs); }
  void complete_send(Status status);  // the oldest send
  /// The oldest receive; `opcode` is recv or recv_imm.
  void complete_recv(Status status, Opcode opcode = Opcode::recv, std::uint64_t byte_len = 0, std::uint32_t imm_data = 0);
  void fail(Opcode opcode, Status status);
  [[nodiscard]] bool failed() const { return fault_.has_value(); }
  /// Executes a bind or invalidate.
  Status run_on_keys(const Work& work) {
    return work.opcode == Opcode::bind ? context_.bind(*work.binding) : context_.invalidate(work.rkey);
  }

  Context& context_;
  WorkQueue sends_;
  WorkQueue recvs_;
  Wiring wiring_;

 private:
  CompletionQueue& queue_;
  QueuePairOptions options_;
  Limits limits_;
  std::uint32_t number_;
  std::uint64_t sends_posted_ = 0, sends_retired_ = 0;
  std::uint64_t recvs_posted_ = 0, recvs_retired_ = 0;
  std::optional<base::Error> fault_;
  std::vector<SharedBuffer> kept_;  // with room for what most channels have
};

/// What a queue pair's peer wrote that no sound peer writes.
base::Error nonsense(std::string_view what);

std::unique_ptr<QueuePair> make_direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                       Wiring wiring);
std::unique_ptr<QueuePair> make_slots(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                      Wiring wiring);

}  // namespace lacuna::nic::local
