// Receives: what arrives finds its receive, or waits for it.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

// What a method brings beyond a receive's end needs memory too: of a peer's claim, and some methods touch it all. A sender whose message is
// longer yet is told that it cannot be received.
constexpr std::int64_t kMostExcess = 256 << 20;

// Announced messages of one peer that no receive took, each some hundred bytes here and a request there.
constexpr std::int64_t kMostWaiting = 1 << 20;

std::unexpected<base::Error> malformed(int rank, std::string_view what) {
  return base::fail(base::Code::malformed, fmt::format("rank {} says {}", rank, what));
}

std::optional<base::Error> truncation(std::int64_t bytes, std::int64_t room) {
  if (bytes <= room) return std::nullopt;
  return base::Error{base::Code::truncated, fmt::format("a message of {} bytes, and a receive for {}", bytes, room)};
}

}  // namespace

Result<Request*> Ranks::irecv(void* base, const Layout& layout, int source, int tag) {
  const auto lock = enter();
  Request* request = fresh();
  request->source = source;
  request->tag = tag;
  request->kept = layout;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(base);
  if (Result<void> begun = begin_receive(*request); !begun) {
    retire(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

Result<Status> Ranks::recv(void* base, const Layout& layout, int source, int tag) {
  auto lock = enter();
  Request request;
  request.source = source;
  request.tag = tag;
  request.layout = &layout;
  request.base = static_cast<std::byte*>(base);
  LACUNA_TRY(begin_receive(request));
  if (Result<void> waited = until(lock, [&] { return request.state == Request::State::done; }); !waited) {
    abandon(request);
    return std::unexpected(std::move(waited).error());
  }
  if (request.error) return std::unexpected(std::move(*request.error));
  return request.status;
}

Result<std::optional<Status>> Ranks::probe(int source, int tag) {
  const auto lock = enter();
  if (source >= size() || source < kAnySource || tag < kAnyTag)
    return base::fail(base::Code::invalid_argument, fmt::format("a probe for rank {} and tag {}", source, tag));
  if (!advance()) idle();
  const auto* found = static_cast<const Unexpected*>(matcher_.find(source, tag));
  if (found != nullptr) return Status{found->source, found->tag, static_cast<std::int64_t>(found->head.bytes)};
  LACUNA_TRY(still_there(source));
  return std::nullopt;
}

Result<void> Ranks::check_destination(const Layout& layout) {
  if (LACUNA_TRY(layout.overlaps()))
    return base::fail(base::Code::invalid_argument, "the destination's layout names some bytes twice; what they would hold is undefined");
  return {};
}

Result<void> Ranks::begin_receive(Request& request) {
  if (request.source >= size() || request.source < kAnySource)
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; there are ranks 0 to {}", request.source, size() - 1));
  if (request.tag < kAnyTag && !is_taken(request.tag))
    return base::fail(base::Code::invalid_argument, fmt::format("tag {}; tags are 0 or more", request.tag));
  LACUNA_TRY(check_destination(*request.layout));
  if (Matchable* found = matcher_.find(request.source, request.tag); found != nullptr) {
    const std::unique_ptr<Unexpected> message(static_cast<Unexpected*>(found));
    matcher_.remove(*found);
    if (message->send == nullptr && message->head.kind != Kind::eager) --peers_[static_cast<std::size_t>(message->source)].waiting;
    return deliver(request, *message);
  }
  LACUNA_TRY(still_there(request.source));
  matcher_.post(request);
  return {};
}

// Whether somebody may still send what a receive waits for.
Result<void> Ranks::still_there(int source) const {
  if (source == kAnySource) {
    if (size() == 1 || !nobody_left()) return {};
    return base::fail(base::Code::peer_lost, "a receive from any source, and all other ranks are gone");
  }
  const std::optional<base::Error>& lost = peers_[static_cast<std::size_t>(source)].lost;
  if (lost) return std::unexpected(*lost);
  return {};
}

Result<void> Ranks::deliver(Request& receive, Unexpected& message) {
  Peer& peer = peers_[static_cast<std::size_t>(message.source)];
  if (message.send != nullptr) return deliver_self(receive, *message.send);

  if (message.head.kind == Kind::eager) {
    statistics_.unexpected_bytes -= static_cast<std::int64_t>(message.head.bytes);
    deliver_eager(receive, message.source, message.head, message.data.get());
  } else if (message.in) {
    deliver_stream(peer, receive, message.head, *message.in);
  } else {
    deliver_announced(peer, receive, message);
  }
  return {};
}

// --- what a peer says ------------------------------------------------------------------------------------------------

Result<void> Ranks::take(Peer& peer, const Channel::Arrival& arrival) {
  const Head& head = arrival.head;
  switch (head.kind) {
    case Kind::eager:
      if (head.payload > 0 ? head.payload != head.bytes : head.bytes > kBody) return malformed(peer.rank, "that a message has other bytes");
      return take_message(peer, arrival);
    case Kind::stream:
      if (const auto window = body_of<Window>(head); window.answer != 0) {
        const auto found = peer.expected.find(window.answer);
        if (found == peer.expected.end() || std::cmp_not_equal(found->second->bytes, head.bytes))
          return malformed(peer.rank, "that it streams what was not asked for");
        // What is refused stays expected, so that losing the peer ends it.
        Request& receive = *found->second;
        receive.in.emplace(LACUNA_TRY(InStream::open(*peer.channel, peer.seen, window, receive.bytes)));
        peer.expected.erase(found);
        peer.receiving.push_back(&receive);
        return {};
      }
      return take_message(peer, arrival);
    case Kind::announce: return take_message(peer, arrival);
    case Kind::answer: {
      const auto found = peer.announced.find(head.number);
      if (found == peer.announced.end()) return malformed(peer.rank, "that it wants what was not announced");
      LACUNA_TRY(take_answer(peer, *found->second, arrival));
      peer.announced.erase(found);  // not before: losing the peer ends what is announced
      return {};
    }
    case Kind::part: return take_part(peer, arrival);
    case Kind::ready: return take_ready(peer, arrival);
    case Kind::dropped: {
      const auto found = peer.announced.find(head.number);
      if (found == peer.announced.end()) return malformed(peer.rank, "that it drops what was not announced");
      Request& send = *found->second;
      peer.announced.erase(found);
      fail(send, {base::Code::transfer, fmt::format("rank {} cannot receive it", peer.rank)});
      return {};
    }
    case Kind::access: return serve(peer, head);
    case Kind::accessed: return take_accessed(peer, head);
    case Kind::layout: return peer.heard.part(body_of<LayoutPart>(head), {arrival.payload, head.payload});
    case Kind::credit:
      if (std::cmp_less(head.bytes, peer.eager_released) || std::cmp_greater(head.bytes, peer.eager_sent))
        return malformed(peer.rank, "that it received more than was sent");
      peer.eager_released = static_cast<std::int64_t>(head.bytes);
      return {};
    case Kind::bye: peer.left = true; return {};
    default: return malformed(peer.rank, fmt::format("something of kind {}", static_cast<int>(head.kind)));
  }
}

Result<void> Ranks::take_answer(Peer& peer, Request& send, const Channel::Arrival& arrival) {
  const auto answer = body_of<Answer>(arrival.head);
  switch (answer.how) {
    case How::nothing:
      if (send.bytes > 0) break;
      done(send);
      return {};
    case How::stream:
      if (!peer.channel->shares_memory() || send.bytes == 0) break;
      send.number = answer.number;
      peer.for_windows.push_back(&send);
      return {};
    case How::method: {
      if (send.bytes == 0) break;
      Carried made;
      made.request = &send;
      made.peer_number = answer.number;
      made.own_number = send.told;
      made.cut = LACUNA_TRY(check_cut(answer, send));
      if (answer.layout != 0) made.theirs = LACUNA_TRY(peer.heard.find(answer.layout));
      if (made.theirs && made.theirs->size() != send.bytes) break;
      made.said.push_back({.way = LACUNA_TRY(guide::Way::decode(std::as_bytes(std::span(answer.way)))),
                           .target = LACUNA_TRY(method::Target::decode({arrival.payload, arrival.head.payload})),
                           .copied = made.cut.copies(method::Role::receiver, 0)});
      if (peer.outgoing.endpoints(made.said.front().way.path) == 0) break;
      send.state = Request::State::moving;
      peer.outgoing.carried.push_back(std::move(made));
      return {};
    }
  }
  return malformed(peer.rank, "an answer that is none");
}

// The receiver cuts; where the sender told no layout, it copies all.
Result<Cut> Ranks::check_cut(const Answer& answer, const Request& send) {
  const auto bytes = static_cast<std::uint64_t>(send.bytes);
  if (answer.part == 0 || answer.part > bytes || bytes / answer.part >= static_cast<std::uint64_t>(kMostParts))
    return base::fail(base::Code::malformed, fmt::format("a message of {} bytes in parts of {}", bytes, answer.part));
  const Cut cut{.bytes = send.bytes, .part = static_cast<std::int64_t>(answer.part), .copied = {answer.copied[0], answer.copied[1]}};
  if (cut.copied[0] > cut.count() || cut.copied[1] > cut.count() || (send.told == 0 && cut.copied[0] != cut.count()))
    return base::fail(base::Code::malformed, fmt::format("{} and {} of {} parts copied", cut.copied[0], cut.copied[1], cut.count()));
  return cut;
}

// To the sender: what its receiver says of a further part.
Result<void> Ranks::take_part(Peer& peer, const Channel::Arrival& arrival) {
  const auto body = body_of<Part>(arrival.head);
  auto& carried = peer.outgoing.carried;
  const auto found = std::ranges::find_if(carried, [&](const Carried& one) { return one.request->number == arrival.head.number; });
  if (found == carried.end() || found->said.size() == kAtOnce || body.index != found->made + found->said.size() ||
      body.index >= found->cut.count() || body.copied > 1 || body.copied < (found->cut.copies(method::Role::receiver, body.index) ? 1 : 0))
    return malformed(peer.rank, "a part that is none");
  Said said{.way = LACUNA_TRY(guide::Way::decode(std::as_bytes(std::span(body.way)))),
            .target = LACUNA_TRY(method::Target::decode({arrival.payload, arrival.head.payload})),
            .copied = body.copied != 0};
  if (peer.outgoing.endpoints(said.way.path) == 0) return malformed(peer.rank, "a way on a path that there is not");
  found->said.push_back(std::move(said));
  return {};
}

// To a receiver that reaches into the sender's memory.
Result<void> Ranks::take_ready(Peer& peer, const Channel::Arrival& arrival) {
  auto& carried = peer.incoming.carried;
  const auto found = std::ranges::find_if(carried, [&](const Carried& one) { return one.request->number == arrival.head.number; });
  if (found == carried.end()) return malformed(peer.rank, "that it is ready for what was not answered");
  const std::uint32_t index = body_of<Part>(arrival.head).index;
  const auto part = std::ranges::find(found->parts, index, &Moving::index);
  if (part == found->parts.end() || part->target_came || !part->told || !part->pulls())
    return malformed(peer.rank, "that it is ready for what was not answered");
  part->target = LACUNA_TRY(method::Target::decode({arrival.payload, arrival.head.payload}));
  part->target_came = true;
  return {};
}

Result<void> Ranks::take_message(Peer& peer, const Channel::Arrival& arrival) {
  const Head& head = arrival.head;
  if (head.kind == Kind::eager) {
    peer.eager_came += static_cast<std::int64_t>(head.bytes) + kEagerCost;
    if (peer.eager_came - peer.released > options_.unexpected_bytes)
      return malformed(peer.rank, fmt::format("more than the {} bytes that it was given room for", options_.unexpected_bytes));
    const std::byte* data = head.payload > 0 ? arrival.payload : head.body;
    if (auto* receive = static_cast<Request*>(matcher_.match(peer.rank, head.tag)); receive != nullptr) {
      deliver_eager(*receive, peer.rank, head, data);
    } else if (head.tag < 0 && !is_taken(head.tag)) {
      return malformed(peer.rank, "that it accesses what was not agreed on");
    } else {
      keep_eager(peer, head, data);
    }
    return {};
  }
  Unexpected came;
  came.source = peer.rank;
  came.tag = head.tag;
  came.head = head;
  if (head.bytes > static_cast<std::uint64_t>(layout::kMaxBytes)) return malformed(peer.rank, "that a message is larger than any");
  if (head.kind == Kind::stream)
    came.in = LACUNA_TRY(InStream::open(*peer.channel, peer.seen, body_of<Window>(head), static_cast<std::int64_t>(head.bytes)));
  if (head.kind == Kind::announce) {
    const auto announce = body_of<Announce>(head);
    came.method = announce.method != 0 && head.bytes > 0;
    if (!came.method && head.bytes > 0 && !peer.channel->shares_memory()) return malformed(peer.rank, "that it streams where it cannot");
    if (announce.layout != 0) came.layout = LACUNA_TRY(peer.heard.find(announce.layout));
    if (came.layout && std::cmp_not_equal(came.layout->size(), head.bytes)) return malformed(peer.rank, "a layout of another size");
  }
  if (auto* receive = static_cast<Request*>(matcher_.match(peer.rank, head.tag)); receive != nullptr) return deliver(*receive, came);
  if (head.tag < 0 && !is_taken(head.tag)) return malformed(peer.rank, "that it accesses what was not agreed on");
  if (++peer.waiting > kMostWaiting) return malformed(peer.rank, fmt::format("more than {} messages that nobody receives", kMostWaiting));
  keep(std::make_unique<Unexpected>(std::move(came)));
  return {};
}

void Ranks::keep_eager(const Peer& peer, const Head& head, const std::byte* data) {
  auto message = std::make_unique<Unexpected>();
  message->source = peer.rank;
  message->tag = head.tag;
  message->head = head;
  message->data = std::make_unique_for_overwrite<std::byte[]>(head.bytes);
  std::memcpy(message->data.get(), data, head.bytes);
  keep(std::move(message));
}

// A message that no receive is there for.
void Ranks::keep(std::unique_ptr<Unexpected> message) {
  if (message->data != nullptr) {
    statistics_.unexpected_bytes += static_cast<std::int64_t>(message->head.bytes);
    statistics_.unexpected_most = std::max(statistics_.unexpected_most, statistics_.unexpected_bytes);
  }
  ++statistics_.unexpected;
  step("keep unexpected");
  matcher_.keep(*message.release());
}

void Ranks::deliver_eager(Request& receive, int source, const Head& head, const std::byte* data) {
  const auto bytes = static_cast<std::int64_t>(head.bytes);
  const std::int64_t wanted = std::min(bytes, receive.layout->size());
  if (wanted > 0) context_.unpack(*receive.layout, receive.base, 0, wanted, data, copy::Caching::kept);
  receive.status = {.source = source, .tag = head.tag, .bytes = bytes};
  receive.error = truncation(bytes, receive.layout->size());
  statistics_.count(statistics_.received, Protocol::eager, bytes);
  if (source != rank_) release(peers_[static_cast<std::size_t>(source)], bytes + kEagerCost);
  done(receive);
}

void Ranks::deliver_stream(Peer& peer, Request& receive, const Head& head, InStream stream) {
  receive.bytes = static_cast<std::int64_t>(head.bytes);
  receive.peer = peer.rank;
  receive.protocol = Protocol::stream;
  receive.status = {.source = peer.rank, .tag = head.tag, .bytes = receive.bytes};
  receive.error = truncation(receive.bytes, receive.layout->size());
  receive.state = Request::State::moving;
  receive.in = stream;
  peer.receiving.push_back(&receive);
  step("receive stream");
}

void Ranks::deliver_announced(Peer& peer, Request& receive, const Unexpected& message) {
  receive.bytes = static_cast<std::int64_t>(message.head.bytes);
  receive.peer = peer.rank;
  receive.status = {.source = peer.rank, .tag = message.head.tag, .bytes = receive.bytes};
  receive.error = truncation(receive.bytes, receive.layout->size());
  receive.state = Request::State::moving;
  receive.number = ++peer.numbers;
  if (receive.bytes > 0 && !message.method) {
    receive.protocol = Protocol::stream;
    peer.expected[receive.number] = &receive;
  }
  if (message.method) {
    receive.protocol = Protocol::rendezvous;
    if (receive.bytes - receive.layout->size() > kMostExcess) {
      drop(peer, message.head.number, base::Code::truncated);
      done(receive);
      return;
    }
    Carried made;
    made.request = &receive;
    made.peer_number = message.head.number;
    made.theirs = message.layout;
    made.theirs_shared = body_of<Announce>(message.head).shared != 0;
    made.theirs_known = body_of<Announce>(message.head).known != 0;
    made.own_number = receive.layout->size() == receive.bytes ? tell(peer, *receive.layout) : 0;
    peer.incoming.carried.push_back(std::move(made));
    return;
  }
  Head head;
  head.kind = Kind::answer;
  head.number = message.head.number;
  put_body(head, Answer{.number = receive.number, .layout = 0, .way = {}, .how = receive.bytes > 0 ? How::stream : How::nothing});
  step("send answer");
  say(peer, head);
  if (receive.bytes == 0) done(receive);
}

// Tells the peer now and then what room it has again.
void Ranks::release(Peer& peer, std::int64_t bytes) {
  peer.released += bytes;
  if (peer.released - peer.released_told < options_.unexpected_bytes / 4) return;
  peer.released_told = peer.released;
  Head head;
  head.kind = Kind::credit;
  head.bytes = static_cast<std::uint64_t>(peer.released);
  say(peer, head);
}

// --- messages to oneself ---------------------------------------------------------------------------------------------

Result<void> Ranks::send_to_self(Request& request) {
  request.protocol = Protocol::self;
  if (auto* receive = static_cast<Request*>(matcher_.match(rank_, request.tag)); receive != nullptr) return deliver_self(*receive, request);
  auto message = std::make_unique<Unexpected>();
  message->source = rank_;
  message->tag = request.tag;
  message->head.kind = Kind::eager;
  message->head.tag = request.tag;
  message->head.bytes = static_cast<std::uint64_t>(request.bytes);
  if (request.bytes <= options_.eager_bytes) {
    message->data = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(request.bytes));
    if (request.bytes > 0) context_.pack(*request.layout, request.base, 0, request.bytes, message->data.get(), copy::Caching::kept);
    done(request);
  } else {
    message->send = &request;
  }
  keep(std::move(message));
  return {};
}

Result<void> Ranks::deliver_self(Request& receive, Request& send) {
  receive.status = {.source = rank_, .tag = send.tag, .bytes = send.bytes};
  receive.error = truncation(send.bytes, receive.layout->size());
  if (send.bytes == receive.layout->size()) {
    if (send.bytes > 0) LACUNA_TRY(context_.transpack(*send.layout, send.base, *receive.layout, receive.base));
  } else {
    const std::int64_t wanted = std::min(send.bytes, receive.layout->size());
    const auto packed = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(wanted));
    if (wanted > 0) context_.pack(*send.layout, send.base, 0, wanted, packed.get(), copy::Caching::asked);
    if (wanted > 0) context_.unpack(*receive.layout, receive.base, 0, wanted, packed.get(), copy::Caching::asked);
  }
  receive.protocol = Protocol::self;
  statistics_.count(statistics_.sent, Protocol::self, send.bytes);
  statistics_.count(statistics_.received, Protocol::self, send.bytes);
  done(send);
  done(receive);
  return {};
}

}  // namespace lacuna::protocol
