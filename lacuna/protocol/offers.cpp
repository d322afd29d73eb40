// Offers: streams whose announcement others carry. A sender that may not wait for its receiver leaves the rest in an extra place.
#include <fmt/format.h>

#include "lacuna/protocol/communicator.hpp"

namespace lacuna::protocol {

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

Result<Windows::Place*> Ranks::place_for(Peer& peer, const Layout& layout, bool whole) {
  const std::int64_t bytes = layout.size();
  const Ring ring = whole && std::cmp_greater(bytes, Windows::kNarrowBytes) ? Ring::wide : peer.rings.choose(bytes, layout.digest());
  Windows::Place* window = LACUNA_TRY(peer.windows.take(context_, bytes, true, ring));
  if (window != nullptr && (!whole || std::cmp_less_equal(bytes, window->bytes))) return window;
  if (whole && peer.windows.extra_bytes() + bytes > options_.offered_bytes) {
    if (window != nullptr) window->taken = false;
    return base::fail(base::Code::limit, fmt::format("more than {} bytes would wait for rank {}", options_.offered_bytes, peer.rank));
  }
  if (window != nullptr) return window;
  return peer.windows.take_extra(context_, whole ? bytes : std::min<std::int64_t>(bytes, Windows::kLongBytes));
}

Result<Request*> Ranks::offer(const void* base, const Layout& layout, int dest, bool whole, Ticket& ticket) {
  const auto lock = enter();
  Peer& peer = *LACUNA_TRY(sharing(dest, layout.size()));
  if (peer.lost) return std::unexpected(*peer.lost);
  Windows::Place* place = LACUNA_TRY(place_for(peer, layout, whole));
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
  request->out.emplace(*place, peer.stores, request->bytes);
  peer.rings.sent(*place, *request->out);
  const Window window = request->out->describe(0);
  std::memcpy(ticket.bytes.data(), &window, sizeof window);
  peer.sending.push_back(request);
  step("offer");
  return request;
}

Result<void> Ranks::leave(Request* offer) {
  const auto lock = enter();
  Peer& peer = peers_[static_cast<std::size_t>(offer->peer)];
  while (offer->out) {
    if (const Result<bool> gone = go_on(peer, *offer); !gone) {
      lose(peer, gone.error());
      return {};
    }
    if (!offer->out) break;
    offer->out->move_to(*LACUNA_TRY(peer.windows.take_extra(context_, offer->out->left())));
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
  Request* request = fresh();
  request->kept = layout;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(base);
  Head head;
  head.bytes = static_cast<std::uint64_t>(bytes);
  deliver_stream(peer, *request, head, stream);
  if (!peer.lost) return request;
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

}  // namespace lacuna::protocol
