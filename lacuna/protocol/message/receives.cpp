#include "lacuna/protocol/message/receives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {
namespace {

// Announced messages of one peer that no receive took; each takes some hundred bytes here, and a request there.
constexpr std::int64_t kMostWaiting = 1 << 20;

std::unexpected<base::Error> broken(int rank, std::string_view what) {
  LACUNA_RARELY("nonsense: of a message");
  return base::fail(base::Code::malformed, fmt::format("rank {} says {}", rank, what));
}

bool is_agreed_on(std::int32_t tag) { return tag >= 0 || is_taken(tag); }

}  // namespace

Result<void> check_destination(const Layout& layout) {
  if (LACUNA_TRY(layout.overlaps()))
    return base::fail(base::Code::invalid_argument, "the destination's layout names some bytes twice; what they would hold is undefined");
  return {};
}

Result<void> Receives::begin(Request& receive) {
  if (receive.source >= local_.size() || receive.source < kAnySource)
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; there are ranks 0 to {}", receive.source, local_.size() - 1));
  if (receive.tag < kAnyTag && !is_taken(receive.tag))
    return base::fail(base::Code::invalid_argument, fmt::format("tag {}; tags are 0 or more", receive.tag));
  LACUNA_TRY(check_destination(*receive.layout));
  if (Matchable* found = local_.matcher.find(receive.source, receive.tag); found != nullptr) {
    const std::unique_ptr<Unexpected> message(static_cast<Unexpected*>(found));
    local_.matcher.remove(*found);
    if (message->send == nullptr && message->head.kind != HeadKind::eager) --local_.peer(message->source).announcements.waiting;
    return deliver(receive, *message);
  }
  LACUNA_TRY(completion_.still_there(receive.source));
  local_.matcher.post(receive);
  return {};
}

Result<void> Receives::deliver(Request& receive, Unexpected& message) {
  Peer& peer = local_.peer(message.source);
  if (message.send != nullptr) return self_.deliver(receive, *message.send);
  if (message.head.kind == HeadKind::eager) {
    local_.statistics.unexpected_bytes -= static_cast<std::int64_t>(message.head.bytes);
    deliver_eager(receive, message.source, message.head, message.data.get());
  } else if (message.in) {
    streams_.receive(peer, receive, message.head, *message.in);
  } else {
    deliver_announced(peer, receive, message);
  }
  return {};
}

// --- what arrives ----------------------------------------------------------------------------------------------------

Result<void> Receives::take(Peer& peer, const Channel::Arrival& arrival) {
  const Head& head = arrival.head;
  if (head.kind == HeadKind::eager) return take_eager(peer, arrival);
  Unexpected came;
  LACUNA_TRY(read(peer, head, came));
  if (auto* receive = static_cast<Request*>(local_.matcher.match(peer.rank, head.tag)); receive != nullptr) return deliver(*receive, came);
  if (!is_agreed_on(head.tag)) return broken(peer.rank, "that it accesses what was not agreed on");
  if (++peer.announcements.waiting > kMostWaiting)
    return broken(peer.rank, fmt::format("more than {} messages without a receive", kMostWaiting));
  local_.keep_unexpected(std::make_unique<Unexpected>(std::move(came)));
  return {};
}

Result<void> Receives::take_eager(Peer& peer, const Channel::Arrival& arrival) {
  const Head& head = arrival.head;
  const std::int64_t room = local_.options.unexpected_bytes;
  if (!peer.credit.came(head.bytes, room)) return broken(peer.rank, fmt::format("more than the {} bytes that it was given room for", room));
  const std::byte* data = head.payload > 0 ? arrival.payload : head.body;
  if (auto* receive = static_cast<Request*>(local_.matcher.match(peer.rank, head.tag)); receive != nullptr) {
    deliver_eager(*receive, peer.rank, head, data);
  } else if (!is_agreed_on(head.tag)) {
    return broken(peer.rank, "that it accesses what was not agreed on");
  } else {
    keep_eager(peer, head, data);
  }
  return {};
}

// What the head of a stream, or of an announcement, says.
Result<void> Receives::read(Peer& peer, const Head& head, Unexpected& message) {
  message.source = peer.rank;
  message.tag = head.tag;
  message.head = head;
  if (head.bytes > static_cast<std::uint64_t>(layout::kMaxBytes)) return broken(peer.rank, "that a message is larger than any");
  if (head.kind == HeadKind::stream) {
    const auto bytes = static_cast<std::int64_t>(head.bytes);
    message.in = LACUNA_TRY(InStream::open(*peer.channel, peer.streams.seen, body_of<RingDescriptor>(head), bytes));
    return {};
  }
  const auto announce = body_of<Announce>(head);
  message.method = announce.method != 0 && head.bytes > 0;
  if (!message.method && head.bytes > 0 && !peer.channel->shares_memory()) return broken(peer.rank, "that it streams where it cannot");
  LACUNA_TRY(local_.connect_line(peer, false));
  if (announce.layout != 0) message.layout = LACUNA_TRY(peer.heard.find(announce.layout));
  if (message.layout && std::cmp_not_equal(message.layout->size(), head.bytes)) return broken(peer.rank, "a layout of another size");
  return {};
}

void Receives::keep_eager(const Peer& peer, const Head& head, const std::byte* data) {
  auto message = std::make_unique<Unexpected>();
  message->source = peer.rank;
  message->tag = head.tag;
  message->head = head;
  message->data = std::make_unique_for_overwrite<std::byte[]>(head.bytes);
  std::memcpy(message->data.get(), data, head.bytes);
  local_.keep_unexpected(std::move(message));
}

// --- what its receive gets -------------------------------------------------------------------------------------------

void Receives::deliver_eager(Request& receive, int source, const Head& head, const std::byte* data) {
  const auto bytes = static_cast<std::int64_t>(head.bytes);
  const std::int64_t wanted = std::min(bytes, receive.layout->size());
  if (wanted > 0) local_.context.unpack(*receive.layout, receive.base, 0, wanted, data, copy::Caching::kept);
  receive.status = {.source = source, .tag = head.tag, .bytes = bytes};
  receive.error = truncation(bytes, receive.layout->size());
  Statistics::count(local_.statistics.received, Protocol::eager, bytes);
  if (source != local_.rank) release(local_.peer(source), bytes);
  completion_.done(receive);
}

void Receives::deliver_announced(Peer& peer, Request& receive, const Unexpected& message) {
  receive.bytes = static_cast<std::int64_t>(message.head.bytes);
  receive.peer = peer.rank;
  receive.status = {.source = peer.rank, .tag = message.head.tag, .bytes = receive.bytes};
  receive.error = truncation(receive.bytes, receive.layout->size());
  receive.state = Request::State::moving;
  receive.announce.number = ++peer.announcements.numbers;
  if (message.method) return rendezvous_.receive(peer, receive, message);
  if (receive.bytes > 0) {
    receive.protocol = Protocol::stream;
    peer.announcements.expected[receive.announce.number] = &receive;
  }
  Head head;
  head.kind = HeadKind::answer;
  head.number = message.head.number;
  const AnswerKind how = receive.bytes > 0 ? AnswerKind::stream : AnswerKind::nothing;
  put_body(head, Answer{.number = receive.announce.number, .layout = 0, .way = {}, .how = how});
  local_.step("send answer");
  local_.say(peer, head);
  if (receive.bytes == 0) completion_.done(receive);
}

// The peer is told now and then that it has room again.
void Receives::release(Peer& peer, std::int64_t bytes) {
  if (!peer.credit.receive(bytes, local_.options.unexpected_bytes)) return;
  Head head;
  head.kind = HeadKind::credit;
  head.bytes = static_cast<std::uint64_t>(peer.credit.received());
  LACUNA_RARELY("eager: the peer is told that it has room again");
  local_.say(peer, head);
}

}  // namespace lacuna::protocol
