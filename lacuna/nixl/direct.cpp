#include "lacuna/nixl/direct.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace lacuna::nixl {
namespace {

constexpr int kChain = 32;     // requests with one doorbell, as multi_write has them (lacuna/method/multi_write.cpp)
constexpr int kQueue = 128;    // nic::QueuePairOptions
constexpr int kReceives = 16;  // none are posted, but a queue pair has a queue for them
// Of a request: a CPU that copies it is back in a call after a millisecond, and the cost of more requests is nothing.
constexpr std::int64_t kMostBytes = 4 << 20;

std::optional<nic::Path> passive_path(const nic::Limits& limits) {
  const auto found = std::ranges::find_if(
      limits.paths, [](const nic::PathInfo& path) { return path.available && path.passive_target && !path.shared_only; });
  return found == limits.paths.end() ? std::nullopt : std::optional(found->path);
}

bool by_device(const nic::Limits& limits, nic::Path path) {
  const nic::PathInfo* info = limits.path(path);
  return info != nullptr && info->mover == nic::Mover::device;
}

// Whether both ends say yes.
Result<bool> agree(nic::Bootstrap& bootstrap, std::uint8_t mine, std::int64_t timeout_ns) {
  nic::Hello hello;
  hello.bytes.push_back(static_cast<std::byte>(mine));
  const nic::Hello theirs = LACUNA_TRY(bootstrap.exchange(hello, timeout_ns));
  return mine != 0 && theirs.bytes.size() == 1 && theirs.bytes.front() == static_cast<std::byte>(mine);
}

}  // namespace

Direct::Direct(nic::Context& context, std::unique_ptr<nic::CompletionQueue> queue, std::unique_ptr<nic::QueuePair> queue_pair)
    : context_(context),
      queue_(std::move(queue)),
      queue_pair_(std::move(queue_pair)),
      most_bytes_(std::min(queue_pair_->limits().max_message_bytes, kMostBytes)),
      most_at_once_(by_device(queue_pair_->limits(), queue_pair_->path()) ? INT64_MAX : kMostBytes),
      room_(std::min(kQueue, context.limits().max_send_wr)) {}

Result<std::unique_ptr<Direct>> Direct::connect(nic::Context& context, nic::Bootstrap& bootstrap, std::int64_t timeout_ns) {
  const std::optional<nic::Path> path = passive_path(context.limits());
  const auto said = path ? static_cast<std::uint8_t>(1 + static_cast<int>(*path)) : std::uint8_t{0};
  if (!LACUNA_TRY(agree(bootstrap, said, timeout_ns))) return nullptr;
  const int sends = std::min(kQueue, context.limits().max_send_wr);
  auto queue = LACUNA_TRY(context.create_completion_queue(sends + kReceives));
  auto made = context.connect(bootstrap, *queue, {.path = path.value_or(nic::Path::wire), .max_send_wr = sends, .max_recv_wr = kReceives});
  if (!LACUNA_TRY(agree(bootstrap, made ? 1 : 0, timeout_ns))) return nullptr;
  return std::unique_ptr<Direct>(new Direct(context, std::move(queue), std::move(*made)));
}

Result<Direct::Job> Direct::Job::create(bool writes, const Layout& ours, Side own, const Layout& theirs, Side there) {
  return Job(writes, LACUNA_TRY(layout::Intersection::of(ours, theirs)), own, there);
}

Result<void> Direct::advance(Job& job) {
  if (!failed_)
    if (Result<void> moved = poll(); !moved) failed_ = std::move(moved).error();
  if (!failed_)
    if (Result<void> posted = post(job); !posted) failed_ = std::move(posted).error();
  if (failed_) return std::unexpected(*failed_);
  return {};
}

// Requests complete in the order of posting, and the last of each chain says so.
Result<void> Direct::poll() {
  std::array<nic::Completion, kChain> completions;
  const int came = context_.poll(*queue_, completions);
  for (const nic::Completion& completion : std::span(completions).first(static_cast<std::size_t>(came))) {
    if (completion.status != nic::Status::success) return std::unexpected(why(completion.status));
    const Chain chain = chains_.front();
    chains_.pop_front();
    room_ += chain.requests;
    chain.job->waiting_ -= chain.requests;
    ++completed_;
  }
  if (queue_pair_->fault() != nullptr) return std::unexpected(*queue_pair_->fault());
  return {};
}

base::Error Direct::why(nic::Status status) const {
  if (status == nic::Status::rem_access_err)
    return {base::Code::invalid_argument, "the peer refuses the access: it has deregistered this memory"};
  const base::Error* fault = queue_pair_->fault();
  return {
      fault != nullptr ? fault->code : base::Code::transfer,
      fmt::format("a request failed ({}): {}", nic::status_name(status), fault != nullptr ? fault->message : "the device says no more")};
}

Result<void> Direct::post(Job& job) {
  for (std::int64_t bytes = 0; !job.pieces_.done() && room_ > 0 && bytes < most_at_once_;) {
    std::array<nic::Sge, kChain> own;
    std::array<nic::SendRequest, kChain> requests;
    int count = 0;
    for (; count < std::min(kChain, room_) && !job.pieces_.done() && bytes < most_at_once_; ++count) {
      const layout::Piece piece = job.pieces_.next(most_bytes_);
      const auto at = static_cast<std::size_t>(count);
      bytes += piece.length;
      own[at] = {job.own_.addr + static_cast<std::uint64_t>(piece.src), static_cast<std::uint32_t>(piece.length), job.own_.key};
      requests[at] = {.opcode = job.writes_ ? nic::Opcode::write : nic::Opcode::read,
                      .sg_list = {&own[at], 1},
                      .remote_addr = job.there_.addr + static_cast<std::uint64_t>(piece.dst),
                      .rkey = job.there_.key,
                      .signaled = false};
    }
    requests[static_cast<std::size_t>(count - 1)].signaled = true;
    LACUNA_TRY(queue_pair_->post_chain(std::span(requests).first(static_cast<std::size_t>(count))));
    room_ -= count;
    job.waiting_ += count;
    chains_.push_back({&job, count});
  }
  return {};
}

}  // namespace lacuna::nixl
