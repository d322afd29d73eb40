#include "lacuna/nic/ofi/control.hpp"

#include <fmt/format.h>

#include <cstring>

#include "lacuna/nic/ofi/context.hpp"

namespace lacuna::nic::ofi {
namespace {

constexpr std::size_t kMostWaiting = 4096;  // more than an honest peer's requests can ask for

}  // namespace

Result<std::unique_ptr<Control>> Control::create(Context& context, QueuePair& owner, CompletionQueue& queue) {
  RegisteredBuffer memory =
      LACUNA_TRY(RegisteredBuffer::create(context, 2 * kSlots * sizeof(Said), {.remote_write = false, .remote_read = false}));
  return std::make_unique<Control>(context, owner, queue, std::move(memory));
}

Control::Control(Context& context, QueuePair& owner, CompletionQueue& queue, RegisteredBuffer memory)
    : context_(context), owner_(owner), queue_(queue), memory_(std::move(memory)) {
  for (std::uint64_t slot = 0; slot < kSlots; ++slot) free_.push_back(slot);
}

Result<void> Control::open(Endpoint& endpoint) {
  endpoint_ = &endpoint;
  const Library& library = context_.provider().library();
  Pieces pieces;
  const Sge all = memory_.sge(0, static_cast<std::int64_t>(memory_.buffer.size()));
  if (!context_.regions().resolve({&all, 1}, true, *endpoint.endpoint, pieces))
    return std::unexpected(failure(library, "registering memory of the control endpoint", -FI_ENOMEM));
  desc_ = pieces.desc.front();
  for (std::uint64_t slot = kSlots; slot < 2 * kSlots; ++slot) {
    if (!post_receive(slot)) return std::unexpected(failure(library, "posting a receive of the control endpoint", -FI_EAGAIN));
  }
  return {};
}

bool Control::post_receive(std::uint64_t slot) {
  Operation* operation = queue_.take(owner_, Operation::Kind::hear, slot);
  const iovec iov{at(slot), sizeof(Said)};
  const fi_msg message{&iov, &desc_, 1, endpoint_->peer, &operation->provider, 0};
  if (fi_recvmsg(endpoint_->endpoint.get(), &message, FI_COMPLETION) == 0) return true;
  queue_.give_back(operation);
  return false;
}

bool Control::post_send(std::uint64_t slot) {
  Operation* operation = queue_.take(owner_, Operation::Kind::say, slot);
  const iovec iov{at(slot), sizeof(Said)};
  const fi_msg message{&iov, &desc_, 1, endpoint_->peer, &operation->provider, 0};
  if (fi_sendmsg(endpoint_->endpoint.get(), &message, FI_COMPLETION) == 0) return true;
  queue_.give_back(operation);
  return false;
}

Result<void> Control::say(const Said& message) {
  if (waiting_.size() >= kMostWaiting)
    return base::fail(base::Code::limit, fmt::format("{} answers wait: the peer asks and does not listen", waiting_.size()));
  waiting_.push_back(message);
  advance();
  return {};
}

// What an endpoint refuses because it is dead is told by the completions of its receives.
void Control::advance() {
  while (!to_receive_.empty() && post_receive(to_receive_.back())) to_receive_.pop_back();
  while (!waiting_.empty() && !free_.empty()) {
    std::memcpy(at(free_.back()), &waiting_.front(), sizeof(Said));
    if (!post_send(free_.back())) {
      if (refused_since_ == 0) refused_since_ = base::now_ns();
      return;
    }
    refused_since_ = 0;
    free_.pop_back();
    waiting_.pop_front();
  }
}

std::optional<Said> Control::heard(std::uint64_t slot, std::uint64_t bytes) {
  Said message;
  std::memcpy(static_cast<void*>(&message), at(slot), sizeof message);
  if (!post_receive(slot)) to_receive_.push_back(slot);
  if (bytes != sizeof message || message.kind < Said::credit || message.kind > Said::bye) return std::nullopt;
  return message;
}

}  // namespace lacuna::nic::ofi
