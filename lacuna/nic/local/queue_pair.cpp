#include "lacuna/nic/local/queue_pair.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <utility>

namespace lacuna::nic::local {
namespace {

constexpr std::int64_t kDrain = 1'000'000'000;  // ns for a peer to leave our memory; a copy takes far less

Result<Work> copy(std::span<const Sge> list, const Limits& limits, std::size_t outstanding, int depth, const char* queue) {
  if (list.size() > static_cast<std::size_t>(limits.max_sge)) {
    return base::fail(base::Code::limit, fmt::format("an sg_list of {} entries; this queue pair takes {}", list.size(), limits.max_sge));
  }
  if (std::cmp_greater_equal(outstanding, depth)) {
    return base::fail(base::Code::limit, fmt::format("{} requests are outstanding in the {} queue; it takes no more", outstanding, queue));
  }
  Work work;
  work.sges = static_cast<std::uint32_t>(list.size());
  std::ranges::copy(list, work.sg_list.begin());
  for (const Sge& sge : list) work.total += sge.length;
  if (std::cmp_greater(work.total, limits.max_message_bytes)) {
    return base::fail(base::Code::limit,
                      fmt::format("a message of {} bytes; this queue pair takes {}", work.total, limits.max_message_bytes));
  }
  return work;
}

}  // namespace

QueuePair::QueuePair(Context& context, CompletionQueue& queue, const QueuePairOptions& options, Limits limits, Wiring wiring)
    : context_(context),
      wiring_(std::move(wiring)),
      queue_(queue),
      options_(options),
      limits_(std::move(limits)),
      number_(context.next_number()) {
  context_.enroll(*this);
  queue_.attach(*this, options_.max_send_wr + options_.max_recv_wr);
}

QueuePair::~QueuePair() {
  own_inbox().closed.value.store(1, std::memory_order_seq_cst);
  drain();
  queue_.detach(*this, options_.max_send_wr + options_.max_recv_wr);
  context_.withdraw(*this);
}

Result<void> QueuePair::post_send(const SendRequest& request) {
  if (request.opcode == Opcode::recv) return base::fail(base::Code::invalid_argument, "a send queue takes send and write");
  Work work = LACUNA_TRY(copy(request.sg_list, limits_, sends_.size(), options_.max_send_wr, "send"));
  context_.busy();
  work.wr_id = request.wr_id;
  work.opcode = request.opcode;
  work.signaled = request.signaled;
  work.rkey = request.rkey;
  work.remote_addr = request.remote_addr;
  sends_.push_back(work);
  if (failed()) return complete_send(Status::wr_flush_err), Result<void>{};
  progress();
  return {};
}

Result<void> QueuePair::post_recv(const RecvRequest& request) {
  Work work = LACUNA_TRY(copy(request.sg_list, limits_, recvs_.size(), options_.max_recv_wr, "receive"));
  context_.busy();
  work.wr_id = request.wr_id;
  work.opcode = Opcode::recv;
  recvs_.push_back(work);
  if (failed()) return complete_recv(Status::wr_flush_err, 0), Result<void>{};
  announce(recvs_.back());
  return {};
}

void QueuePair::complete_send(Status status) {
  const Work& work = sends_.front();
  if (work.signaled || status != Status::success) queue_.push({work.wr_id, status, work.opcode, 0, number_});
  sends_.pop_front();
}

void QueuePair::complete_recv(Status status, std::uint64_t byte_len) {
  queue_.push({recvs_.front().wr_id, status, Opcode::recv, byte_len, number_});
  recvs_.pop_front();
}

void QueuePair::fail(base::Error why) {
  fault_ = std::move(why);
  own_inbox().closed.value.store(1, std::memory_order_seq_cst);
  drain();  // what is flushed is the user's again
  while (!sends_.empty()) complete_send(Status::wr_flush_err);
  while (!recvs_.empty()) complete_recv(Status::wr_flush_err, 0);
}

void QueuePair::fail(Opcode opcode, Status status) {
  if (status == Status::retry_exc_err)
    return fail({base::Code::peer_lost, fmt::format("the peer (process {}) closed the connection, or died", wiring_.peer->process)});
  static constexpr std::string_view names[] = {"send", "write", "receive"};
  fail({base::Code::transfer,
        fmt::format("a {} on path {} completed with {}", names[static_cast<int>(opcode)], path_name(path()), status_name(status))});
}

bool QueuePair::drain() const {
  const std::atomic<std::uint64_t>& access = own_inbox().access.value;
  const std::uint64_t inside = access.load(std::memory_order_seq_cst);
  const std::int64_t deadline = base::now_ns() + kDrain;
  pollfd dead{wiring_.peer->pidfd.get(), POLLIN, 0};
  while (inside % 2 == 1 && access.load(std::memory_order_acquire) == inside && ::poll(&dead, 1, 0) == 0) {
    if (base::now_ns() > deadline) {
      base::log(base::Level::error,
                fmt::format("process {} stays inside memory that is taken from it; it is stopped, or broken", wiring_.peer->process));
      return false;
    }
    base::cpu_relax();
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

bool QueuePair::local_access(std::span<const Sge> list, std::uint32_t rights) const {
  for (const Sge& sge : list) {
    if (sge.length != 0 && !check(context_.keys(), sge.lkey, sge.addr, sge.length, rights)) return false;
  }
  return true;
}

}  // namespace lacuna::nic::local
