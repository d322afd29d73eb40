#include "lacuna/protocol/message/sends.hpp"

#include <algorithm>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {

// True if it went: the channel has room, and so has the peer.
bool Sends::send_eager(Peer& peer, const void* base, const Layout& layout, int tag) {
  const std::int64_t bytes = layout.size();
  if (bytes > local_.options.eager_bytes || !peer.outbox.empty()) return false;
  if (!peer.credit.allows(bytes)) {
    LACUNA_RARELY("eager: the peer has no room");
    return false;
  }
  const auto length = static_cast<std::size_t>(bytes);
  Head head;
  head.kind = HeadKind::eager;
  head.tag = tag;
  head.bytes = length;
  const bool in_body = length <= kBody;
  std::byte* payload = peer.channel->claim(in_body ? 0 : length);
  if (payload == nullptr) return false;
  head.payload = in_body ? 0 : static_cast<std::uint32_t>(length);
  if (length > 0)
    peer.streams.stores.pack(local_.context, layout, static_cast<const std::byte*>(base), 0, bytes, in_body ? head.body : payload);
  local_.step("send eager");
  peer.channel->commit(head);
  peer.credit.sent(bytes);
  Statistics::count(local_.statistics.sent, Protocol::eager, bytes);
  return true;
}

Result<void> Sends::begin(Request& send, const Chosen& chosen) {
  Peer& peer = local_.peer(send.peer);
  if (peer.channel == nullptr) return self_.send(send);
  switch (chosen.way) {
    case MessageWay::eager:  // the channel, or the peer, has no room
      if (send.bytes <= guide::usual::kWindowBytes || chosen.forced || !streams_.possible(peer)) return start_eager(peer, send, chosen);
      return start_stream(peer, send, chosen);
    case MessageWay::wide:
    case MessageWay::narrow:
    case MessageWay::passed:
    case MessageWay::direct: return start_stream(peer, send, chosen);
    case MessageWay::rendezvous: break;
  }
  return start_rendezvous(peer, send, chosen);
}

// The channel is full: what is sent after it may not overtake it.
Result<void> Sends::start_eager(Peer& peer, Request& send, const Chosen& /*chosen*/) {
  const bool small = send.bytes <= local_.options.eager_bytes;
  if (small && peer.credit.allows(send.bytes)) {
    LACUNA_RARELY("eager: one waits for the channel");
    peer.credit.sent(send.bytes);
    peer.outbox.push_back({.head = {}, .payload = {}, .eager = &send});
    local_.queue(peer);
    return {};
  }
  LACUNA_TRY(local_.connect_line(peer, true));
  if (small) ++local_.statistics.without_credit;
  announce(peer, send, streams_.possible(peer));
  return {};
}

// Where no ring is free, a small message is eager.
Result<void> Sends::start_stream(Peer& peer, Request& send, const Chosen& chosen) {
  Result<StreamRing*> ring = peer.streams.rings.take(local_.pool, send.bytes, false, streams_.transit(peer, *send.layout, chosen));
  if (!ring && send.bytes > local_.options.eager_bytes) return std::unexpected(std::move(ring).error());
  if (ring && *ring != nullptr) return streams_.begin(peer, send, **ring, 0);
  if (!send_eager(peer, send.base, *send.layout, send.tag)) return start_eager(peer, send, chosen);
  completion_.done(send);
  return {};
}

Result<void> Sends::start_rendezvous(Peer& peer, Request& send, const Chosen& /*chosen*/) {
  LACUNA_TRY(local_.connect_line(peer, true));
  announce(peer, send, false);
  return {};
}

void Sends::announce(Peer& peer, Request& send, bool by_stream) {
  send.announce.number = ++peer.announcements.numbers;
  send.protocol = by_stream ? Protocol::stream : Protocol::rendezvous;
  peer.announcements.announced[send.announce.number] = &send;
  const Announce announce = by_stream ? Announce{} : rendezvous_.announce(peer, send);
  send.announce.layout = announce.layout;
  Head head;
  put_body(head, announce);
  head.kind = HeadKind::announce;
  head.tag = send.tag;
  head.number = send.announce.number;
  head.bytes = static_cast<std::uint64_t>(send.bytes);
  local_.step("send announce");
  local_.say(peer, head);
}

bool Sends::flush(Peer& peer) {
  bool moved = false;
  for (; !peer.outbox.empty(); peer.outbox.pop_front()) {
    QueuedHead& next = peer.outbox.front();
    const std::size_t bytes = next.eager != nullptr ? static_cast<std::size_t>(next.eager->bytes) : next.payload.size();
    const bool in_body = next.eager != nullptr && bytes <= kBody;
    std::byte* to = peer.channel->claim(in_body ? 0 : bytes);
    if (to == nullptr) {
      LACUNA_RARELY("heads: the channel is full again");
      return moved;
    }
    moved = true;
    next.head.payload = in_body ? 0 : static_cast<std::uint32_t>(bytes);
    if (next.eager != nullptr) {
      const Request& send = *next.eager;
      next.head.kind = HeadKind::eager;
      next.head.tag = send.tag;
      next.head.bytes = bytes;
      if (bytes > 0) local_.context.pack(*send.layout, send.base, 0, send.bytes, in_body ? next.head.body : to, copy::Caching::kept);
    } else {
      std::ranges::copy(next.payload, to);
    }
    peer.channel->commit(next.head);
    if (next.eager != nullptr) {
      Statistics::count(local_.statistics.sent, Protocol::eager, next.eager->bytes);
      completion_.done(*next.eager);
    }
  }
  return moved;
}

}  // namespace lacuna::protocol
