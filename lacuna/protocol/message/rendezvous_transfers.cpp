#include "lacuna/protocol/message/rendezvous_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/base/rarely.hpp"
#include "lacuna/protocol/message/self_messages.hpp"

namespace lacuna::protocol {

using method::Role;

namespace {

// A method that goes by the sender's layout needs memory here for what the receive does not take, of a size that the
// peer claims; some methods touch all of it. A sender whose message is longer yet is told that it cannot be received.
constexpr std::int64_t kMostExcess = 256 << 20;

std::span<std::byte> span_of(const Layout& layout, std::byte* base) {
  return {base + layout.true_lower_bound(), static_cast<std::size_t>(layout.true_extent())};
}

nic::Rights rights_of(Role role) {
  const bool sends = role == Role::sender;
  return {.local_write = !sends, .remote_write = !sends, .remote_read = sends, .relaxed = true};
}

RendezvousLine& line_of(Peer& peer, Role role) { return role == Role::sender ? peer.outgoing : peer.incoming; }

std::unexpected<base::Error> malformed(int rank, std::string_view what) {
  LACUNA_RARELY("nonsense: of a transfer");
  return base::fail(base::Code::malformed, fmt::format("rank {} says {}", rank, what));
}

Result<bool> alive(const method::Endpoint& endpoint, bool moved) {
  if (const base::Error* fault = endpoint.qp().fault()) return std::unexpected(*fault);
  return moved;
}

// The receiver cuts; where the sender told no layout, it copies all.
Result<Cut> check_cut(const Answer& answer, const Request& send) {
  const auto bytes = static_cast<std::uint64_t>(send.bytes);
  if (answer.part == 0 || answer.part > bytes || bytes / answer.part >= static_cast<std::uint64_t>(kMostParts))
    return base::fail(base::Code::malformed, fmt::format("a message of {} bytes in parts of {}", bytes, answer.part));
  const Cut cut{.bytes = send.bytes, .part = static_cast<std::int64_t>(answer.part), .copied = {answer.copied[0], answer.copied[1]}};
  if (cut.copied[0] > cut.count() || cut.copied[1] > cut.count() || (send.announce.layout == 0 && cut.copied[0] != cut.count()))
    return base::fail(base::Code::malformed, fmt::format("{} and {} of {} parts copied", cut.copied[0], cut.copied[1], cut.count()));
  return cut;
}

// Whether the next part can be made: those before it are as far as they get without it, its endpoint is free, and a
// sender knows its way.
bool may_make(const RendezvousLine& line, const RendezvousTransfer& now, Role role) {
  if (now.made == now.cut.count() || (role == Role::sender && now.said.empty())) return false;
  if (now.parts.empty()) return true;
  const nic::Path path = role == Role::sender ? now.said.front().way.path : now.parts.front().way.path;
  return now.parts.back().told && now.parts.size() < line.endpoints(path);
}

// The whole layout is no slice: what is known of it (whether it overlaps itself, how it is copied) is not found again.
Result<Layout> part_of(const Layout& whole, const Cut& cut, std::uint32_t index) {
  if (cut.count() == 1) return whole;
  return whole.slice(cut.begin(index), cut.size(index));
}

}  // namespace

// --- announcement and answer -----------------------------------------------------------------------------------------

// Once the receiver relies on the sender's memory, it is too late to find out that a registration fails. So where it
// could fail, it is tried here. A layout whose memory cannot be registered is not told to the peer: all of it is
// copied.
Announce RendezvousTransfers::announce(Peer& peer, Request& send) {
  Announce announce{.layout = 0, .method = 1, .shared = 0, .known = 0};
  const std::span<std::byte> memory = span_of(*send.layout, send.base);
  const Registering wanted = local_.options.registering;
  bool fits = wanted == Registering::copy || !registrations_.doubtful(*send.layout, send.base);
  if (!fits) {
    auto lease = registrations_.lease(memory, rights_of(Role::sender), wanted != Registering::pipeline);
    if (lease) send.announce.lease = std::move(*lease);
    fits = static_cast<bool>(send.announce.lease);
  }
  if (fits) announce.layout = local_.tell(peer, *send.layout);
  announce.known = registrations_.has(memory, rights_of(Role::sender)) ? 1 : 0;
  return announce;
}

void RendezvousTransfers::receive(Peer& peer, Request& receive, const Unexpected& message) {
  receive.protocol = Protocol::rendezvous;
  if (receive.bytes - receive.layout->size() > kMostExcess) {
    drop(peer, message.head.number, base::Code::truncated);
    completion_.done(receive);
    return;
  }
  const auto announce = body_of<Announce>(message.head);
  RendezvousTransfer made;
  made.request = &receive;
  made.peer_number = message.head.number;
  made.theirs = message.layout;
  made.theirs_shared = announce.shared != 0;
  made.theirs_known = announce.known != 0;
  made.own_number = receive.layout->size() == receive.bytes ? local_.tell(peer, *receive.layout) : 0;
  peer.incoming.transfers.push_back(std::move(made));
  local_.move(peer);
}

Result<void> RendezvousTransfers::take_answer(Peer& peer, Request& send, const Answer& answer, std::span<const std::byte> target) {
  RendezvousTransfer made;
  made.request = &send;
  made.peer_number = answer.number;
  made.own_number = send.announce.layout;
  made.cut = LACUNA_TRY(check_cut(answer, send));
  if (answer.layout != 0) made.theirs = LACUNA_TRY(peer.heard.find(answer.layout));
  if (made.theirs && made.theirs->size() != send.bytes) return malformed(peer.rank, "an invalid answer");
  made.said.push_back({.way = LACUNA_TRY(guide::Way::decode(std::as_bytes(std::span(answer.way)))),
                       .target = LACUNA_TRY(method::Target::decode(target)),
                       .copied = made.cut.copies(Role::receiver, 0)});
  if (peer.outgoing.endpoints(made.said.front().way.path) == 0) return malformed(peer.rank, "an invalid answer");
  send.state = Request::State::moving;
  peer.outgoing.transfers.push_back(std::move(made));
  local_.move(peer);
  return {};
}

// To the sender: what its receiver says of a further part.
Result<void> RendezvousTransfers::take_part(Peer& peer, const Channel::Arrival& arrival) {
  const auto body = body_of<PartBody>(arrival.head);
  auto& transfers = peer.outgoing.transfers;
  const auto found =
      std::ranges::find_if(transfers, [&](const RendezvousTransfer& one) { return one.request->announce.number == arrival.head.number; });
  if (found == transfers.end() || found->said.size() == kPartsAtOnce || body.index != found->made + found->said.size() ||
      body.index >= found->cut.count() || body.copied > 1 || body.copied < (found->cut.copies(Role::receiver, body.index) ? 1 : 0))
    return malformed(peer.rank, "an invalid part");
  PartAnswer said{.way = LACUNA_TRY(guide::Way::decode(std::as_bytes(std::span(body.way)))),
                  .target = LACUNA_TRY(method::Target::decode({arrival.payload, arrival.head.payload})),
                  .copied = body.copied != 0};
  if (peer.outgoing.endpoints(said.way.path) == 0) return malformed(peer.rank, "a way on a path that there is not");
  found->said.push_back(std::move(said));
  return {};
}

// To a receiver that reaches into the sender's memory.
Result<void> RendezvousTransfers::take_ready(Peer& peer, const Channel::Arrival& arrival) {
  auto& transfers = peer.incoming.transfers;
  const auto found =
      std::ranges::find_if(transfers, [&](const RendezvousTransfer& one) { return one.request->announce.number == arrival.head.number; });
  if (found == transfers.end()) return malformed(peer.rank, "that it is ready for what was not answered");
  const std::uint32_t index = body_of<PartBody>(arrival.head).index;
  const auto part = std::ranges::find(found->parts, index, &MovingPart::index);
  if (part == found->parts.end() || part->target_came || !part->told || !part->pulls())
    return malformed(peer.rank, "that it is ready for what was not answered");
  part->target = LACUNA_TRY(method::Target::decode({arrival.payload, arrival.head.payload}));
  part->target_came = true;
  return {};
}

// --- parts -----------------------------------------------------------------------------------------------------------

// The receiver's decision for both ends.
Result<void> RendezvousTransfers::cut(RendezvousTransfer& now) {
  const Request& request = *now.request;
  const Layout bytes = LACUNA_TRY(Layout::bytes(request.bytes));
  const bool fits = request.layout->size() == request.bytes && now.own_number != 0 && !now.unfit;
  const Layout& src = now.theirs ? *now.theirs : bytes;
  const Layout& dst = fits ? *request.layout : bytes;
  const std::span<std::byte> memory = span_of(dst, request.base);
  const CutSide sides[2] = {
      {.fits = now.theirs.has_value(), .registered = now.theirs_known, .register_ns = registrations_.cost_ns(src.true_extent())},
      {.fits = fits,
       .registered = fits && registrations_.has(memory, rights_of(Role::receiver)),
       .register_ns = registrations_.cost_ns(dst.true_extent())},
  };
  now.known = sides[0].registered && sides[1].registered;
  const guide::Placement placement{.src_shared = now.theirs_shared, .dst_shared = false, .uses = now.known ? 0.0F : 1.0F};
  const bool stays = fits && registrations_.mode() != Registrations::Mode::each_transfer;
  now.cut = choices_.cut(src, dst, sides, placement, stays ? request.base : nullptr);
  return {};
}

// Memory for a part that is not copied: registered where it lies. False: the whole message was cut anew, and the part
// has to be made again.
Result<bool> RendezvousTransfers::take_memory(RendezvousTransfer& now, MovingPart& part, Role role) {
  const Request& request = *now.request;
  part.own = LACUNA_TRY(part_of(*request.layout, now.cut, part.index));
  part.base = request.base;
  const bool stays = local_.options.registering != Registering::pipeline;
  auto lease = registrations_.lease(span_of(part.own, part.base), rights_of(role), stays);
  if (!lease && role == Role::sender) return std::unexpected(std::move(lease).error());
  if (!lease && part.index == 0) {  // nothing was told yet
    LACUNA_RARELY("rendezvous: the receiver's memory cannot be registered");
    now.unfit = true;
    LACUNA_TRY(cut(now));
    return false;
  }
  part.copied = !lease;
  if (lease) part.lease = std::move(*lease);
  return true;
}

// Makes this end ready for the next part. Errors: at the receiver, of this message alone.
Result<void> RendezvousTransfers::make_part(Peer& peer, RendezvousTransfer& now, Role role) {
  const bool sends = role == Role::sender;
  MovingPart part;
  part.index = now.made;
  part.copied = now.cut.copies(role, part.index);
  if (!part.copied && !LACUNA_TRY(take_memory(now, part, role))) return make_part(peer, now, role);
  const Layout bytes = LACUNA_TRY(Layout::bytes(now.cut.size(part.index)));
  if (part.copied) part.own = bytes;
  const bool theirs_copied = sends ? now.said.front().copied : now.cut.copies(Role::sender, part.index);
  const Layout theirs = theirs_copied || !now.theirs ? bytes : LACUNA_TRY(part_of(*now.theirs, now.cut, part.index));
  method::Transfer layouts{.src = sends ? part.own : theirs, .dst = sends ? theirs : part.own, .notify = {}};
  if (sends) {
    part.way = now.said.front().way;
    part.target = std::move(now.said.front().target);
    part.target_came = true;
    now.said.pop_front();
  } else {
    const bool shared = part.copied || part.lease.region().shared();
    const guide::Placement placement{
        .src_shared = theirs_copied || now.theirs_shared, .dst_shared = shared, .uses = now.known ? 0.0F : 1.0F};
    const auto chosen = LACUNA_TRY(choices_.choose(layouts.src, layouts.dst, placement, now.cut.count() == 1));
    part.way = chosen.choice.way;
    part.trial = chosen.trial;
    if (part.trial != 0) part.begun_ns = local_.context.now();
  }
  layouts.notify = part.way.notify;
  LACUNA_TRY(prepare(peer, now, part, role, layouts));
  if (now.cut.count() > 1) ++local_.statistics.parts;
  ++now.made;
  now.parts.push_back(std::move(part));
  return {};
}

// The method's operation at this end, and the bytes that it sends, where they are copied.
Result<void> RendezvousTransfers::prepare(Peer& peer, RendezvousTransfer& now, MovingPart& part, Role role,
                                          const method::Transfer& layouts) {
  RendezvousLine& line = line_of(peer, role);
  method::Endpoint* endpoint = line.endpoint(part.way.path, part.index);
  if (endpoint == nullptr) return base::fail(base::Code::malformed, "a way on a path that there is not");
  const nic::Region* region = part.copied ? nullptr : &part.lease.region();
  if (part.copied) {
    const Request& request = *now.request;
    const std::int64_t size = now.cut.size(part.index);
    const nic::RegisteredBuffer& staging = *LACUNA_TRY(line.staging(part.way.path, part.index, size, local_.options.timeout_ns));
    part.base = staging.buffer.data();
    region = &staging.region;
    if (role == Role::sender)
      local_.context.pack(*request.layout, request.base, now.cut.begin(part.index), size, part.base, copy::Caching::asked);
    local_.statistics.copied_bytes += size;
  } else if (part.way.method->indirect_keys) {
    part.lease.bound();
  }
  part.operation = LACUNA_TRY(method::make(*part.way.method, role, *endpoint, layouts, {.region = region}));
  return part.operation->prepare(part.base);
}

// An announced message cannot be received.
void RendezvousTransfers::drop(Peer& peer, std::uint32_t number, base::Code code) {
  Head head;
  head.kind = HeadKind::dropped;
  head.number = number;
  put_body(head, Dropped{.number = 0, .code = static_cast<std::uint32_t>(code)});
  local_.say(peer, head);
}

// False: the transfer is over, because it cannot be.
Result<bool> RendezvousTransfers::make_next(Peer& peer, RendezvousTransfer& now, Role role) {
  if (Result<void> made = make_part(peer, now, role); !made) {
    base::Error error = std::move(made).error();
    const bool chosen = error.code == base::Code::unsupported || error.code == base::Code::invalid_argument;
    if (role == Role::sender) return base::fail(chosen ? base::Code::malformed : error.code, std::move(error).message);
    if (now.made > 0) return std::unexpected(std::move(error));
    LACUNA_RARELY("rendezvous: a message cannot be received");
    drop(peer, now.peer_number, error.code);
    completion_.fail(*now.request, std::move(error));
    line_of(peer, role).transfers.pop_front();
    return false;
  }
  LACUNA_TRY(move_part(peer, now, now.parts.back(), role));
  return true;
}

Result<bool> RendezvousTransfers::advance(Peer& peer, Role role) {
  RendezvousLine& line = line_of(peer, role);
  if (line.transfers.empty()) return false;
  RendezvousTransfer& now = line.transfers.front();
  Request& request = *now.request;
  bool moved = false;
  if (now.cut.bytes == 0) LACUNA_TRY(cut(now));
  for (MovingPart& part : now.parts) moved = LACUNA_TRY(move_part(peer, now, part, role)) || moved;
  if (may_make(line, now, role)) {
    if (!LACUNA_TRY(make_next(peer, now, role))) return true;
    moved = true;
  }
  while (!now.parts.empty() && now.parts.front().operation == nullptr) now.parts.pop_front();
  if (now.made < now.cut.count() || !now.parts.empty()) return moved;
  Statistics& statistics = local_.statistics;
  Statistics::count(role == Role::sender ? statistics.sent : statistics.received, Protocol::rendezvous, request.bytes);
  line.transfers.pop_front();
  completion_.done(request);
  return true;
}

Result<bool> RendezvousTransfers::move_part(Peer& peer, RendezvousTransfer& now, MovingPart& part, Role role) {
  if (part.operation == nullptr) return false;
  method::Endpoint& endpoint = *line_of(peer, role).endpoint(part.way.path, part.index);
  bool moved = endpoint.poll() > 0;
  if (!part.told) {
    const auto target = LACUNA_TRY(part.operation->target());
    if (!target) return alive(endpoint, moved);
    LACUNA_TRY(tell_part(peer, now, part, *target, role));
    part.told = true;
    moved = true;
  }
  if (!part.started) {
    if (role == Role::receiver && part.pulls() && !part.target_came) return alive(endpoint, moved);
    local_.step("start method");
    LACUNA_TRY(part.operation->start(part.base, part.target));
    part.started = true;
    moved = true;
  }
  if (!LACUNA_TRY(part.operation->progress())) return alive(endpoint, moved);
  local_.step("method done");
  end_part(now, part, role);
  return true;
}

void RendezvousTransfers::end_part(RendezvousTransfer& now, MovingPart& part, Role role) {
  part.operation.reset();
  part.lease = {};
  if (part.trial != 0) choices_.took(part.trial, static_cast<double>(local_.context.now() - part.begun_ns));
  if (role == Role::sender) return;
  const Request& request = *now.request;
  const std::int64_t begin = now.cut.begin(part.index);
  const std::int64_t size = now.cut.size(part.index);
  const std::int64_t wanted = std::min(begin + size, request.layout->size()) - begin;
  if (part.copied && wanted > 0) local_.context.unpack(*request.layout, request.base, begin, wanted, part.base, copy::Caching::asked);
  count(part.way, size);
}

Result<void> RendezvousTransfers::tell_part(Peer& peer, RendezvousTransfer& now, const MovingPart& part, const method::Target& target,
                                            Role role) {
  if (role == Role::sender && !part.pulls()) return {};
  const Request& request = *now.request;
  const auto way = part.way.encode();
  Head head;
  head.number = now.peer_number;
  if (role == Role::receiver && part.index == 0) {
    // Its number may have gone to another layout since.
    if (now.own_number != 0) now.own_number = local_.tell(peer, *request.layout);
    head.kind = HeadKind::answer;
    Answer answer{.number = request.announce.number,
                  .layout = now.own_number,
                  .way = {},
                  .how = AnswerKind::method,
                  .part = static_cast<std::uint64_t>(now.cut.part),
                  .copied = {now.cut.copied[0], now.cut.copied[1]}};
    std::memcpy(answer.way, way.data(), sizeof answer.way);
    put_body(head, answer);
    local_.step("send answer");
  } else {
    head.kind = role == Role::receiver ? HeadKind::part : HeadKind::ready;
    PartBody body{.index = part.index, .way = {}, .copied = part.copied ? std::uint8_t{1} : std::uint8_t{0}};
    std::memcpy(body.way, way.data(), sizeof body.way);
    put_body(head, body);
    local_.step(role == Role::receiver ? "send part" : "send ready");
  }
  // A target is longer than a payload where a transfer is cut into very many keys.
  const std::vector<std::byte> encoded = target.encode();
  if (encoded.size() > kMostPayload)
    return base::fail(base::Code::limit, fmt::format("a target of {} bytes; a head carries {}", encoded.size(), kMostPayload));
  local_.say(peer, head, encoded);
  return {};
}

Result<void> RendezvousTransfers::forget(const nic::Region& region) {
  Result<void> first;
  for (Peer& peer : local_.known()) {
    for (RendezvousLine* line : {&peer.outgoing, &peer.incoming}) {
      Result<void> forgotten = line->forget(region, local_.options.timeout_ns);
      // A peer that is gone uses nothing any more; any other error counts.
      if (!forgotten && (first || first.error().code == base::Code::peer_lost)) first = std::move(forgotten);
    }
  }
  return first;
}

void RendezvousTransfers::count(const guide::Way& way, std::int64_t bytes) {
  auto& ways = local_.statistics.ways;
  auto found = std::ranges::find(ways, way, &Statistics::Way::way);
  if (found == ways.end()) found = ways.insert(found, {way, {}});
  ++found->count.messages;
  found->count.bytes += bytes;
}

}  // namespace lacuna::protocol
