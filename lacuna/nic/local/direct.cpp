// The paths mapped and kernel: the initiator does everything. A send takes the target's oldest posted receive out of the target's inbox,
// moves the bytes, and writes the completion back; the target only looks.
#include <algorithm>

#include "lacuna/nic/local/movers.hpp"
#include "lacuna/nic/local/queue_pair.hpp"

namespace lacuna::nic::local {
namespace {

// While this lives, the peer's deregistration waits for us. Entering is a full fence: either we see the key cleared, or the owner
// that cleared it sees us.
class Epoch {
 public:
  explicit Epoch(Counter& access) : access_(access) { access_.value.fetch_add(1, std::memory_order_seq_cst); }
  ~Epoch() { access_.value.fetch_add(1, std::memory_order_release); }
  Epoch(const Epoch&) = delete;
  Epoch& operator=(const Epoch&) = delete;

 private:
  Counter& access_;
};

class Direct final : public QueuePair {
 public:
  Direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring, Mover mover)
      : QueuePair(context, queue, options, std::move(limits), std::move(wiring)), mover_(mover) {}

  bool progress() override {
    if (failed()) return false;
    bool moved = receive();
    while (!failed() && !sends_.empty() && run(sends_.front())) moved = true;
    return moved;
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
    while (received_ != completed) {
      const RecvDone done = own_inbox().dones[received_++ % kRecvDepth];
      const bool sound = done.byte_len <= recvs_.front().total && done.status <= static_cast<std::uint32_t>(Status::retry_exc_err);
      const Status status = sound ? static_cast<Status>(done.status) : Status::rem_op_err;
      complete_recv(status, sound ? done.byte_len : 0);
      if (status != Status::success) return fail(Opcode::recv, status), true;
    }
    return true;
  }

  // True unless the request has to wait for a receive.
  bool run(const Work& work) {
    Status status = Status::loc_prot_err;
    if (local_access(work.list(), 0)) {
      if (work.opcode == Opcode::send) {
        const std::uint64_t posted = peer_inbox().posted.value.load(std::memory_order_acquire);
        if (posted == matched_) return false;
        status = posted - matched_ <= kRecvDepth ? send(work) : Status::rem_op_err;
      } else {
        const Sge target{work.remote_addr, static_cast<std::uint32_t>(work.total), work.rkey};
        status = move(work, {&target, 1}, kRightRemoteWrite);
      }
    }
    const Opcode opcode = work.opcode;
    complete_send(status);
    if (status != Status::success) fail(opcode, status);
    return true;
  }

  Status send(const Work& work) {
    const PostedRecv recv = peer_inbox().recvs[matched_ % kRecvDepth];  // a copy, which the peer cannot change under our hands
    if (recv.sges > kMaxSge) return Status::rem_op_err;
    const std::span<const Sge> target(recv.sg_list.data(), recv.sges);
    std::uint64_t room = 0;
    for (const Sge& sge : target) room += sge.length;
    if (room < work.total) return finish_recv(Status::loc_len_err, 0), Status::rem_inv_req_err;
    const Status status = move(work, target, kRightLocalWrite);
    if (status == Status::retry_exc_err) return status;
    if (status != Status::success) return finish_recv(Status::loc_prot_err, 0), Status::rem_op_err;
    finish_recv(Status::success, work.total);
    return status;
  }

  void finish_recv(Status status, std::uint64_t byte_len) {
    peer_inbox().dones[matched_ % kRecvDepth] = {static_cast<std::uint32_t>(status), byte_len};
    peer_inbox().completed.value.store(++matched_, std::memory_order_release);
  }

  // Checks the target's keys and moves, all inside one epoch.
  Status move(const Work& work, std::span<const Sge> target, std::uint32_t rights) {
    context_.busy();
    std::array<std::uint64_t, kMaxSge> arena_offsets{};
    const Epoch epoch(peer_inbox().access);
    if (peer_inbox().closed.value.load(std::memory_order_seq_cst) != 0) return Status::retry_exc_err;
    for (std::size_t i = 0; i < target.size(); ++i) {
      if (target[i].length == 0) continue;
      const std::optional<Grant> grant = check(peer().keys, target[i].lkey, target[i].addr, target[i].length, rights);
      if (!grant) return Status::rem_access_err;
      arena_offsets[i] = grant->arena_offset;
    }
    return mover_(peer(), work.list(), target, arena_offsets);
  }

  Mover mover_;
  std::uint64_t posted_ = 0;    // receives announced to the peer
  std::uint64_t received_ = 0;  // of them, completed
  std::uint64_t matched_ = 0;   // the peer's receives that our sends took
};

}  // namespace

std::unique_ptr<QueuePair> make_direct(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits,
                                       Wiring wiring) {
  const Mover mover = options.path == Path::mapped ? &move_mapped : &move_kernel;
  return std::make_unique<Direct>(context, queue, options, std::move(limits), std::move(wiring), mover);
}

}  // namespace lacuna::nic::local
