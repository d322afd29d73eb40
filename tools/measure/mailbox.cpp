#include "tools/measure/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::measure {
namespace {

constexpr std::int64_t kTimeout = 60'000'000'000;  // ns: longer than any transfer that is measured

}  // namespace

Result<Wire> Wire::connect(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path) {
  Wire wire;
  wire.queue = LACUNA_TRY(context.create_completion_queue(8));
  const nic::Limits& limits = context.limits();
  wire.qp = LACUNA_TRY(
      context.connect(bootstrap, *wire.queue,
                      {.path = path, .max_send_wr = std::min(4, limits.max_send_wr), .max_recv_wr = std::min(4, limits.max_recv_wr)}));
  return wire;
}

Result<nic::Completion> Wire::next(nic::Context& context, method::Endpoint* meanwhile) const {
  const std::int64_t deadline = context.now() + kTimeout;
  nic::Completion completion;
  while (context.poll(*queue, {&completion, 1}) == 0) {
    if (meanwhile != nullptr && meanwhile->poll() > 0) continue;
    if (meanwhile != nullptr && meanwhile->qp().fault() != nullptr) return std::unexpected(*meanwhile->qp().fault());
    LACUNA_TRY(context.wait(deadline));
  }
  if (completion.status == nic::Status::success) return completion;
  if (const base::Error* fault = qp->fault()) return std::unexpected(*fault);
  return base::fail(base::Code::transfer, fmt::format("a request completed with {}", status_name(completion.status)));
}

Result<std::unique_ptr<Mailbox>> Mailbox::create(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path) {
  std::unique_ptr<Mailbox> box(new Mailbox(context, LACUNA_TRY(Wire::connect(context, bootstrap, path))));
  box->out_ = LACUNA_TRY(nic::RegisteredBuffer::create(context, kBytes));
  box->in_ = LACUNA_TRY(nic::RegisteredBuffer::create(context, kBytes));
  LACUNA_TRY(box->post_receive());
  return box;
}

Result<void> Mailbox::post_receive() {
  const std::int64_t bytes = std::min<std::int64_t>(kBytes, wire_.qp->limits().max_message_bytes);
  const nic::Sge sge = in_.sge(0, bytes);
  return wire_.qp->post_recv({.sg_list = {&sge, 1}});
}

Result<void> Mailbox::send(std::span<const std::byte> message) {
  if (message.size() > kBytes)
    return base::fail(base::Code::limit, fmt::format("a message of {} bytes between the ranks; it may have {}", message.size(), kBytes));
  std::ranges::copy(message, out_.buffer.data());
  const nic::Sge sge = out_.sge(0, std::ssize(message));
  LACUNA_TRY(wire_.qp->post_send({.sg_list = {&sge, 1}}));
  for (;;) {
    const nic::Completion completion = LACUNA_TRY(wire_.next(context_));
    if (completion.opcode == nic::Opcode::send) return {};
    arrived_ = completion.byte_len;
  }
}

Result<std::span<const std::byte>> Mailbox::receive(method::Endpoint* meanwhile) {
  if (!arrived_) arrived_ = LACUNA_TRY(wire_.next(context_, meanwhile)).byte_len;
  if (*arrived_ > in_.buffer.size())
    return base::fail(base::Code::malformed, fmt::format("a message of {} bytes between the ranks; it may have {}", *arrived_, kBytes));
  message_.assign(in_.buffer.data(), in_.buffer.data() + *arrived_);
  arrived_.reset();
  LACUNA_TRY(post_receive());
  return std::span<const std::byte>(message_);
}

}  // namespace lacuna::measure
