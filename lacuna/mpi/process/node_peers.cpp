#include "lacuna/mpi/process/node_peers.hpp"

#include <algorithm>

namespace lacuna::mpi {

MemoryPlace MemoryPlace::of(const nic::SharedBuffer& memory) {
  if (memory == nullptr) return {};
  return {.addr = memory->region.addr(), .rkey = memory->region.rkey(), .there = 1};
}

std::byte* NodePeers::reach(int local, std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) {
  std::unique_ptr<nic::QueuePair>& known = peers_.at(static_cast<std::size_t>(local));
  if (known == nullptr) {
    base::Result<std::unique_ptr<nic::QueuePair>> made = context_.attach(cards_.at(static_cast<std::size_t>(local)));
    if (!made) return nullptr;
    known = std::move(*made);
  }
  return known->rkey_ptr(addr, rkey, bytes);
}

void NodePeers::keep(const nic::SharedBuffer& memory) const {
  const auto any = std::ranges::find_if(peers_, [](const auto& peer) { return peer != nullptr; });
  if (any != peers_.end()) (*any)->keep(memory);
}

}  // namespace lacuna::mpi
