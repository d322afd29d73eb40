#include "lacuna/protocol/offer/offer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lacuna::protocol {

static_assert(sizeof(Ticket) == sizeof(RingDescriptor) && std::has_unique_object_representations_v<RingDescriptor>);

// --- where an offer goes ---------------------------------------------------------------------------------------------

Result<Peer*> Offers::sharing(int rank, std::int64_t bytes) {
  const int size = local_.size();
  if (rank < 0 || rank >= size || rank == local_.rank)
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; offers go to ranks 0 to {} but {}", rank, size - 1, local_.rank));
  if (bytes <= 0) return base::fail(base::Code::invalid_argument, "an offer of no bytes");
  Peer& peer = local_.peer(rank);
  LACUNA_TRY(local_.attach(peer));
  if (!peer.channel->shares_memory())
    return base::fail(base::Code::unsupported, fmt::format("offers need memory that both CPUs reach, which rank {} has not", rank));
  return &peer;
}

// A user who forces a path decides between streams and direct copies, for every layout.
Transit Offers::forced_transit(Peer& peer, const Layout& layout, bool may_copy) {
  const bool one_copy = may_copy && choices_.path_of(layout) == nic::Path::kernel;
  if (one_copy && local_.options.force.path) return Transit::direct;
  return peer.streams.transits.choose(layout.size(), layout.digest(), one_copy ? Advice::one_copy : Advice::impossible,
                                      layout.size() / layout.run_count());
}

// The receiver's layout is not known yet; mostly it is alike. The receiver refuses if it is not
// (StreamTransfers::take_directly). By usual prices one copy is faster for long runs. In some VMs it takes three times
// as long, so there it is tried after what is never so much slower.
Transit Offers::transit_for(Peer& peer, const Layout& layout, Behind behind) {
  const bool left_behind = behind != Behind::no;
  const bool may_copy = !left_behind && peer.copying(true) != nullptr;
  const guide::Force& force = local_.options.force;
  if (!left_behind && (force.method != nullptr || force.path)) return forced_transit(peer, layout, may_copy);
  if (left_behind && std::cmp_greater(layout.size(), StreamRing::kNarrowBytes)) return Transit::wide;
  MessageWays& ways = choices_.messages();
  MessageWays::Chosen chosen = ways.choose(layout, {.offered = true, .left_behind = left_behind, .copies = may_copy});
  const bool tries_copies = may_copy && !chosen.forced && streams_.may_gain_directly(layout);
  if (!chosen.forced && !ways.measured() && chosen.way == MessageWay::direct) chosen.way = chosen.stream;
  return StreamTransfers::transit(peer, layout, chosen, tries_copies ? Advice::two_copies : Advice::impossible);
}

base::Error Offers::no_room(std::int64_t bytes, int rank) const {
  return {base::Code::limit,
          fmt::format("{} bytes for rank {}: the {} bytes of memory that this rank shares are in use", bytes, rank, local_.pool.bound())};
}

// Of an offer whose receiver keeps pace, a part of it is there at a time.
Result<RingHold> Offers::ring_for(Peer& peer, const Layout& layout, Behind behind) {
  const std::int64_t bytes = layout.size();
  const bool whole = behind != Behind::no;
  StreamRings& rings = peer.streams.rings;
  StreamRing* ring = LACUNA_TRY(rings.take(local_.pool, bytes, true, transit_for(peer, layout, behind), !whole));
  if (ring == nullptr)
    ring = LACUNA_TRY(rings.take_extra(local_.pool, whole ? bytes : std::min<std::int64_t>(bytes, local_.pool.long_ring())));
  if (ring != nullptr) return RingHold(*ring);
  ++local_.statistics.shared.refused;
  return std::unexpected(no_room(bytes, peer.rank));
}

// Rings for all of it, so that leave() needs no memory.
Result<std::vector<RingHold>> Offers::rings_for_rest(Peer& peer, const OutStream& out, std::int64_t bytes) {
  std::vector<RingHold> rest;
  for (std::int64_t room = out.room(); room < bytes; room += rest.back().room()) {
    StreamRing* const ring = LACUNA_TRY(peer.streams.rings.take_extra(local_.pool, out.ring_bytes_for(bytes - room)));
    if (ring == nullptr) {
      ++local_.statistics.shared.refused;
      return std::unexpected(no_room(bytes - room, peer.rank));
    }
    rest.emplace_back(*ring);
  }
  return rest;
}

// --- the sender ------------------------------------------------------------------------------------------------------

Result<Request*> Offers::offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket) {
  Peer& peer = *LACUNA_TRY(sharing(dest, layout.size()));
  if (peer.lost) return std::unexpected(*peer.lost);
  RingHold ring = LACUNA_TRY(ring_for(peer, layout, behind));
  const OutStream out(ring.ring(), peer.streams.stores, layout.size());
  std::vector<RingHold> rest;
  if (behind != Behind::no) rest = LACUNA_TRY(rings_for_rest(peer, out, layout.size()));
  std::vector<Request*>& sending = peer.streams.sending;
  if (sending.size() == sending.capacity()) sending.reserve(2 * sending.size() + 8);
  Request* request = local_.requests.take();
  request->sends = request->offer.offered = true;
  request->status = {.source = local_.rank, .tag = 0, .bytes = layout.size()};
  request->bytes = layout.size();
  request->peer = dest;
  request->keep(layout);
  request->base = static_cast<std::byte*>(const_cast<void*>(base));
  request->protocol = Protocol::stream;
  request->state = Request::State::moving;
  request->stream.out = out;
  request->offer.rest = std::move(rest);
  peer.streams.transits.sent(ring.use(), *request->stream.out);
  if (request->stream.out->direct()) streams_.offer_directly(peer, *request, *request->stream.out);
  const RingDescriptor descriptor = request->stream.out->describe(0);
  std::memcpy(ticket.bytes.data(), &descriptor, sizeof descriptor);
  sending.push_back(request);
  local_.step("offer");
  return request;
}

void Offers::set_aside(Request* offer) {
  if (!offer->stream.out || offer->stream.out->direct()) return;
  PeerStreams& streams = local_.peer(offer->peer).streams;
  std::erase(streams.sending, offer);
  offer->offer.aside = streams.stores;
}

// Without a lock: the ring is this offer's, and no other call has the request.
void Offers::pack(Request* offer) {
  std::optional<OutStream>& out = offer->stream.out;
  if (!offer->offer.aside || !out) return;
  const Result<bool> packed = out->step(local_.context, *offer->offer.aside, *offer->layout, offer->base);
  if (!packed) offer->error = packed.error();  // for leave() to see
}

// An offer that was set aside is the peer's again. False: it has failed.
bool Offers::take_up(Peer& peer, Request& offer, const Stores& aside) {
  peer.streams.stores = aside;
  offer.offer.aside.reset();
  if (offer.error) completion_.lose(peer, *offer.error);
  if (peer.lost) {
    completion_.fail(offer, *peer.lost);
    return false;
  }
  peer.streams.sending.push_back(&offer);
  return true;
}

Result<void> Offers::leave(Request* offer) {
  Peer& peer = local_.peer(offer->peer);
  if (offer->offer.aside && !take_up(peer, *offer, *offer->offer.aside)) return {};
  while (offer->stream.out) {
    if (const Result<bool> packed = streams_.pack(peer, *offer); !packed) {
      completion_.lose(peer, packed.error());
      return {};
    }
    if (!offer->stream.out) break;
    if (offer->stream.out->direct()) {
      if (!offer->stream.out->withdraw()) progress_.idle();  // its receiver copies
    } else {
      LACUNA_TRY(move_on(peer, *offer, *offer->stream.out));
    }
  }
  std::erase(peer.streams.sending, offer);
  return {};
}

// To the next ring that was taken for the rest, or to a new one.
Result<void> Offers::move_on(Peer& peer, Request& offer, OutStream& out) {
  std::vector<RingHold>& rest = offer.offer.rest;
  if (rest.empty()) {
    StreamRing* const ring = LACUNA_TRY(peer.streams.rings.take_extra(local_.pool, out.ring_bytes_for(out.left())));
    if (ring == nullptr) return std::unexpected(no_room(out.left(), peer.rank));
    rest.emplace_back(*ring);
  }
  out.move_to(rest.back().use());
  rest.pop_back();
  local_.step("moved");
  return {};
}

bool Offers::take_back(Request* offer) {
  if (!offer->stream.out) return false;
  std::erase(local_.peer(offer->peer).streams.sending, offer);
  offer->stream.out->take_back();
  local_.requests.give_back(offer);
  return true;
}

// --- the receiver ----------------------------------------------------------------------------------------------------

Result<Request*> Offers::accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket) {
  Peer& peer = *LACUNA_TRY(sharing(source, bytes));
  RingDescriptor descriptor;
  std::memcpy(&descriptor, ticket.bytes.data(), sizeof descriptor);
  InStream stream = LACUNA_TRY(InStream::open(*peer.channel, peer.streams.seen, descriptor, bytes));
  Request* request = local_.requests.take();
  request->keep(layout);
  request->base = static_cast<std::byte*>(base);
  Head head;
  head.bytes = static_cast<std::uint64_t>(bytes);
  streams_.receive(peer, *request, head, stream);
  if (!peer.lost) return request;
  // What a peer left behind before it went is there still.
  peer.streams.receiving.pop_back();
  std::optional<InStream>& in = request->stream.in;
  for (Result<bool> some = true; some && *some && in && !in->done();) some = in->step(local_.context, *request->layout, request->base);
  if (in && in->done()) {
    completion_.done(*request);
  } else {
    completion_.fail(*request, *peer.lost);
  }
  return request;
}

}  // namespace lacuna::protocol
