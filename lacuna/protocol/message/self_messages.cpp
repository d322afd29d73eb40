#include "lacuna/protocol/message/self_messages.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::protocol {

std::optional<base::Error> truncation(std::int64_t bytes, std::int64_t room) {
  if (bytes <= room) return std::nullopt;
  return base::Error{base::Code::truncated, fmt::format("a message of {} bytes, and a receive for {}", bytes, room)};
}

Result<void> SelfMessages::send(Request& request) {
  request.protocol = Protocol::self;
  if (auto* receive = static_cast<Request*>(local_.matcher.match(local_.rank, request.tag)); receive != nullptr)
    return deliver(*receive, request);
  auto message = std::make_unique<Unexpected>();
  message->source = local_.rank;
  message->tag = request.tag;
  message->head.kind = HeadKind::eager;
  message->head.tag = request.tag;
  message->head.bytes = static_cast<std::uint64_t>(request.bytes);
  if (request.bytes <= local_.options.eager_bytes) {
    message->data = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(request.bytes));
    if (request.bytes > 0) local_.context.pack(*request.layout, request.base, 0, request.bytes, message->data.get(), copy::Caching::kept);
    completion_.done(request);
  } else {
    message->send = &request;
  }
  local_.keep_unexpected(std::move(message));
  return {};
}

Result<void> SelfMessages::deliver(Request& receive, Request& send) {
  nic::Context& context = local_.context;
  receive.status = {.source = local_.rank, .tag = send.tag, .bytes = send.bytes};
  receive.error = truncation(send.bytes, receive.layout->size());
  if (send.bytes == receive.layout->size()) {
    if (send.bytes > 0) LACUNA_TRY(context.transpack(*send.layout, send.base, *receive.layout, receive.base));
  } else {
    const std::int64_t wanted = std::min(send.bytes, receive.layout->size());
    const auto packed = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(wanted));
    if (wanted > 0) context.pack(*send.layout, send.base, 0, wanted, packed.get(), copy::Caching::asked);
    if (wanted > 0) context.unpack(*receive.layout, receive.base, 0, wanted, packed.get(), copy::Caching::asked);
  }
  receive.protocol = Protocol::self;
  Statistics::count(local_.statistics.sent, Protocol::self, send.bytes);
  Statistics::count(local_.statistics.received, Protocol::self, send.bytes);
  completion_.done(send);
  completion_.done(receive);
  return {};
}

}  // namespace lacuna::protocol
