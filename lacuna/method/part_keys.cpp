#include "lacuna/method/part_keys.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::method {

PartKeys PartKeys::create(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory, nic::Rights rights) {
  const nic::Limits& limits = endpoint.limits();
  return {endpoint, role == Role::sender ? transfer.src : transfer.dst, memory, rights,
          cut(transfer.src, transfer.dst, key_room(limits), largest_message(limits))};
}

Result<PartKeys> PartKeys::for_active(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory) {
  return create(endpoint, role, transfer, memory, {.local_write = role == Role::receiver, .remote_write = false, .remote_read = false});
}

Result<PartKeys> PartKeys::for_passive(Endpoint& endpoint, Role role, const Transfer& transfer, const Memory& memory, nic::Rights rights) {
  PartKeys keys = create(endpoint, role, transfer, memory, rights);
  if (std::cmp_less_equal(keys.size(), endpoint.limits().indirect.keys)) return keys;
  return base::fail(base::Code::limit, fmt::format("the layout needs {} indirect keys at once, of up to {} entries; this NIC has {}",
                                                   keys.size(), endpoint.limits().indirect.entries, endpoint.limits().indirect.keys));
}

Result<bool> PartKeys::lease(std::size_t part, std::byte* base, bool may_wait, Counters& counters) {
  auto got = LACUNA_TRY(
      endpoint_->keys().lease({own_, base, *memory_.region, parts_[part], key_room(endpoint_->limits()), rights_, may_wait}, counters));
  if (!got) return false;
  leases_.push_back(std::move(*got));
  return true;
}

Result<std::optional<nic::Sge>> PartKeys::take(std::byte* base, std::size_t in_flight, Counters& counters) {
  // A lease that was taken for the next part but not used, because its binding took the queue's last place, is the one
  // at the back.
  if (base != base_ || !pending_) {
    while (leases_.size() > in_flight) leases_.pop_front();
    base_ = base;
    if (!LACUNA_TRY(lease(next_, base, in_flight > 0, counters))) return std::nullopt;
    pending_ = true;
  }
  if (endpoint_->send_room() < 1) return std::nullopt;
  pending_ = false;
  return leases_.back().sge(parts_[next_++].bytes);
}

Result<bool> PartKeys::warm(std::byte* base, Counters& counters) {
  return warming_.step(endpoint_->keys(), {own_, base, *memory_.region, {}, key_room(endpoint_->limits()), rights_}, parts_, counters);
}

Result<bool> PartKeys::hold(std::byte* base, Counters& counters) {
  if (base != base_) leases_.clear();
  base_ = base;
  while (leases_.size() < parts_.size()) {
    if (!LACUNA_TRY(lease(leases_.size(), base, false, counters))) return false;
  }
  return std::ranges::all_of(leases_, &KeyCache::Lease::bound);
}

std::vector<Target::Part> PartKeys::offer() const {
  std::vector<Target::Part> offered;
  offered.reserve(leases_.size());
  for (const KeyCache::Lease& lease : leases_) offered.push_back({lease.addr(), lease.key()});
  return offered;
}

}  // namespace lacuna::method
