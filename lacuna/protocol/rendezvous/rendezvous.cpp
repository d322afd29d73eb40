#include "lacuna/protocol/rendezvous/rendezvous.hpp"

#include <algorithm>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {

Result<void> RendezvousLine::connect(const nic::Limits& limits, const Connect& make) {
  const method::Endpoint::Options options{.max_send_wr = std::min(128, limits.max_send_wr),
                                          .max_recv_wr = std::min(128, limits.max_recv_wr)};
  for (const nic::PathInfo& path : limits.paths) {
    if (!path.available) continue;
    const std::size_t endpoints =
        path.mover == nic::Mover::device ? kPartsAtOnce : 1;  // a CPU that moves bytes registers nothing meanwhile
    for (std::size_t i = 0; i < endpoints; ++i)
      lanes_.push_back({{}, LACUNA_TRY(make(path.path, static_cast<int>(lanes_.size()), options))});
  }
  return {};
}

std::size_t RendezvousLine::endpoints(nic::Path path) const {
  return static_cast<std::size_t>(std::ranges::count(lanes_, path, [](const Lane& one) { return one.endpoint->qp().path(); }));
}

const RendezvousLine::Lane* RendezvousLine::lane(nic::Path path, std::uint32_t part) const {
  const auto first = std::ranges::find(lanes_, path, [](const Lane& one) { return one.endpoint->qp().path(); });
  if (first == lanes_.end()) return nullptr;
  return &first[static_cast<std::ptrdiff_t>(part % endpoints(path))];
}

method::Endpoint* RendezvousLine::endpoint(nic::Path path, std::uint32_t part) const {
  const Lane* found = lane(path, part);
  return found != nullptr ? found->endpoint.get() : nullptr;
}

Result<const nic::RegisteredBuffer*> RendezvousLine::staging(nic::Path path, std::uint32_t part, std::int64_t bytes,
                                                             std::int64_t timeout_ns) {
  Lane& of = const_cast<Lane&>(*lane(path, part));
  if (std::cmp_less(of.staging.buffer.size(), bytes)) {
    if (of.staging.buffer.size() > 0) {
      LACUNA_RARELY("rendezvous: memory for copies grows");
      LACUNA_TRY(of.endpoint->forget(of.staging.region, timeout_ns));
    }
    of.staging = {};
    of.staging = LACUNA_TRY(nic::RegisteredBuffer::create(of.endpoint->context(), bytes, {.relaxed = true}));
  }
  return &of.staging;
}

Result<void> RendezvousLine::forget(const nic::Region& region, std::int64_t timeout_ns) {
  Result<void> first;
  for (const Lane& one : lanes_) {
    if (Result<void> forgotten = one.endpoint->forget(region, timeout_ns); !forgotten && first) first = std::move(forgotten);
  }
  return first;
}

nic::QueuePair* RendezvousLine::copying() const {
  const auto found = std::ranges::find_if(lanes_, [](const Lane& one) { return one.endpoint->qp().copies(); });
  return found != lanes_.end() ? &found->endpoint->qp() : nullptr;
}

}  // namespace lacuna::protocol
