#include "lacuna/protocol/rendezvous.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/protocol/communicator.hpp"

namespace lacuna::protocol {

using method::Role;

Result<void> Line::connect(nic::Context& context, nic::Bootstrap& bootstrap) {
  const nic::Limits& limits = context.limits();
  const method::Endpoint::Options options{.max_send_wr = std::min(128, limits.max_send_wr),
                                          .max_recv_wr = std::min(128, limits.max_recv_wr)};
  for (const nic::PathInfo& path : limits.paths) {
    if (!path.available) continue;
    endpoints_.push_back(LACUNA_TRY(method::Endpoint::connect(context, bootstrap, path.path, options)));
  }
  return {};
}

method::Endpoint* Line::endpoint(nic::Path path) const {
  const auto found = std::ranges::find_if(endpoints_, [&](const auto& one) { return one->qp().path() == path; });
  return found != endpoints_.end() ? found->get() : nullptr;
}

nic::QueuePair* Line::copying() const {
  const auto found = std::ranges::find_if(endpoints_, [](const auto& one) { return one->qp().copies(); });
  return found != endpoints_.end() ? &(*found)->qp() : nullptr;
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

Result<void> Ranks::prepare_carried(Peer& peer, Carried& now, Role role) {
  Request& request = *now.request;
  const bool sends = role == Role::sender;
  const Layout whole = LACUNA_TRY(Layout::bytes(request.bytes));
  const bool fits = request.layout->size() == request.bytes && now.own_number != 0;
  const Layout& own = fits ? *request.layout : whole;
  now.base = request.base;
  if (!fits) {
    now.piece = LACUNA_TRY(nic::RegisteredBuffer::create(context_, request.bytes, {.relaxed = true}));
    now.base = now.piece.buffer.data();
    if (sends) context_.pack(*request.layout, request.base, 0, request.bytes, now.base, copy::Caching::asked);
  } else {
    const std::span<std::byte> bytes(now.base + own.true_lower_bound(), static_cast<std::size_t>(own.true_extent()));
    now.region =
        LACUNA_TRY(context_.register_memory(bytes, {.local_write = !sends, .remote_write = !sends, .remote_read = sends, .relaxed = true}));
  }
  const nic::Region& region = fits ? now.region : now.piece.region;
  const Layout& theirs = now.theirs ? *now.theirs : whole;
  const method::Transfer layouts{.src = sends ? own : theirs, .dst = sends ? theirs : own, .notify = {}};
  if (!sends) {
    guide::Placement placement{.src_shared = now.theirs_shared, .dst_shared = region.shared(), .uses = 1};
    now.way = LACUNA_TRY(guide_.choose(layouts.src, layouts.dst, *kind_, placement)).way;
  }
  method::Endpoint* endpoint = (sends ? peer.outgoing : peer.incoming).endpoint(now.way.path);
  if (endpoint == nullptr) return base::fail(base::Code::malformed, "a way on a path that there is not");
  method::Transfer transfer = layouts;
  transfer.notify = now.way.notify;
  now.operation = LACUNA_TRY(method::make(*now.way.method, role, *endpoint, transfer, {.region = &region}));
  return now.operation->prepare(now.base);
}

// An announced message cannot be received.
void Ranks::drop(Peer& peer, std::uint32_t number, base::Code code) {
  Head head;
  head.kind = Kind::dropped;
  head.number = number;
  put_body(head, Dropped{.number = 0, .code = static_cast<std::uint32_t>(code)});
  say(peer, head);
}

// The first transfer of a line, as far as it goes. Errors, of the peer: what is wrong with this one alone ends it alone.
Result<bool> Ranks::carry(Peer& peer, Role role) {
  Line& line = role == Role::sender ? peer.outgoing : peer.incoming;
  if (line.carried.empty()) return false;
  Carried& now = line.carried.front();
  Request& request = *now.request;
  if (now.operation == nullptr) {
    if (Result<void> prepared = prepare_carried(peer, now, role); !prepared) {
      if (role == Role::sender) {  // the receiver relies on it
        const bool chosen = prepared.error().code == base::Code::unsupported || prepared.error().code == base::Code::invalid_argument;
        return base::fail(chosen ? base::Code::malformed : prepared.error().code, std::move(prepared).error().message);
      }
      drop(peer, now.peer_number, prepared.error().code);
      fail(request, std::move(prepared).error());
      line.carried.pop_front();
      return true;
    }
  }
  method::Endpoint& endpoint = *line.endpoint(now.way.path);
  const bool pulls = now.pulls();
  bool moved = endpoint.poll() > 0;
  if (!now.told) {
    const auto target = LACUNA_TRY(now.operation->target());
    if (!target) return LACUNA_TRY(alive(endpoint, moved));
    Head head;
    head.number = now.peer_number;
    if (role == Role::receiver) {
      head.kind = Kind::answer;
      // Its number may have gone to another layout since.
      if (now.own_number != 0) now.own_number = tell(peer, *request.layout);
      Answer answer{.number = request.number, .layout = now.own_number, .way = {}, .how = How::method};
      const auto way = now.way.encode();
      std::memcpy(answer.way, way.data(), sizeof answer.way);
      put_body(head, answer);
      step("send answer");
    } else {
      head.kind = Kind::ready;
      step("send ready");
    }
    if (role == Role::receiver || pulls) LACUNA_TRY(say_long(peer, head, target->encode()));
    now.told = true;
    moved = true;
  }
  if (!now.started) {
    if (role == Role::receiver && pulls && !now.target_came) return LACUNA_TRY(alive(endpoint, moved));
    step("start method");
    LACUNA_TRY(now.operation->start(now.base, now.target));
    now.started = true;
    moved = true;
  }
  if (!LACUNA_TRY(now.operation->progress())) return LACUNA_TRY(alive(endpoint, moved));
  step("method done");
  now.operation.reset();
  if (now.way.method->indirect_keys)
    LACUNA_TRY(endpoint.forget(now.region.lkey() != 0 ? now.region : now.piece.region, options_.timeout_ns));
  if (role == Role::receiver && now.piece.buffer.data() != nullptr) {
    const std::int64_t wanted = std::min(request.bytes, request.layout->size());
    if (wanted > 0) context_.unpack(*request.layout, request.base, 0, wanted, now.base, copy::Caching::asked);
  }

  Statistics::count(role == Role::sender ? statistics_.sent : statistics_.received, Protocol::rendezvous, request.bytes);
  if (role == Role::receiver) count(now.way, request.bytes);
  line.carried.pop_front();
  done(request);
  return true;
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
