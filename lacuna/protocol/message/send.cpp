// Sends: small ones into the channel, large ones by a stream or an announcement.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {

Result<Peer*> Ranks::peer_of(int rank, int tag) {
  if (rank < 0 || rank >= size())
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; there are ranks 0 to {}", rank, size() - 1));
  if (tag < 0 && !is_taken(tag))
    return base::fail(base::Code::invalid_argument, fmt::format("tag {}; tags of messages are 0 or more", tag));
  if (++calls_ % kCallsPerAdvance == 0) advance();  // a program whose sends all go at once would serve nobody
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (peer.lost) return std::unexpected(*peer.lost);
  return &peer;
}

Result<Request*> Ranks::isend(const void* base, const Layout& layout, int dest, int tag) {
  const auto lock = enter();
  Peer& peer = *LACUNA_TRY(peer_of(dest, tag));
  Request* request = fresh();
  request->sends = true;
  request->status = {.source = rank_, .tag = tag, .bytes = layout.size()};
  request->bytes = layout.size();
  request->peer = dest;
  if (send_small(peer, base, layout, tag)) {
    request->state = Request::State::done;
    return request;
  }
  request->tag = tag;
  request->kept = layout;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(const_cast<void*>(base));
  if (Result<void> begun = begin_send(*request); !begun) {
    retire(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

Result<void> Ranks::send(const void* base, const Layout& layout, int dest, int tag) {
  auto lock = enter();
  Peer& peer = *LACUNA_TRY(peer_of(dest, tag));
  if (send_small(peer, base, layout, tag)) return {};
  Request request;
  request.sends = true;
  request.status = {.source = rank_, .tag = tag, .bytes = layout.size()};
  request.bytes = layout.size();
  request.peer = dest;
  request.tag = tag;
  request.layout = &layout;
  request.base = static_cast<std::byte*>(const_cast<void*>(base));
  LACUNA_TRY(begin_send(request));
  if (Result<void> waited = until(lock, [&] { return request.state == Request::State::done; }); !waited) {
    abandon(request);
    return waited;
  }
  if (request.error) return std::unexpected(std::move(*request.error));
  return {};
}

bool Ranks::send_small(Peer& peer, const void* base, const Layout& layout, int tag) {
  return peer.channel != nullptr && !streams_first(peer, layout.size()) && send_eager(peer, base, layout, tag);
}

// True if it went: the channel had room, and the peer has.
bool Ranks::send_eager(Peer& peer, const void* base, const Layout& layout, int tag) {
  const std::int64_t bytes = layout.size();
  if (bytes > options_.eager_bytes || !peer.outbox.empty()) return false;
  if (!has_room(peer, bytes)) return false;
  const auto length = static_cast<std::size_t>(bytes);
  Head head;
  head.kind = Kind::eager;
  head.tag = tag;
  head.bytes = length;
  const bool in_body = length <= kBody;
  std::byte* payload = peer.channel->claim(in_body ? 0 : length);
  if (payload == nullptr) return false;
  head.payload = in_body ? 0 : static_cast<std::uint32_t>(length);
  if (length > 0) peer.stores.pack(context_, layout, static_cast<const std::byte*>(base), 0, bytes, in_body ? head.body : payload);
  step("send eager");
  peer.channel->commit(head);
  peer.eager_sent += bytes + kEagerCost;
  statistics_.count(statistics_.sent, Protocol::eager, bytes);
  return true;
}

Result<void> Ranks::begin_send(Request& request) {
  Peer& peer = peers_[static_cast<std::size_t>(request.peer)];
  if (peer.channel == nullptr) return send_to_self(request);
  const bool small = request.bytes <= options_.eager_bytes;
  if (streams_first(peer, request.bytes)) {
    Result<Windows::Place*> window =
        peer.windows.take(context_, request.bytes, false, peer.transits.choose(request.bytes, request.layout->digest()));
    if (!window && !small) return std::unexpected(std::move(window).error());
    if (window && *window != nullptr) return begin_stream(peer, request, **window, 0);
    if (send_eager(peer, request.base, *request.layout, request.tag)) {
      done(request);
      return {};
    }
  }
  if (small && has_room(peer, request.bytes)) {  // the channel is full: what is sent after it may not overtake it
    peer.eager_sent += request.bytes + kEagerCost;
    peer.outbox.push_back({.head = {}, .payload = {}, .eager = &request});
    return {};
  }
  if (small) ++statistics_.without_credit;
  return send_large(peer, request);
}

Result<void> Ranks::send_large(Peer& peer, Request& request) {
  const bool by_stream = streams(peer);
  request.number = ++peer.numbers;
  request.protocol = by_stream ? Protocol::stream : Protocol::rendezvous;
  peer.announced[request.number] = &request;
  Announce announce{.layout = 0, .method = by_stream ? std::uint8_t{0} : std::uint8_t{1}, .shared = 0, .known = 0};
  if (!by_stream) {
    if (can_register(request)) announce.layout = tell(peer, *request.layout);
    announce.known = knows(request) ? 1 : 0;
  }
  request.told = announce.layout;
  Head head;
  put_body(head, announce);
  head.kind = Kind::announce;
  head.tag = request.tag;
  head.number = request.number;
  head.bytes = static_cast<std::uint64_t>(request.bytes);
  step("send announce");
  say(peer, head);
  return {};
}

Result<void> Ranks::begin_stream(Peer& peer, Request& request, Windows::Place& window, std::uint32_t answer) {
  request.protocol = Protocol::stream;
  request.state = Request::State::moving;
  request.out.emplace(window, peer.stores, request.bytes);
  peer.transits.sent(window, *request.out);
  Head head;
  head.kind = Kind::stream;
  head.tag = request.tag;
  head.bytes = static_cast<std::uint64_t>(request.bytes);
  put_body(head, request.out->describe(answer));
  step("send stream");
  say(peer, head);
  // What fits the window is there even if this process makes no call for long.
  peer.sending.push_back(&request);
  if (const Result<bool> gone = go_on(peer, request); !gone) {
    lose(peer, gone.error());
  } else if (!request.out) {
    peer.sending.pop_back();
  }
  return {};
}

// Packs what there is room for.
Result<bool> Ranks::go_on(Peer& peer, Request& send) {
  if (!send.out) return false;
  OutStream& out = *send.out;
  if (out.direct()) {
    const bool some = LACUNA_TRY(copy_out(peer, send, out));
    if (out.direct() && !out.done()) return some;
  }
  const bool some = LACUNA_TRY(out.step(context_, peer.stores, *send.layout, send.base));
  if (some) step("packed");
  if (!out.done()) return some;
  out.give_back();
  statistics_.count(statistics_.sent, send.protocol, send.bytes);
  done(send);
  return true;
}

// Sends now, or behind what waits already.
void Ranks::say(Peer& peer, Head head, std::span<const std::byte> payload) {
  if (peer.lost) return;
  head.payload = static_cast<std::uint32_t>(payload.size());
  if (peer.outbox.empty()) {
    if (std::byte* to = peer.channel->claim(payload.size()); to != nullptr) {
      std::ranges::copy(payload, to);
      peer.channel->commit(head);
      return;
    }
  }
  peer.outbox.push_back({.head = head, .payload = {payload.begin(), payload.end()}});
}

bool Ranks::flush(Peer& peer) {
  bool moved = false;
  for (; !peer.outbox.empty(); peer.outbox.pop_front()) {
    Outgoing& next = peer.outbox.front();
    const std::size_t bytes = next.eager != nullptr ? static_cast<std::size_t>(next.eager->bytes) : next.payload.size();
    const bool in_body = next.eager != nullptr && bytes <= kBody;
    std::byte* to = peer.channel->claim(in_body ? 0 : bytes);
    if (to == nullptr) return moved;
    moved = true;
    next.head.payload = in_body ? 0 : static_cast<std::uint32_t>(bytes);
    if (next.eager != nullptr) {
      next.head.kind = Kind::eager;
      next.head.tag = next.eager->tag;
      next.head.bytes = bytes;
      if (bytes > 0)
        context_.pack(*next.eager->layout, next.eager->base, 0, next.eager->bytes, in_body ? next.head.body : to, copy::Caching::kept);
    } else {
      std::ranges::copy(next.payload, to);
    }
    peer.channel->commit(next.head);
    if (next.eager != nullptr) {
      statistics_.count(statistics_.sent, Protocol::eager, next.eager->bytes);
      done(*next.eager);
    }
  }
  return moved;
}

}  // namespace lacuna::protocol
