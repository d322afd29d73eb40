// The paths mapped and kernel: the initiator does everything. A send takes the target's oldest posted receive out of
// the target's inbox, moves the bytes, and writes the completion back; the target only looks.
//
// Requests run in batches: as many of the oldest as one epoch and one call of the mover may take. That is what a chain
// gains here.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/nic/local/movers.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

// An owner that takes memory away waits for a batch, so a batch is short: a few milliseconds at worst.
constexpr std::uint64_t kBatchBytes = 8 << 20;
constexpr std::size_t kBatchExtents = 1024;  // IOV_MAX

// While this lives, the peer waits for us before it takes memory away. Entering is a full fence: either we see the key
// cleared, or the owner that cleared it sees us.
class Epoch {
 public:
  explicit Epoch(Counter& access) : access_(access) { access_.value.fetch_add(1, std::memory_order_seq_cst); }
  ~Epoch() { access_.value.fetch_add(1, std::memory_order_release); }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

 private:
  Counter& access_;
};

// A word that says that what was written before it is there: it must not be seen first, so a batch begins with it,
// behind a fence.
bool announces(const Work& work) { return work.opcode == Opcode::write && work.total == sizeof(std::uint64_t); }

// How a request ended, for both ends.
struct Outcome {
  Status ours = Status::success;
  Status theirs = Status::success;  // of the receive that it took, if it took one
};

class Direct final : public QueuePair {
 public:
  Direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring, Mover mover)
      : QueuePair(context, queue, options, std::move(limits), std::move(wiring)), mover_(mover) {}

  bool progress() override {
    if (failed()) return false;
    bool moved = receive();
    while (!failed() && !sends_.empty() && run()) moved = true;
    return moved;
  }

  [[nodiscard]] std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const override {
    return path() == Path::mapped ? reach(peer(), addr, rkey, bytes) : nullptr;
  }

  [[nodiscard]] bool copies() const override { return path() == Path::kernel; }

  Result<void> copy(bool to_peer, std::span<const Sge> ours, std::span<const Sge> theirs) override {
    if (!copies()) return nic::QueuePair::copy(to_peer, ours, theirs);
    return copy_past_queues(peer(), to_peer, ours, theirs, copied_);
  }

 private:
  void announce(const Work& recv) override {
    PostedRecv& posted = own_inbox().recvs[posted_ % kRecvDepth];
    posted.sges = recv.sges;
    std::ranges::copy(recv.list(), posted.sg_list.begin());
    own_inbox().posted.value.store(++posted_, std::memory_order_release);
  }

  // Receives that the peer completed.
  bool receive() {
    const std::uint64_t completed = own_inbox().completed.value.load(std::memory_order_acquire);
    if (completed == received_) return false;
    if (completed - received_ > recvs_.size()) return fail(nonsense("more completions than there are receives")), true;
    while (!failed() && received_ != completed) {
      const RecvDone done = base::read_once(own_inbox().dones[received_++ % kRecvDepth]);
      const bool imm = done.opcode == static_cast<std::uint32_t>(Opcode::recv_imm);
      const std::uint64_t most = imm ? static_cast<std::uint64_t>(limits().max_message_bytes) : recvs_.front().total;
      const bool sound = done.byte_len <= most && done.status <= static_cast<std::uint32_t>(Status::retry_exc_err);
      const Status status = sound ? static_cast<Status>(done.status) : Status::rem_op_err;
      complete_recv(status, imm ? Opcode::recv_imm : Opcode::recv, sound ? done.byte_len : 0, done.imm_data);
      if (status != Status::success) fail(Opcode::recv, status);
    }
    return true;
  }

  // What one epoch takes.
  struct Batch {
    Direction direction = Direction::to_peer;
    std::uint64_t bytes = 0;
    std::size_t whole = 0;    // requests that it holds to their end
    std::uint64_t begun = 0;  // bytes of the one behind them
    std::uint64_t receives = 0;
    Outcome failed;  // of the one behind them, if that cannot be
  };

  // True unless the oldest request has to wait for a receive.
  bool run() {
    if (sends_.front().on_keys()) return conclude({run_on_keys(sends_.front())}), true;
    const std::uint64_t posted = peer_inbox().posted.value.load(std::memory_order_acquire);
    // Receiver not ready; what is wrong at this end shows all the same
    if (sends_.front().takes_receive() && posted == matched_) {
      ours_.clear();
      const Work& work = sends_.front();
      if (work.local(context_.keys(), work.moved, work.total - work.moved, 0, kBatchExtents, ours_)) return false;
      return conclude({Status::loc_prot_err}), true;
    }
    context_.busy();
    Batch batch;
    {
      const Epoch epoch(peer_inbox().access);
      if (peer_inbox().closed.value.load(std::memory_order_seq_cst) != 0) {
        batch.failed = {Status::retry_exc_err};
      } else {
        gather(batch, posted);
        const Status moved = ours_.empty() ? Status::success : mover_(peer(), batch.direction, ours_, theirs_);
        if (moved != Status::success && batch.whole + (batch.begun > 0 ? 1 : 0) > 1) {
          singly_ = batch.whole + 1;  // which one it was shows when each runs alone
          return true;
        }
        if (moved != Status::success) {
          const bool refused = sends_.front().opcode == Opcode::send && moved == Status::rem_op_err;
          batch = {.failed = {moved, refused ? Status::loc_prot_err : Status::success}};
        }
      }
    }
    for (; batch.whole > 0 && !failed(); --batch.whole) conclude({});
    if (failed()) return true;
    if (batch.failed.ours != Status::success) return conclude(batch.failed), true;
    if (batch.begun > 0) sends_.front().moved += batch.begun;
    return true;
  }

  void gather(Batch& batch, std::uint64_t posted) {
    ours_.clear();
    theirs_.clear();
    const bool reading = sends_.front().opcode == Opcode::read;
    batch.direction = reading ? Direction::from_peer : Direction::to_peer;
    for (; batch.whole < sends_.size() && batch.bytes < kBatchBytes && ours_.size() < kBatchExtents && theirs_.size() < kBatchExtents;
         ++batch.whole) {
      const Work& work = sends_[batch.whole];
      const std::uint64_t receive = matched_ + batch.receives;
      if (batch.whole > 0 && (singly_ > 0 || announces(work))) return;
      if (work.on_keys() || (work.opcode == Opcode::read) != reading || (work.takes_receive() && receive == posted)) return;
      const std::size_t ours = ours_.size();
      const std::size_t theirs = theirs_.size();
      const std::uint64_t left = work.total - work.moved;
      std::uint64_t bytes = std::min(left, kBatchBytes - batch.bytes);
      batch.failed = collect(work, bytes, posted, receive);
      if (batch.failed.ours != Status::success) {
        ours_.resize(ours);
        theirs_.resize(theirs);
        return;
      }
      batch.bytes += bytes;
      if (bytes < left) {
        batch.begun = bytes;
        return;
      }
      if (work.takes_receive()) ++batch.receives;
    }
  }

  // Adds the next bytes of a request to the batch, at most `bytes` and as many as both lists have room for, after
  // checking both ends' keys.
  Outcome collect(const Work& work, std::uint64_t& bytes, std::uint64_t posted, std::uint64_t receive) {
    const std::uint32_t local_rights = work.opcode == Opcode::read ? kRightLocalWrite : 0;
    const auto ours = work.local(context_.keys(), work.moved, bytes, local_rights, kBatchExtents, ours_);
    if (!ours) return {Status::loc_prot_err};
    std::optional<std::uint64_t> theirs;
    const std::size_t first = theirs_.size();
    if (work.opcode == Opcode::send) {
      if (posted - receive > kRecvDepth) return {Status::rem_op_err};
      const PostedRecv recv = base::read_once(peer_inbox().recvs[receive % kRecvDepth]);
      if (recv.sges > kMaxSge) return {Status::rem_op_err};
      const std::span<const Sge> target(recv.sg_list.data(), recv.sges);
      std::uint64_t room = 0;
      for (const Sge& sge : target) room += sge.length;
      if (room < work.total) return {Status::rem_inv_req_err, Status::loc_len_err};
      theirs = resolve(peer().keys(), target, work.moved, *ours, kRightLocalWrite, kBatchExtents, theirs_);
      if (!theirs) return {Status::rem_op_err, Status::loc_prot_err};
    } else {
      const Sge target{work.remote_addr, static_cast<std::uint32_t>(work.total), work.rkey};
      const std::uint32_t rights = work.opcode == Opcode::read ? kRightRemoteRead : kRightRemoteWrite;
      theirs = resolve(peer().keys(), {&target, 1}, work.moved, *ours, rights, kBatchExtents, theirs_);
      if (!theirs) return {Status::rem_access_err};
    }
    // Memory that is registered but cannot be reached on this path.
    const std::span<const Extent> added = std::span(theirs_).subspan(first);
    if (path() == Path::mapped && !std::ranges::all_of(added, [&](const Extent& e) { return in_arena(peer(), e); }))
      return work.opcode == Opcode::send ? Outcome{Status::rem_op_err, Status::loc_prot_err} : Outcome{Status::rem_access_err};
    bytes = *theirs;
    for (std::uint64_t extra = *ours - *theirs; extra > 0;) {
      const std::uint64_t cut = std::min(extra, ours_.back().length);
      ours_.back().length -= cut;
      extra -= cut;
      if (ours_.back().length == 0) ours_.pop_back();
    }
    return {};
  }

  // Completes the oldest request, and the receive that it took.
  void conclude(Outcome outcome) {
    const Work& work = sends_.front();
    const Opcode opcode = work.opcode;
    if (work.takes_receive() && (outcome.ours == Status::success || outcome.theirs != Status::success)) {
      const Opcode recv = opcode == Opcode::send ? Opcode::recv : Opcode::recv_imm;
      peer_inbox().dones[matched_ % kRecvDepth] = {static_cast<std::uint32_t>(outcome.theirs), static_cast<std::uint32_t>(recv),
                                                   outcome.theirs == Status::success ? work.total : 0, work.imm_data};
      peer_inbox().completed.value.store(++matched_, std::memory_order_release);
    }
    if (singly_ > 0) --singly_;
    complete_send(outcome.ours);
    if (outcome.ours != Status::success) fail(opcode, outcome.ours);
  }

  Mover mover_;
  std::vector<Extent> ours_, theirs_;  // of a batch
  CopyLists copied_;
  std::size_t singly_ = 0;      // so many requests get a batch of their own
  std::uint64_t posted_ = 0;    // receives announced to the peer
  std::uint64_t received_ = 0;  // of them, completed
  std::uint64_t matched_ = 0;   // the peer's receives that our requests took
};

}  // namespace

std::unique_ptr<QueuePair> make_direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                       Wiring wiring) {
  const Mover mover = options.path == Path::mapped ? &move_mapped : &move_kernel;
  return std::make_unique<Direct>(context, queue, options, std::move(limits), std::move(wiring), mover);
}

}  // namespace lacuna::nic::local
