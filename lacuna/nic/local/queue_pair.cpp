#include "lacuna/nic/local/queue_pair.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sched.h>

namespace lacuna::nic::local {
namespace {

constexpr int kSpins = 512;  // of a wait for a peer; then it may need this CPU

}  // namespace

QueuePair::QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring)
    : context_(context),
      sends_(options.max_send_wr),
      recvs_(options.max_recv_wr),
      wiring_(std::move(wiring)),
      queue_(queue),
      options_(options),
      limits_(std::move(limits)),
      number_(context.next_number()) {
  constexpr std::size_t kMostly = 8;  // a ring of short messages, and those of a stream
  kept_.reserve(kMostly);
  context_.make_room();
  queue_.attach(*this);
  context_.enroll(*this);
}

QueuePair::~QueuePair() {
  own_inbox().closed.value.store(1, std::memory_order_seq_cst);
  drain();
  own_inbox().gone.value.store(1, std::memory_order_release);
  queue_.detach(*this);
  context_.withdraw(*this);
  if (!kept_.empty()) context_.keep({std::move(kept_), std::move(wiring_)});
}

void QueuePair::complete_send(Status status) {
  const Work& work = sends_.front();
  const Completion completion{.wr_id = work.wr_id, .status = status, .opcode = work.opcode, .qp_num = number_};
  const bool told = work.signaled || status != Status::success;
  const std::uint64_t sequence = work.sequence;
  sends_.pop();
  if (told) queue_.push(*this, sequence, completion);
}

void QueuePair::complete_recv(Status status, Opcode opcode, std::uint64_t byte_len, std::uint32_t imm_data) {
  const Work& work = recvs_.front();
  const Completion completion{
      .wr_id = work.wr_id, .status = status, .opcode = opcode, .byte_len = byte_len, .qp_num = number_, .imm_data = imm_data};
  const std::uint64_t sequence = work.sequence;
  recvs_.pop();
  queue_.push(*this, sequence, completion);
}

void QueuePair::retire(Opcode opcode, std::uint64_t sequence) {
  (opcode == Opcode::recv || opcode == Opcode::recv_imm ? recvs_retired_ : sends_retired_) = sequence;
}

void QueuePair::fail(base::Error why) {
  if (failed()) return;
  fault_ = std::move(why);
  own_inbox().closed.value.store(1, std::memory_order_seq_cst);
  drain();  // what is flushed is the user's again
  while (!sends_.empty()) complete_send(Status::wr_flush_err);
  while (!recvs_.empty()) complete_recv(Status::wr_flush_err);
}

void QueuePair::fail(Opcode opcode, Status status) {
  if (status == Status::retry_exc_err)
    return fail({base::Code::peer_lost, fmt::format("the peer (process {}) closed the connection, or died", wiring_.peer->process)});
  fail({base::Code::transfer,
        fmt::format("a {} on path {} completed with {}", opcode_name(opcode), path_name(path()), status_name(status))});
}

bool QueuePair::drain(std::int64_t wait_ns) const {
  const std::atomic<std::uint64_t>& access = own_inbox().access.value;
  const std::uint64_t inside = access.load(std::memory_order_seq_cst);
  const std::int64_t deadline = base::now_ns() + wait_ns;
  pollfd dead{wiring_.peer->pidfd.get(), POLLIN, 0};
  int spins = 0;
  while (inside % 2 == 1 && access.load(std::memory_order_acquire) == inside && ::poll(&dead, 1, 0) == 0) {
    if (base::now_ns() > deadline) {
      if (wait_ns >= kDrain)
        base::log(base::Level::error,
                  fmt::format("process {} stays inside memory that is taken from it; it is stopped, or broken", wiring_.peer->process));
      return false;
    }
    base::cpu_relax();
    if (++spins > kSpins) sched_yield();
  }
  return true;
}

void QueuePair::lose_peer(std::string_view how) {
  while (!failed() && progress()) {  // what the peer finished before it went
  }
  if (failed()) return;
  if (!sends_.empty()) complete_send(Status::retry_exc_err);
  fail({base::Code::peer_lost, fmt::format("the peer (process {}) {}", wiring_.peer->process, how)});
}

base::Error nonsense(std::string_view what) { return {base::Code::malformed, fmt::format("the peer wrote {} into shared memory", what)}; }

}  // namespace lacuna::nic::local
