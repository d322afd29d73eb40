// Puts and gets: an access says what is meant, and its data travels as a message with a tag of its own.
//
//   put   origin: access, then the message ─────▶ target: a receive within the exposed memory; accessed ──▶ origin: done
//   get   origin: a receive; then access ───────▶ target: a send out of the exposed memory ═══════════════▶ origin: done
//
// So all protocols, credit and what becomes of lost peers are those of messages.
#include <fmt/format.h>

#include "lacuna/protocol/communicator/communicator.hpp"

namespace lacuna::protocol {
namespace {

// Puts and gets of one peer under way, each a request here.
constexpr std::size_t kMostServed = 1 << 20;

Result<void> check_within(const Layout& layout, std::int64_t offset, std::int64_t bytes) {
  std::int64_t low = 0, high = 0;
  if (layout.size() == 0) return {};
  if (base::add(offset, layout.true_lower_bound(), low) && base::add(low, layout.true_extent(), high) && low >= 0 && high <= bytes)
    return {};
  return base::fail(base::Code::invalid_argument,
                    fmt::format("at offset {} the layout covers bytes {} to {} of {} that are exposed", offset, low, high, bytes));
}

}  // namespace

Result<Exposed> Ranks::expose(void* base, std::int64_t bytes) {
  const auto lock = enter();
  if (base == nullptr || bytes <= 0) return base::fail(base::Code::invalid_argument, fmt::format("{} bytes to be exposed", bytes));
  exposed_[++exposures_] = {static_cast<std::byte*>(base), bytes, 0};
  return Exposed{rank_, exposures_, bytes};
}

Result<void> Ranks::withdraw(const Exposed& exposed, std::int64_t timeout_ns) {
  auto lock = enter();
  const auto found = exposed_.find(exposed.number);
  if (exposed.rank != rank_ || found == exposed_.end())
    return base::fail(base::Code::invalid_argument, "what is to be withdrawn is not exposed here");
  found->second.bytes = 0;  // refused from now on
  LACUNA_TRY(until(lock, [&] { return exposed_.at(exposed.number).in_use == 0; }, timeout_ns));
  exposed_.erase(exposed.number);
  return {};
}

Result<Request*> Ranks::put(const void* base, const Layout& src, const Exposed& to, std::int64_t offset, const Layout& dst) {
  const auto lock = enter();
  return begin_access(const_cast<void*>(base), src, to, offset, dst, false);
}

Result<Request*> Ranks::get(void* base, const Layout& dst, const Exposed& from, std::int64_t offset, const Layout& src) {
  const auto lock = enter();
  return begin_access(base, dst, from, offset, src, true);
}

Result<Request*> Ranks::begin_access(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs,
                                     bool gets) {
  Peer& peer = *LACUNA_TRY(peer_of(there.rank, 0));
  LACUNA_TRY(layout::check_sizes(own, theirs));
  LACUNA_TRY(check_destination(gets ? own : theirs));
  LACUNA_TRY(check_within(theirs, offset, there.bytes));
  const std::int64_t bytes = own.size();
  Request* request = nullptr;
  if (peer.channel == nullptr || bytes == 0) {
    if (bytes > 0) LACUNA_TRY(access_own(base, own, there, offset, theirs, gets));
    request = fresh();
    request->status = {.source = there.rank, .tag = 0, .bytes = bytes};
    request->state = Request::State::done;
    return request;
  }
  const std::uint32_t layout = tell(peer, theirs);
  if (layout == 0)
    return base::fail(base::Code::limit,
                      fmt::format("the layout's wire form is longer than {} bytes: cut the access into several", kMostWireForm));
  request = fresh();
  request->kept = own;
  request->layout = &request->kept;
  request->base = static_cast<std::byte*>(base);
  request->bytes = bytes;
  request->peer = there.rank;
  if (++peer.numbers == 0) ++peer.numbers;  // 0 is no access
  request->access = peer.numbers;
  request->tag = access_tag(request->access, gets);
  request->status = {.source = gets ? there.rank : rank_, .tag = 0, .bytes = bytes};
  peer.accesses[request->access] = request;
  Head head;
  head.kind = Kind::access;
  head.number = request->access;
  head.bytes = static_cast<std::uint64_t>(bytes);
  put_body(head, Access{.offset = offset, .exposed = there.number, .layout = layout, .gets = gets ? 1U : 0U});
  step("send access");
  if (gets) {
    request->source = there.rank;
    matcher_.post(*request);
    say(peer, head);
    return request;
  }
  say(peer, head);
  request->sends = true;
  request->needs_word = true;
  if (send_small(peer, base, own, request->tag)) {
    done(*request);
  } else if (Result<void> begun = begin_send(*request); !begun) {
    lose(peer, begun.error());  // the peer waits for the data
    retire(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

// Exposed by this rank itself.
Result<void> Ranks::access_own(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs, bool gets) {
  const auto found = exposed_.find(there.number);
  if (there.rank != rank_ || found == exposed_.end()) return base::fail(base::Code::invalid_argument, "this memory was withdrawn");
  LACUNA_TRY(check_within(theirs, offset, found->second.bytes));
  std::byte* memory = found->second.base + offset;
  const std::byte* mine = static_cast<const std::byte*>(base) + own.true_lower_bound();
  const std::byte* there_first = memory + theirs.true_lower_bound();
  if (mine < there_first + theirs.true_extent() && there_first < mine + own.true_extent()) {  // among the exposed bytes themselves
    std::vector<std::byte> packed(static_cast<std::size_t>(own.size()));
    context_.pack(gets ? theirs : own, gets ? memory : static_cast<const std::byte*>(base), 0, own.size(), packed.data(),
                  copy::Caching::kept);
    context_.unpack(gets ? own : theirs, gets ? static_cast<std::byte*>(base) : memory, 0, own.size(), packed.data(), copy::Caching::kept);
    return {};
  }
  return gets ? context_.transpack(theirs, memory, own, static_cast<std::byte*>(base))
              : context_.transpack(own, static_cast<const std::byte*>(base), theirs, memory);
}

// --- the target ------------------------------------------------------------------------------------------------------

// What is refused is received all the same, into nothing: its data is on the way.
Result<void> Ranks::serve(Peer& peer, const Head& head) {
  const auto access = body_of<Access>(head);
  const bool gets = access.gets != 0;
  if (peer.served + peer.outbox.size() >= kMostServed)
    return base::fail(base::Code::malformed, fmt::format("rank {} has more than {} puts and gets under way", peer.rank, kMostServed));
  const Layout layout = LACUNA_TRY(peer.heard.find(access.layout));
  if (std::cmp_not_equal(layout.size(), head.bytes) || head.bytes == 0 || head.number == 0)
    return base::fail(base::Code::malformed, fmt::format("rank {} says that an access has other bytes", peer.rank));
  const auto found = exposed_.find(access.exposed);
  Memory* memory = found != exposed_.end() ? &found->second : nullptr;
  Result<void> allowed = memory != nullptr ? check_within(layout, access.offset, memory->bytes)
                                           : base::fail(base::Code::invalid_argument, "this memory was withdrawn");
  if (allowed && !gets) allowed = check_destination(layout);
  step("serve access");
  if (gets && !allowed) {
    tell_accessed(peer, head.number, true, allowed.error().code);
    return {};
  }
  ++peer.served;
  Request& request = *fresh();
  request.served = true;
  request.access = head.number;
  request.sends = gets;
  request.peer = peer.rank;
  request.tag = access_tag(head.number, gets);
  if (allowed) {
    request.exposed = access.exposed;
    ++memory->in_use;
    request.kept = layout;
    request.base = memory->base + access.offset;
  } else {
    request.refused = allowed.error().code;
  }
  request.layout = &request.kept;
  request.bytes = static_cast<std::int64_t>(head.bytes);
  if (!gets) {
    request.source = peer.rank;
    matcher_.post(request);
    return {};
  }
  if (send_small(peer, request.base, layout, request.tag)) {
    done(request);
    return {};
  }
  Result<void> begun = begin_send(request);
  if (!begun) fail(request, begun.error());
  return begun;
}

void Ranks::tell_accessed(Peer& peer, std::uint32_t number, bool gets, std::optional<base::Code> refused) {
  Head head;
  head.kind = Kind::accessed;
  head.number = number;
  put_body(head, Accessed{.code = refused ? 1 + static_cast<std::uint32_t>(*refused) : 0, .gets = gets ? 1U : 0U});
  say(peer, head);
}

// A served request is done, or its peer is lost.
void Ranks::end_served(Request& request) {
  Peer& peer = peers_[static_cast<std::size_t>(request.peer)];
  --peer.served;
  if (!request.sends) {
    const std::optional<base::Code> failed = request.error ? std::optional(request.error->code) : std::nullopt;
    tell_accessed(peer, request.access, false, request.refused ? request.refused : failed);
  }
  if (const auto found = exposed_.find(request.exposed); found != exposed_.end()) --found->second.in_use;
  served_.push_back(&request);
}

void Ranks::retire_served() {
  for (Request* request : served_) retire(request);
  served_.clear();
}

// --- the origin ------------------------------------------------------------------------------------------------------

Result<void> Ranks::take_accessed(Peer& peer, const Head& head) {
  const auto said = body_of<Accessed>(head);
  const auto found = peer.accesses.find(head.number);
  if (found == peer.accesses.end() || found->second->needs_word == (said.gets != 0) || (said.gets != 0 && said.code == 0) ||
      said.code > 1 + static_cast<std::uint32_t>(base::Code::truncated))
    return base::fail(base::Code::malformed, fmt::format("rank {} speaks of an access that it was not asked for", peer.rank));
  Request& request = *found->second;
  if (said.gets != 0 && request.state != Request::State::waiting)
    return base::fail(base::Code::malformed, fmt::format("rank {} refuses a get whose data it has sent", peer.rank));
  peer.accesses.erase(found);
  request.word_came = true;
  const bool refused = said.code != 0;
  if (refused)
    request.error =
        base::Error{static_cast<base::Code>(said.code - 1),
                    fmt::format("rank {} refuses the access: what it exposes does not allow it, or it could not be received", peer.rank)};
  if (said.gets != 0) {
    matcher_.withdraw(request);
    done(request);
  } else if (request.went) {
    done(request);
  }
  return {};
}

}  // namespace lacuna::protocol
