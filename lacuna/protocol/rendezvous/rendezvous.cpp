#include "lacuna/protocol/rendezvous/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {

using method::Role;

namespace {

std::span<std::byte> span_of(const Layout& layout, std::byte* base) {
  return {base + layout.true_lower_bound(), static_cast<std::size_t>(layout.true_extent())};
}

nic::Rights rights_of(Role role) {
  const bool sends = role == Role::sender;
  return {.local_write = !sends, .remote_write = !sends, .remote_read = sends, .relaxed = true};
}

}  // namespace

Result<void> Line::connect(nic::Context& context, nic::Bootstrap& bootstrap) {
  const nic::Limits& limits = context.limits();
  const method::Endpoint::Options options{.max_send_wr = std::min(128, limits.max_send_wr),
                                          .max_recv_wr = std::min(128, limits.max_recv_wr)};
  for (const nic::PathInfo& path : limits.paths) {
    if (!path.available) continue;
    const std::size_t endpoints = path.mover == nic::Mover::device ? kAtOnce : 1;  // a CPU that moves bytes registers nothing meanwhile
    for (std::size_t i = 0; i < endpoints; ++i)
      lanes_.push_back({LACUNA_TRY(method::Endpoint::connect(context, bootstrap, path.path, options)), {}});
  }
  return {};
}

std::size_t Line::endpoints(nic::Path path) const {
  return static_cast<std::size_t>(std::ranges::count(lanes_, path, [](const Lane& one) { return one.endpoint->qp().path(); }));
}

const Line::Lane* Line::lane(nic::Path path, std::uint32_t part) const {
  const auto first = std::ranges::find(lanes_, path, [](const Lane& one) { return one.endpoint->qp().path(); });
  if (first == lanes_.end()) return nullptr;
  return &first[static_cast<std::ptrdiff_t>(part % endpoints(path))];
}

method::Endpoint* Line::endpoint(nic::Path path, std::uint32_t part) const {
  const Lane* found = lane(path, part);
  return found != nullptr ? found->endpoint.get() : nullptr;
}

Result<const nic::RegisteredBuffer*> Line::staging(nic::Path path, std::uint32_t part, std::int64_t bytes, std::int64_t timeout_ns) {
  Lane& of = const_cast<Lane&>(*lane(path, part));
  if (std::cmp_less(of.staging.buffer.size(), bytes)) {
    if (of.staging.buffer.size() > 0) LACUNA_TRY(of.endpoint->forget(of.staging.region, timeout_ns));
    of.staging = {};
    of.staging = LACUNA_TRY(nic::RegisteredBuffer::create(of.endpoint->context(), bytes, {.relaxed = true}));
  }
  return &of.staging;
}

Result<void> Line::forget(const nic::Region& region, std::int64_t timeout_ns) {
  Result<void> first;
  for (const Lane& one : lanes_) {
    if (Result<void> forgotten = one.endpoint->forget(region, timeout_ns); !forgotten && first) first = std::move(forgotten);
  }
  return first;
}

nic::QueuePair* Line::copying() const {
  const auto found = std::ranges::find_if(lanes_, [](const Lane& one) { return one.endpoint->qp().copies(); });
  return found != lanes_.end() ? &found->endpoint->qp() : nullptr;
}

// --- the two ends ----------------------------------------------------------------------------------------------------

std::uint32_t Ranks::tell(Peer& peer, const Layout& layout) {
  const Told::Telling telling = peer.told.tell(layout);
  for (std::size_t from = 0; from < telling.wire.size(); from += kMostPayload) {
    Head head;
    head.kind = Kind::layout;
    put_body(head, LayoutPart{.layout = telling.number, .unused = 0, .total = telling.wire.size(), .from = from});
    say(peer, head, std::span(telling.wire).subspan(from, std::min(kMostPayload, telling.wire.size() - from)));
  }
  if (!telling.wire.empty()) ++statistics_.layouts_told;
  return telling.number;
}

// Whether a send's memory can be registered. Once the receiver has relied on that it is too late to find out, so where it is doubtful it is tried. A layout of which this
// is not so is not told to the peer: all of it is copied.
bool Ranks::can_register(Request& send) {
  if (options_.registering == Registering::copy || !registrations_.doubtful(*send.layout, send.base)) return true;
  auto lease =
      registrations_.lease(span_of(*send.layout, send.base), rights_of(Role::sender), options_.registering != Registering::pipeline);
  if (lease) send.lease = std::move(*lease);
  return static_cast<bool>(send.lease);
}

bool Ranks::knows(const Request& send) { return registrations_.has(span_of(*send.layout, send.base), rights_of(Role::sender)); }

// The receiver's decision for both ends.
Result<void> Ranks::cut(Carried& now) {
  const Request& request = *now.request;
  const Layout bytes = LACUNA_TRY(Layout::bytes(request.bytes));
  const bool fits = request.layout->size() == request.bytes && now.own_number != 0 && !now.unfit;
  const Layout& src = now.theirs ? *now.theirs : bytes;
  const Layout& dst = fits ? *request.layout : bytes;
  const std::span<std::byte> memory = span_of(dst, request.base);
  const Side sides[2] = {
      {.fits = now.theirs.has_value(), .registered = now.theirs_known, .register_ns = registrations_.cost_ns(src.true_extent())},
      {.fits = fits,
       .registered = fits && registrations_.has(memory, rights_of(Role::receiver)),
       .register_ns = registrations_.cost_ns(dst.true_extent())},
  };
  now.known = sides[0].registered && sides[1].registered;
  const guide::Placement placement{.src_shared = now.theirs_shared, .dst_shared = false, .uses = now.known ? 0.0F : 1.0F};
  const bool stays = fits && registering() == Registering::automatic && registrations_.mode() != Registrations::Mode::each_transfer;
  Reuse::Account* account = stays ? &reuse_.of(request.base, src.digest(), dst.digest()) : nullptr;
  const double saved_ns = account != nullptr ? account->saved_ns() : 0;
  now.cut = choose_cut(registering(), src, dst, sides, options_.part_bytes, guide_, *kind_, placement, saved_ns);
  if (account == nullptr) return {};
  if (now.known) {
    account->found();
  } else if (!now.cut.whole()) {
    account->copied(now.cut.saves_ns);
  } else if (saved_ns > 0) {
    account->registers();
  }
  return {};
}

// Makes this end ready for the next part. Errors: at the receiver, of this message alone.
Result<void> Ranks::make_part(Peer& peer, Carried& now, Role role) {
  const Request& request = *now.request;
  const bool sends = role == Role::sender;
  Moving part;
  part.index = now.made;
  part.copied = now.cut.copies(role, part.index);
  const std::int64_t begin = now.cut.begin(part.index);
  const std::int64_t size = now.cut.size(part.index);
  if (!part.copied) {
    part.own = LACUNA_TRY(request.layout->slice(begin, size));
    part.base = request.base;
    auto lease = registrations_.lease(span_of(part.own, part.base), rights_of(role), options_.registering != Registering::pipeline);
    if (!lease && sends) return std::unexpected(std::move(lease).error());
    if (!lease && part.index == 0) {  // nothing was told yet
      now.unfit = true;
      LACUNA_TRY(cut(now));
      return make_part(peer, now, role);
    }
    part.copied = !lease;
    if (lease) part.lease = std::move(*lease);
  }
  const Layout bytes = LACUNA_TRY(Layout::bytes(size));
  if (part.copied) part.own = bytes;
  const bool theirs_copied = sends ? now.said.front().copied : now.cut.copies(Role::sender, part.index);
  const Layout theirs = theirs_copied || !now.theirs ? bytes : LACUNA_TRY(now.theirs->slice(begin, size));
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
    part.way = LACUNA_TRY(way_for(part, layouts, placement, now.cut.count() == 1));
  }
  layouts.notify = part.way.notify;
  Line& line = sends ? peer.outgoing : peer.incoming;
  method::Endpoint* endpoint = line.endpoint(part.way.path, part.index);
  if (endpoint == nullptr) return base::fail(base::Code::malformed, "a way on a path that there is not");
  const nic::Region* region = part.copied ? nullptr : &part.lease.region();
  if (part.copied) {
    const nic::RegisteredBuffer& staging = *LACUNA_TRY(line.staging(part.way.path, part.index, size, options_.timeout_ns));
    part.base = staging.buffer.data();
    region = &staging.region;
    if (sends) context_.pack(*request.layout, request.base, begin, size, part.base, copy::Caching::asked);
    statistics_.copied_bytes += size;
  } else if (part.way.method->indirect_keys) {
    part.lease.bound();
  }
  part.operation = LACUNA_TRY(method::make(*part.way.method, role, *endpoint, layouts, {.region = region}));
  LACUNA_TRY(part.operation->prepare(part.base));
  if (now.cut.count() > 1) ++statistics_.parts;
  ++now.made;
  now.parts.push_back(std::move(part));
  return {};
}

// Parts that fly side by side tell nothing of their ways.
Result<guide::Way> Ranks::way_for(Moving& part, const method::Transfer& layouts, const guide::Placement& placement, bool alone) {
  if (!alone) return LACUNA_TRY(guide_.choose(layouts.src, layouts.dst, *kind_, placement)).way;
  const auto chosen = LACUNA_TRY(learner_.choose(guide_, layouts.src, layouts.dst, *kind_, placement));
  part.trial = chosen.trial;
  if (part.trial != 0) part.begun_ns = context_.now();
  return chosen.choice.way;
}

// An announced message cannot be received.
void Ranks::drop(Peer& peer, std::uint32_t number, base::Code code) {
  Head head;
  head.kind = Kind::dropped;
  head.number = number;
  put_body(head, Dropped{.number = 0, .code = static_cast<std::uint32_t>(code)});
  say(peer, head);
}

// Whether the next part can be made: those before it are as far as they get without it, its endpoint is free, and a sender knows its way.
bool Ranks::may_make(const Line& line, const Carried& now, Role role) {
  if (now.made == now.cut.count() || (role == Role::sender && now.said.empty())) return false;
  if (now.parts.empty()) return true;
  const nic::Path path = role == Role::sender ? now.said.front().way.path : now.parts.front().way.path;
  return now.parts.back().told && now.parts.size() < line.endpoints(path);
}

// The first transfer of a line, as far as it goes. Errors, of the peer: what is wrong with this one alone ends it alone, as long as the peer does not rely on it.
Result<bool> Ranks::carry(Peer& peer, Role role) {
  Line& line = role == Role::sender ? peer.outgoing : peer.incoming;
  if (line.carried.empty()) return false;
  Carried& now = line.carried.front();
  Request& request = *now.request;
  bool moved = false;
  if (now.cut.bytes == 0) LACUNA_TRY(cut(now));
  for (Moving& part : now.parts) moved = LACUNA_TRY(move_part(peer, now, part, role)) || moved;
  if (may_make(line, now, role)) {
    if (Result<void> made = make_part(peer, now, role); !made) {
      base::Error error = std::move(made).error();
      const bool chosen = error.code == base::Code::unsupported || error.code == base::Code::invalid_argument;
      if (role == Role::sender) return base::fail(chosen ? base::Code::malformed : error.code, std::move(error).message);
      if (now.made > 0) return std::unexpected(std::move(error));
      drop(peer, now.peer_number, error.code);
      fail(request, std::move(error));
      line.carried.pop_front();
      return true;
    }
    LACUNA_TRY(move_part(peer, now, now.parts.back(), role));
    moved = true;
  }
  while (!now.parts.empty() && now.parts.front().operation == nullptr) now.parts.pop_front();
  if (now.made < now.cut.count() || !now.parts.empty()) return moved;
  Statistics::count(role == Role::sender ? statistics_.sent : statistics_.received, Protocol::rendezvous, request.bytes);
  line.carried.pop_front();
  done(request);
  return true;
}

Result<bool> Ranks::move_part(Peer& peer, Carried& now, Moving& part, Role role) {
  if (part.operation == nullptr) return false;
  const bool sends = role == Role::sender;
  const Request& request = *now.request;
  method::Endpoint& endpoint = *(sends ? peer.outgoing : peer.incoming).endpoint(part.way.path, part.index);
  bool moved = endpoint.poll() > 0;
  if (!part.told) {
    const auto target = LACUNA_TRY(part.operation->target());
    if (!target) return LACUNA_TRY(alive(endpoint, moved));
    LACUNA_TRY(tell_part(peer, now, part, *target, role));
    part.told = true;
    moved = true;
  }
  if (!part.started) {
    if (!sends && part.pulls() && !part.target_came) return LACUNA_TRY(alive(endpoint, moved));
    step("start method");
    LACUNA_TRY(part.operation->start(part.base, part.target));
    part.started = true;
    moved = true;
  }
  if (!LACUNA_TRY(part.operation->progress())) return LACUNA_TRY(alive(endpoint, moved));
  step("method done");
  part.operation.reset();
  part.lease = {};
  if (part.trial != 0) learner_.took(guide_, part.trial, static_cast<double>(context_.now() - part.begun_ns));
  const std::int64_t begin = now.cut.begin(part.index);
  const std::int64_t size = now.cut.size(part.index);
  if (!sends) {
    const std::int64_t wanted = std::min(begin + size, request.layout->size()) - begin;
    if (part.copied && wanted > 0) context_.unpack(*request.layout, request.base, begin, wanted, part.base, copy::Caching::asked);
    count(part.way, size);
  }
  return true;
}

Result<void> Ranks::tell_part(Peer& peer, Carried& now, const Moving& part, const method::Target& target, Role role) {
  if (role == Role::sender && !part.pulls()) return {};
  const Request& request = *now.request;
  const auto way = part.way.encode();
  Head head;
  head.number = now.peer_number;
  if (role == Role::receiver && part.index == 0) {
    // Its number may have gone to another layout since.
    if (now.own_number != 0) now.own_number = tell(peer, *request.layout);
    head.kind = Kind::answer;
    Answer answer{.number = request.number,
                  .layout = now.own_number,
                  .way = {},
                  .how = How::method,
                  .part = static_cast<std::uint64_t>(now.cut.part),
                  .copied = {now.cut.copied[0], now.cut.copied[1]}};
    std::memcpy(answer.way, way.data(), sizeof answer.way);
    put_body(head, answer);
    step("send answer");
  } else {
    head.kind = role == Role::receiver ? Kind::part : Kind::ready;
    Part body{.index = part.index, .way = {}, .copied = part.copied ? std::uint8_t{1} : std::uint8_t{0}};
    std::memcpy(body.way, way.data(), sizeof body.way);
    put_body(head, body);
    step(role == Role::receiver ? "send part" : "send ready");
  }
  return say_long(peer, head, target.encode());
}

// Called before a region goes.
Result<void> Ranks::forget(const nic::Region& region) {
  Result<void> first;
  for (Peer& peer : peers_) {
    for (Line* line : {&peer.outgoing, &peer.incoming}) {
      Result<void> forgotten = line->forget(region, options_.timeout_ns);
      // Who has gone uses nothing any more; what another error says counts.
      if (!forgotten && (first || first.error().code == lacuna::base::Code::peer_lost)) first = std::move(forgotten);
    }
  }
  return first;
}

Result<std::uint32_t> Ranks::register_memory(void* base, std::int64_t bytes) {
  const auto lock = enter();
  if (base == nullptr || bytes <= 0)
    return lacuna::base::fail(lacuna::base::Code::invalid_argument, fmt::format("{} bytes of memory to register", bytes));
  return registrations_.hold({static_cast<std::byte*>(base), static_cast<std::size_t>(bytes)});
}

Result<void> Ranks::deregister_memory(std::uint32_t number) {
  const auto lock = enter();
  return registrations_.release(number);
}

Result<bool> Ranks::alive(const method::Endpoint& endpoint, bool moved) {
  if (const base::Error* fault = endpoint.qp().fault()) return std::unexpected(*fault);
  return moved;
}

void Ranks::count(const guide::Way& way, std::int64_t bytes) {
  auto found = std::ranges::find(statistics_.ways, way, &Statistics::Way::way);
  if (found == statistics_.ways.end()) found = statistics_.ways.insert(found, {way, {}});
  ++found->count.messages;
  found->count.bytes += bytes;
}

// A target is longer than a payload where a transfer is cut into very many keys.
Result<void> Ranks::say_long(Peer& peer, Head head, std::span<const std::byte> payload) {
  if (payload.size() > kMostPayload)
    return base::fail(base::Code::limit, fmt::format("a target of {} bytes; a head carries {}", payload.size(), kMostPayload));
  say(peer, head, payload);
  return {};
}

}  // namespace lacuna::protocol
