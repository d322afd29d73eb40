// pack: the way of every user who does it by hand. Pack all, one send, unpack all; nothing overlaps.
#include <limits>

#include "lacuna/method/packed.hpp"

namespace lacuna::method {
namespace {

constexpr Chunking kWhole{std::numeric_limits<std::int64_t>::max(), 1, 1};  // cut only by the NIC's largest message

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_packed(role, endpoint, transfer, memory, kWhole);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  cost_items.pack(CostItems::When::before);
  cost_items.haul({.messages = true,
                   .requests = messages_of(cost_items.pair().bytes(), limits),
                   .staging = static_cast<double>(cost_items.pair().bytes())});
  cost_items.unpack(CostItems::When::after);
}

}  // namespace

extern const Method kPack{.name = "pack",
                          .summary = "the CPU packs all, one send, the CPU unpacks all",
                          .notifies = kTwoSided,
                          .initiator = Role::sender,
                          .exposes = Exposes::nothing,
                          .indirect_keys = false,
                          .make = &make,
                          .cost_items = &cost_items};

}  // namespace lacuna::method
