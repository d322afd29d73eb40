#include "lacuna/protocol/communicator/communicator.hpp"
#include "lacuna/base/rarely.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::protocol {

Result<Peer*> Communicator::Parts::peer_of(int rank, int tag) {
  if (rank < 0 || rank >= local.size())
    return base::fail(base::Code::invalid_argument, fmt::format("rank {}; there are ranks 0 to {}", rank, local.size() - 1));
  if (!local.cards.empty() && rank != local.rank)
    return base::fail(base::Code::unsupported, "this group has no connections, so it has no messages but offers");
  if (tag < 0 && !is_taken(tag))
    return base::fail(base::Code::invalid_argument, fmt::format("tag {}; tags of messages are 0 or more", tag));
  if (++calls_ % kCallsPerAdvance == 0) progress.advance();  // a program whose sends all go at once would serve no peer
  Peer& peer = local.peer(rank);
  if (peer.lost) return std::unexpected(*peer.lost);
  return &peer;
}

Result<Status> Communicator::Parts::end(Request* request) {
  Result<Status> result = request->status;
  if (request->access.number != 0) result->tag = 0;
  if (request->error) result = std::unexpected(std::move(*request->error));
  local.requests.give_back(request);
  if (planted) [[unlikely]]
    return std::unexpected(*planted);
  return result;
}

int Communicator::rank() const { return parts_->local.rank; }
int Communicator::size() const { return parts_->local.size(); }
nic::Context& Communicator::context() { return parts_->local.context; }
const base::Error* Communicator::lost() const { return parts_->local.lost ? &*parts_->local.lost : nullptr; }
bool Communicator::by_hub() const { return parts_->local.hub != nullptr; }
const std::optional<guide::ExchangePrices>& Communicator::exchange_prices() const { return parts_->choices.profile().exchanges; }

// --- sends and receives ----------------------------------------------------------------------------------------------

Result<Request*> Communicator::isend(const void* base, const Layout& layout, int dest, int tag) {
  const auto lock = parts_->enter();
  Peer& peer = *LACUNA_TRY(parts_->peer_of(dest, tag));
  RequestPool& requests = parts_->local.requests;
  Request* request = requests.take();
  request->sends = true;
  request->status = {.source = parts_->local.rank, .tag = tag, .bytes = layout.size()};
  request->bytes = layout.size();
  request->peer = dest;
  const auto chosen = parts_->sends.send_small(peer, base, layout, tag);
  if (!chosen) {
    request->state = Request::State::done;
    return request;
  }
  request->tag = tag;
  request->keep(layout);
  request->base = static_cast<std::byte*>(const_cast<void*>(base));
  if (Result<void> begun = parts_->sends.begin(*request, *chosen); !begun) {
    requests.give_back(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

Result<Request*> Communicator::irecv(void* base, const Layout& layout, int source, int tag) {
  const auto lock = parts_->enter();
  RequestPool& requests = parts_->local.requests;
  Request* request = requests.take();
  request->source = source;
  request->tag = tag;
  request->keep(layout);
  request->base = static_cast<std::byte*>(base);
  if (Result<void> begun = parts_->receives.begin(*request); !begun) {
    requests.give_back(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

Result<void> Communicator::send(const void* base, const Layout& layout, int dest, int tag) {
  auto lock = parts_->enter();
  Peer& peer = *LACUNA_TRY(parts_->peer_of(dest, tag));
  const auto chosen = parts_->sends.send_small(peer, base, layout, tag);
  if (!chosen) return {};
  Request request;
  request.sends = true;
  request.status = {.source = parts_->local.rank, .tag = tag, .bytes = layout.size()};
  request.bytes = layout.size();
  request.peer = dest;
  request.tag = tag;
  request.layout = &layout;
  request.base = static_cast<std::byte*>(const_cast<void*>(base));
  LACUNA_TRY(parts_->sends.begin(request, *chosen));
  const auto done = [&] { return request.state == Request::State::done; };
  if (Result<void> waited = parts_->progress.until(lock, done, kForever); !waited) {
    parts_->completion.give_up(request);
    return waited;
  }
  if (request.error) return std::unexpected(std::move(*request.error));
  return {};
}

Result<Status> Communicator::recv(void* base, const Layout& layout, int source, int tag) {
  auto lock = parts_->enter();
  Request request;
  request.source = source;
  request.tag = tag;
  request.layout = &layout;
  request.base = static_cast<std::byte*>(base);
  LACUNA_TRY(parts_->receives.begin(request));
  const auto done = [&] { return request.state == Request::State::done; };
  if (Result<void> waited = parts_->progress.until(lock, done, kForever); !waited) {
    parts_->completion.give_up(request);
    return std::unexpected(std::move(waited).error());
  }
  if (request.error) return std::unexpected(std::move(*request.error));
  return request.status;
}

Result<std::optional<Status>> Communicator::probe(int source, int tag) {
  const auto lock = parts_->enter();
  if (source >= size() || source < kAnySource || tag < kAnyTag)
    return base::fail(base::Code::invalid_argument, fmt::format("a probe for rank {} and tag {}", source, tag));
  if (!parts_->progress.advance()) parts_->progress.idle();
  const auto* found = static_cast<const Unexpected*>(parts_->local.matcher.find(source, tag));
  if (found != nullptr) return Status{found->source, found->tag, static_cast<std::int64_t>(found->head.bytes)};
  LACUNA_TRY(parts_->completion.still_there(source));
  return std::nullopt;
}

bool Communicator::progress() {
  const auto lock = parts_->enter();
  return parts_->progress.advance() || parts_->progress.idle();
}

int Communicator::take_tag() {
  const auto lock = parts_->enter();
  return taken_tag(parts_->tags_taken++);
}

// --- requests --------------------------------------------------------------------------------------------------------

std::optional<Result<Status>> Communicator::test(Request* request) {
  const auto lock = parts_->enter();
  if (request->state != Request::State::done && !parts_->progress.advance()) parts_->progress.idle();
  if (request->state != Request::State::done) return std::nullopt;
  return parts_->end(request);
}

bool Communicator::is_done(const Request* request) const {
  const auto lock = parts_->enter();
  return request->state == Request::State::done;
}

Result<Status> Communicator::wait(Request* request) {
  auto lock = parts_->enter();
  const auto done = [&] { return request->state == Request::State::done; };
  if (Result<void> waited = parts_->progress.until(lock, done, kForever); !waited) {
    LACUNA_RARELY("wait: the context fails");
    parts_->completion.give_up(*request);  // its memory is the caller's now
    parts_->local.requests.give_back(request);
    return std::unexpected(std::move(waited).error());
  }
  return parts_->end(request);
}

Result<std::size_t> Communicator::wait_any(std::span<Request* const> requests, std::int64_t timeout_ns) {
  auto lock = parts_->enter();
  if (std::ranges::none_of(requests, [](const Request* r) { return r != nullptr; }))
    return base::fail(base::Code::invalid_argument, "wait_any() of no request");
  std::size_t found = 0;
  const auto one_is = [&] {
    for (found = 0; found < requests.size(); ++found) {
      if (requests[found] != nullptr && requests[found]->state == Request::State::done) return true;
    }
    return false;
  };
  LACUNA_TRY(parts_->progress.until(lock, one_is, timeout_ns));
  return found;
}

Result<void> Communicator::wait_all(std::span<Request* const> requests) {
  std::optional<base::Error> first;
  for (Request* request : requests) {
    if (request == nullptr) continue;
    if (Result<Status> ended = wait(request); !ended && !first) first = std::move(ended).error();
  }
  if (first) return std::unexpected(std::move(*first));
  return {};
}

bool Communicator::cancel(Request* request) {
  const auto lock = parts_->enter();
  if (request->offer.offered) return parts_->offers.take_back(request);
  if (request->sends || request->access.number != 0 || request->state != Request::State::waiting) return false;
  parts_->local.matcher.withdraw(*request);
  parts_->local.requests.give_back(request);
  return true;
}

void Communicator::give_up(Request* request) {
  const auto lock = parts_->enter();
  parts_->completion.give_up(*request);
  parts_->local.requests.give_back(request);
}

void Communicator::give_up_rank(int rank) {
  const auto lock = parts_->enter();
  Peer* const peer = rank >= 0 && rank < size() ? parts_->local.peers[static_cast<std::size_t>(rank)].get() : nullptr;
  if (peer != nullptr && peer->channel != nullptr)
    parts_->completion.lose(*peer, {base::Code::timeout, fmt::format("rank {} was given up", rank)});
}

void Communicator::force(std::optional<guide::MessageWay> way) {
  const auto lock = parts_->enter();
  parts_->local.options.way = way;
  parts_->choices.messages().forget();
  parts_->streams.force_stores();
}

void Communicator::end_all_with(base::Error error) { parts_->planted = std::move(error); }

// --- memory ----------------------------------------------------------------------------------------------------------

Result<std::uint32_t> Communicator::register_memory(void* base, std::int64_t bytes) {
  const auto lock = parts_->enter();
  if (base == nullptr || bytes <= 0)
    return lacuna::base::fail(lacuna::base::Code::invalid_argument, fmt::format("{} bytes of memory to register", bytes));
  return parts_->registrations().hold({static_cast<std::byte*>(base), static_cast<std::size_t>(bytes)});
}

Result<void> Communicator::deregister_memory(std::uint32_t number) {
  const auto lock = parts_->enter();
  return parts_->registrations().release(number);
}

// --- one-sided -------------------------------------------------------------------------------------------------------

Result<Exposed> Communicator::expose(void* base, std::int64_t bytes) {
  const auto lock = parts_->enter();
  return parts_->accesses.expose(base, bytes);
}

Result<void> Communicator::withdraw(const Exposed& exposed, std::int64_t timeout_ns) {
  auto lock = parts_->enter();
  Accesses& accesses = parts_->accesses;
  LACUNA_TRY(accesses.refuse(exposed));
  LACUNA_TRY(parts_->progress.until(lock, [&] { return !accesses.in_use(exposed); }, timeout_ns));
  accesses.end(exposed);
  return {};
}

Result<Request*> Communicator::put(const void* base, const Layout& src, const Exposed& to, std::int64_t offset, const Layout& dst) {
  const auto lock = parts_->enter();
  Peer& peer = *LACUNA_TRY(parts_->peer_of(to.rank, 0));
  return parts_->accesses.begin(peer, const_cast<void*>(base), src, to, offset, dst, false);
}

Result<Request*> Communicator::get(void* base, const Layout& dst, const Exposed& from, std::int64_t offset, const Layout& src) {
  const auto lock = parts_->enter();
  Peer& peer = *LACUNA_TRY(parts_->peer_of(from.rank, 0));
  return parts_->accesses.begin(peer, base, dst, from, offset, src, true);
}

// --- offers ----------------------------------------------------------------------------------------------------------

Result<Request*> Communicator::offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket) {
  const auto lock = parts_->enter();
  return parts_->offers.offer(base, layout, dest, behind, ticket);
}

void Communicator::set_aside(Request* offer) {
  const auto lock = parts_->enter();
  parts_->offers.set_aside(offer);
}

void Communicator::pack(Request* offer) { parts_->offers.pack(offer); }

Result<void> Communicator::leave(Request* offer) {
  const auto lock = parts_->enter();
  return parts_->offers.leave(offer);
}

Result<Request*> Communicator::accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket) {
  const auto lock = parts_->enter();
  return parts_->offers.accept(base, layout, source, bytes, ticket);
}

}  // namespace lacuna::protocol
