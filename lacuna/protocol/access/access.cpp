#include "lacuna/protocol/access/access.hpp"

#include <fmt/format.h>

#include <utility>

#include "lacuna/base/rarely.hpp"

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

Result<Exposed> Accesses::expose(void* base, std::int64_t bytes) {
  if (base == nullptr || bytes <= 0) return base::fail(base::Code::invalid_argument, fmt::format("{} bytes to be exposed", bytes));
  exposed_[++exposures_] = {static_cast<std::byte*>(base), bytes, 0};
  return Exposed{local_.rank, exposures_, bytes};
}

Result<void> Accesses::refuse(const Exposed& exposed) {
  const auto found = exposed_.find(exposed.number);
  if (exposed.rank != local_.rank || found == exposed_.end())
    return base::fail(base::Code::invalid_argument, "what is to be withdrawn is not exposed here");
  found->second.bytes = 0;
  return {};
}

// --- the origin ------------------------------------------------------------------------------------------------------

Result<Request*> Accesses::begin(Peer& peer, void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs,
                                 bool gets) {
  LACUNA_TRY(layout::check_sizes(own, theirs));
  LACUNA_TRY(check_destination(gets ? own : theirs));
  LACUNA_TRY(check_within(theirs, offset, there.bytes));
  const std::int64_t bytes = own.size();
  if (peer.channel == nullptr || bytes == 0) {
    if (bytes > 0) LACUNA_TRY(access_own(base, own, there, offset, theirs, gets));
    Request* request = local_.requests.take();
    request->status = {.source = there.rank, .tag = 0, .bytes = bytes};
    request->state = Request::State::done;
    return request;
  }
  const std::uint32_t layout = local_.tell(peer, theirs);
  if (layout == 0)
    return base::fail(base::Code::limit,
                      fmt::format("the layout's wire form is longer than {} bytes: cut the access into several", kMostWireForm));
  Request* request = local_.requests.take();
  request->keep(own);
  request->base = static_cast<std::byte*>(base);
  request->bytes = bytes;
  request->peer = there.rank;
  std::uint32_t& numbers = peer.announcements.numbers;
  if (++numbers == 0) ++numbers;  // 0 is no access
  request->access.number = numbers;
  request->tag = access_tag(numbers, gets);
  request->status = {.source = gets ? there.rank : local_.rank, .tag = 0, .bytes = bytes};
  peer.accesses.begun[numbers] = request;
  Head head;
  head.kind = HeadKind::access;
  head.number = numbers;
  head.bytes = static_cast<std::uint64_t>(bytes);
  put_body(head, Access{.offset = offset, .exposed = there.number, .layout = layout, .gets = gets ? 1U : 0U});
  local_.step("send access");
  if (!gets) return begin_put(peer, request, head);
  request->source = there.rank;
  local_.matcher.post(*request);
  local_.say(peer, head);
  return request;
}

Result<Request*> Accesses::begin_put(Peer& peer, Request* request, const Head& head) {
  local_.say(peer, head);
  request->sends = true;
  request->access.needs_word = true;
  const auto chosen = sends_.send_small(peer, request->base, *request->layout, request->tag);
  if (!chosen) {
    completion_.done(*request);
  } else if (Result<void> begun = sends_.begin(*request, *chosen); !begun) {
    completion_.lose(peer, begun.error());  // the peer waits for the data
    local_.requests.give_back(request);
    return std::unexpected(std::move(begun).error());
  }
  return request;
}

// To or from memory that this rank itself exposes.
Result<void> Accesses::access_own(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs,
                                  bool gets) {
  nic::Context& context = local_.context;
  const auto found = exposed_.find(there.number);
  if (there.rank != local_.rank || found == exposed_.end()) return base::fail(base::Code::invalid_argument, "this memory was withdrawn");
  LACUNA_TRY(check_within(theirs, offset, found->second.bytes));
  std::byte* memory = found->second.base + offset;
  const std::byte* mine = static_cast<const std::byte*>(base) + own.true_lower_bound();
  const std::byte* there_first = memory + theirs.true_lower_bound();
  // Among the exposed bytes themselves
  if (mine < there_first + theirs.true_extent() && there_first < mine + own.true_extent()) {
    std::vector<std::byte> packed(static_cast<std::size_t>(own.size()));
    context.pack(gets ? theirs : own, gets ? memory : static_cast<const std::byte*>(base), 0, own.size(), packed.data(),
                 copy::Caching::kept);
    context.unpack(gets ? own : theirs, gets ? static_cast<std::byte*>(base) : memory, 0, own.size(), packed.data(), copy::Caching::kept);
    return {};
  }
  return gets ? context.transpack(theirs, memory, own, static_cast<std::byte*>(base))
              : context.transpack(own, static_cast<const std::byte*>(base), theirs, memory);
}

Result<void> Accesses::take_accessed(Peer& peer, const Head& head) {
  const auto said = body_of<Accessed>(head);
  auto& begun = peer.accesses.begun;
  const auto found = begun.find(head.number);
  if (found == begun.end() || found->second->access.needs_word == (said.gets != 0) || (said.gets != 0 && said.code == 0) ||
      said.code > 1 + static_cast<std::uint32_t>(base::Code::truncated))
    return base::fail(base::Code::malformed, fmt::format("rank {} speaks of an access that it was not asked for", peer.rank));
  Request& request = *found->second;
  if (said.gets != 0 && request.state != Request::State::waiting)
    return base::fail(base::Code::malformed, fmt::format("rank {} refuses a get whose data it has sent", peer.rank));
  begun.erase(found);
  if (!request.access.went && said.gets == 0) LACUNA_RARELY("put: the peer's word came before the data had gone");
  request.access.word_came = true;
  if (said.code != 0)
    request.error =
        base::Error{static_cast<base::Code>(said.code - 1),
                    fmt::format("rank {} refuses the access: what it exposes does not allow it, or it could not be received", peer.rank)};
  if (said.gets != 0) {
    local_.matcher.withdraw(request);
    completion_.done(request);
  } else if (request.access.went) {
    completion_.done(request);
  }
  return {};
}

// --- the target ------------------------------------------------------------------------------------------------------

// The data of a put that is refused is received all the same, into no memory: it is on the way.
Result<void> Accesses::serve(Peer& peer, const Head& head) {
  const auto access = body_of<Access>(head);
  const bool gets = access.gets != 0;
  if (peer.accesses.served + peer.outbox.size() >= kMostServed)
    return base::fail(base::Code::malformed, fmt::format("rank {} has more than {} puts and gets under way", peer.rank, kMostServed));
  const Layout layout = LACUNA_TRY(peer.heard.find(access.layout));
  if (std::cmp_not_equal(layout.size(), head.bytes) || head.bytes == 0 || head.number == 0)
    return base::fail(base::Code::malformed, fmt::format("rank {} says that an access has other bytes", peer.rank));
  const auto found = exposed_.find(access.exposed);
  Memory* memory = found != exposed_.end() ? &found->second : nullptr;
  Result<void> allowed = memory != nullptr ? check_within(layout, access.offset, memory->bytes)
                                           : base::fail(base::Code::invalid_argument, "this memory was withdrawn");
  if (allowed && !gets) allowed = check_destination(layout);
  local_.step("serve access");
  if (gets && !allowed) {
    tell_accessed(peer, head.number, true, allowed.error().code);
    return {};
  }
  ++peer.accesses.served;
  Request& request = *local_.requests.take();
  request.access.served = true;
  request.access.number = head.number;
  request.sends = gets;
  request.peer = peer.rank;
  request.tag = access_tag(head.number, gets);
  request.layout = &request.kept;
  request.bytes = static_cast<std::int64_t>(head.bytes);
  if (allowed) {
    request.access.exposed = access.exposed;
    ++memory->in_use;
    request.kept = layout;
    request.base = memory->base + access.offset;
  } else {
    request.access.refused = allowed.error().code;
  }
  if (!gets) {
    request.source = peer.rank;
    local_.matcher.post(request);
    return {};
  }
  const auto chosen = sends_.send_small(peer, request.base, layout, request.tag);
  if (!chosen) {
    completion_.done(request);
    return {};
  }
  Result<void> begun = sends_.begin(request, *chosen);
  if (!begun) completion_.fail(request, begun.error());
  return begun;
}

void Accesses::tell_accessed(Peer& peer, std::uint32_t number, bool gets, std::optional<base::Code> refused) {
  Head head;
  head.kind = HeadKind::accessed;
  head.number = number;
  put_body(head, Accessed{.code = refused ? 1 + static_cast<std::uint32_t>(*refused) : 0, .gets = gets ? 1U : 0U});
  local_.say(peer, head);
}

// A request that serves is done, or its peer is lost.
void Accesses::end_served(Request& request) {
  Peer& peer = local_.peer(request.peer);
  --peer.accesses.served;
  const AccessState& access = request.access;
  if (!request.sends) {
    const std::optional<base::Code> failed = request.error ? std::optional(request.error->code) : std::nullopt;
    tell_accessed(peer, access.number, false, access.refused ? access.refused : failed);
  }
  if (const auto found = exposed_.find(access.exposed); found != exposed_.end()) --found->second.in_use;
  served_.push_back(&request);
}

}  // namespace lacuna::protocol
