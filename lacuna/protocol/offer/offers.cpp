// Offers: streams whose announcement others carry. A sender that may not wait for its receiver leaves the rest in an extra place.
#include <fmt/format.h>
#include <sched.h>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

// For a peer to end the pieces that it has begun: as long as NIC local waits for a peer to leave memory that is taken from it.
constexpr std::int64_t kStopping = 60'000'000'000;  // ns

}  // namespace

static_assert(sizeof(Ticket) == sizeof(Window) && std::has_unique_object_representations_v<Window>);

Result<Peer*> Ranks::sharing(int rank, std::int64_t bytes) {
  if (rank < 0 || rank >= size() || rank == rank_)
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; offers go to ranks 0 to {} but {}", rank, size() - 1, rank_));
  if (bytes <= 0) return base::fail(base::Code::invalid_argument, "an offer of no bytes");
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.channel->shares_memory())
    return base::fail(base::Code::unsupported, fmt::format("offers need memory that both CPUs reach, which rank {} has not", rank));
  return &peer;
}

// Whether the kernel's copies of this layout's runs may be worth a trial. Forces hold whatever the layout is.
bool Ranks::may_gain_directly(const Layout& layout) const {
  if (options_.force.method != nullptr || options_.force.path) return true;
  return layout.size() >= DirectCopy::kLeastBytes && layout.size() / layout.run_count() >= DirectCopy::kLeastRun;
}

// The receiver's layout is not known yet; mostly it is alike. It refuses if it is not (take_directly).
Advice Ranks::advice(const Peer& peer, const Layout& layout) {
  if (!may_gain_directly(layout)) return Advice::impossible;
  const nic::QueuePair* const copying = peer.outgoing.copying();
  if (copying == nullptr) return Advice::impossible;
  const Result<guide::Choice> choice =
      guide_.choose(layout, layout, *kind_, {.src_shared = false, .dst_shared = false, .told = true, .uses = 1});
  const bool one_copy = choice && choice->way.path == copying->path();
  if ((options_.force.method != nullptr || options_.force.path) && !one_copy) return Advice::impossible;
  return one_copy ? Advice::one_copy : Advice::two_copies;
}

Result<Windows::Place*> Ranks::place_for(Peer& peer, const Layout& layout, Behind behind) {
  const std::int64_t bytes = layout.size();
  const bool whole = behind != Behind::no;
  Transit transit = Transit::wide;
  if (!whole) {
    const Advice advised = advice(peer, layout);
    transit = advised == Advice::one_copy && options_.force.path
                  ? Transit::direct
                  : peer.transits.choose(bytes, layout.digest(), advised, bytes / layout.run_count());
  } else if (std::cmp_less_equal(bytes, Windows::kNarrowBytes)) {
    transit = peer.transits.choose(bytes, layout.digest());
  }
  Windows::Place* window = LACUNA_TRY(peer.windows.take(context_, bytes, true, transit));
  if (window != nullptr && (!whole || std::cmp_less_equal(bytes, window->bytes))) return window;
  if (behind == Behind::bounded && peer.windows.extra_bytes() + bytes > options_.offered_bytes) {
    if (window != nullptr) window->taken = false;
    return base::fail(base::Code::limit, fmt::format("more than {} bytes would wait for rank {}", options_.offered_bytes, peer.rank));
  }
  if (window != nullptr) return window;
  return peer.windows.take_extra(context_, whole ? bytes : std::min<std::int64_t>(bytes, Windows::kLongBytes));
}

// Places for all of it, so that leave() wants none.
Result<std::vector<Windows::Hold>> Ranks::rest_of(Peer& peer, const OutStream& out, std::int64_t bytes) {
  std::vector<Windows::Hold> rest;
  for (std::int64_t room = out.room(); room < bytes; room += rest.back().bytes()) {
    Windows::Hold place(*LACUNA_TRY(peer.windows.take_extra(context_, out.place_of(bytes - room))));
    rest.push_back(std::move(place));
  }
  return rest;
}

Result<Request*> Ranks::offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket) {
  const auto lock = enter();
  Peer& peer = *LACUNA_TRY(sharing(dest, layout.size()));
  if (peer.lost) return std::unexpected(*peer.lost);
  Windows::Hold place(*LACUNA_TRY(place_for(peer, layout, behind)));
  const OutStream out(place.place(), peer.stores, layout.size());
  std::vector<Windows::Hold> rest;
  if (behind != Behind::no) rest = LACUNA_TRY(rest_of(peer, out, layout.size()));
  if (peer.sending.size() == peer.sending.capacity()) peer.sending.reserve(2 * peer.sending.size() + 8);
  Request* request = fresh();
  request->sends = request->offered = true;
  request->status = {.source = rank_, .tag = 0, .bytes = layout.size()};
  request->bytes = layout.size();
  request->peer = dest;
  request->kept = layout;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(const_cast<void*>(base));
  request->protocol = Protocol::stream;
  request->state = Request::State::moving;
  request->out = out;
  request->rest = std::move(rest);
  peer.transits.sent(place.use(), *request->out);
  if (request->out->direct()) {
    const std::uint32_t number = tell(peer, layout);
    const DirectEnd own{.addr = reinterpret_cast<std::uint64_t>(base), .digest = layout.digest(), .layout = number};
    if (number != 0) {
      request->out->offer_directly(own, options_.force.path.has_value());
    } else {
      request->out->pack_after_all();
    }
  }
  const Window window = request->out->describe(0);
  std::memcpy(ticket.bytes.data(), &window, sizeof window);
  peer.sending.push_back(request);
  step("offer");
  return request;
}

void Ranks::set_aside(Request* offer) {
  const auto lock = enter();
  if (!offer->out || offer->out->direct()) return;
  Peer& peer = peers_[static_cast<std::size_t>(offer->peer)];
  std::erase(peer.sending, offer);
  offer->aside = peer.stores;
}

// Without a lock: the place is this offer's, and nothing else has the request.
void Ranks::pack(Request* offer) {
  if (!offer->aside || !offer->out) return;
  const Result<bool> packed = offer->out->step(context_, *offer->aside, *offer->layout, offer->base);
  if (!packed) offer->error = packed.error();  // for leave() to see
}

Result<void> Ranks::leave(Request* offer) {
  const auto lock = enter();
  Peer& peer = peers_[static_cast<std::size_t>(offer->peer)];
  if (offer->aside) {
    peer.stores = *offer->aside;
    offer->aside.reset();
    if (offer->error) lose(peer, *offer->error);
    if (peer.lost) {
      fail(*offer, *peer.lost);
      return {};
    }
    peer.sending.push_back(offer);
  }
  while (offer->out) {
    if (const Result<bool> gone = go_on(peer, *offer); !gone) {
      lose(peer, gone.error());
      return {};
    }
    if (!offer->out) break;
    if (offer->out->direct()) {
      if (!offer->out->withdraw()) idle();  // its receiver is at it
      continue;
    }
    if (offer->rest.empty()) {
      Windows::Hold place(*LACUNA_TRY(peer.windows.take_extra(context_, offer->out->place_of(offer->out->left()))));
      offer->rest.push_back(std::move(place));
    }
    offer->out->move_to(offer->rest.back().use());
    offer->rest.pop_back();
    step("moved");
  }
  std::erase(peer.sending, offer);
  return {};
}

bool Ranks::take_back(Request* offer) {
  if (!offer->out) return false;
  std::erase(peers_[static_cast<std::size_t>(offer->peer)].sending, offer);
  offer->out->take_back();
  retire(offer);
  return true;
}

Result<Request*> Ranks::accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket) {
  const auto lock = enter();
  Peer& peer = *LACUNA_TRY(sharing(source, bytes));
  Window window;
  std::memcpy(&window, ticket.bytes.data(), sizeof window);
  InStream stream = LACUNA_TRY(InStream::open(*peer.channel, peer.seen, window, bytes));
  if (stream.offers_directly()) {  // from a layout that came before
    if (const Result<bool> came = advance(peer); !came) lose(peer, came.error());
  }
  Request* request = fresh();
  request->kept = layout;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(base);
  Head head;
  head.bytes = static_cast<std::uint64_t>(bytes);
  deliver_stream(peer, *request, head, stream);
  if (!peer.lost) {
    if (request->in && request->in->offers_directly()) take_directly(peer, *request, *request->in);
    return request;
  }
  // What it left behind before it went is there still.
  peer.receiving.pop_back();
  for (Result<bool> some = true; some && *some && request->in && !request->in->done();)
    some = request->in->step(context_, *request->layout, request->base);
  if (request->in && request->in->done()) {
    done(*request);
  } else {
    fail(*request, *peer.lost);
  }
  return request;
}

// --- direct copies ---------------------------------------------------------------------------------------------------

// The sender's part. Afterwards the stream is done, still direct, or to be packed.
Result<bool> Ranks::copy_out(Peer& peer, Request& send, OutStream& out) {
  DirectMemory& memory = out.direct_memory();
  const DirectState state = out.direct_state();
  if (state == DirectState::offered && (!out.waited_for_long() || !out.withdraw())) return false;
  if (state != DirectState::taken) {
    out.pack_after_all();
    peer.transits.offered(false);
    return true;
  }
  nic::QueuePair* const copying = peer.outgoing.copying();
  if (!send.copy && copying != nullptr) {
    const DirectEnd there = base::read_once(memory.receiver);
    const Result<Layout> layout = peer.heard.find(there.layout);
    if (layout && layout->digest() == there.digest && layout->size() >= send.bytes)
      send.copy.emplace(memory, *copying, true, *send.layout, send.base, *layout, there.addr, send.bytes);
  }
  if (send.copy && send.copy->step()) return true;
  if (!DirectCopy::over(memory, send.bytes)) return false;
  send.copy.reset();
  const bool failed = memory.failed.load(std::memory_order_relaxed) != 0;
  peer.transits.offered(!failed);
  if (failed) {
    out.pack_after_all();
  } else {
    out.copied();
    send.protocol = Protocol::direct;
    step("copied out");
  }
  return true;
}

// A receive that is too short for its message, one of short runs (the columns of a transpose, whose rows are long), or a layout that has not come yet, is
// for windows.
void Ranks::take_directly(Peer& peer, Request& receive, InStream& in) {
  const DirectEnd there = base::read_once(in.direct_memory().sender);
  nic::QueuePair* const copying = peer.incoming.copying();
  const Result<Layout> layout = peer.heard.find(there.layout);
  if (copying == nullptr || !layout || layout->digest() != there.digest || layout->size() != receive.bytes ||
      receive.layout->size() < receive.bytes || !may_gain_directly(*receive.layout))
    return in.refuse_directly();
  const DirectEnd here{
      .addr = reinterpret_cast<std::uint64_t>(receive.base), .digest = receive.layout->digest(), .layout = tell(peer, *receive.layout)};
  if (in.take_directly(here))
    receive.copy.emplace(in.direct_memory(), *copying, false, *receive.layout, receive.base, *layout, there.addr, receive.bytes);
}

// Of a request that fails: its memory is the caller's again, so the peer may not read or write it any more.
void Ranks::stop_copying(Request& request) {
  DirectMemory* memory = request.copy && request.in ? &request.in->direct_memory() : nullptr;
  if (request.out && request.out->direct() && !request.out->withdraw()) memory = &request.out->direct_memory();
  request.copy.reset();
  if (memory == nullptr) return;
  Peer& peer = peers_[static_cast<std::size_t>(request.peer)];
  const nic::QueuePair* const copying = (request.sends ? peer.outgoing : peer.incoming).copying();
  DirectCopy::stop(*memory);
  const std::int64_t deadline = base::now_ns() + kStopping;
  while (DirectCopy::at_work(*memory, request.bytes)) {
    [[maybe_unused]] const base::Error* const looked = peer.channel->fault();  // whether the peer lives
    if (copying == nullptr || copying->fault() != nullptr) return;
    if (base::now_ns() > deadline)
      return base::log(base::Level::error, fmt::format("rank {} does not end a copy into memory that is taken from it", peer.rank));
    sched_yield();
  }
}

Result<bool> Ranks::come_on(Request& receive, InStream& in) {
  if (!receive.copy) return in.step(context_, *receive.layout, receive.base);
  if (receive.copy->step()) return true;
  DirectMemory& memory = in.direct_memory();
  if (!DirectCopy::over(memory, receive.bytes)) return false;
  receive.copy.reset();
  if (memory.failed.load(std::memory_order_relaxed) == 0) {
    in.copied();
    receive.protocol = Protocol::direct;
    step("copied in");
  }
  return true;
}

}  // namespace lacuna::protocol
