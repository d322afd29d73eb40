// multi_write: one write, one post, for each piece that is contiguous on both sides; it lands where it belongs. No side
// copies, and the target's CPU does nothing but see the notification.
#include "lacuna/method/piecewise.hpp"

namespace lacuna::method {
namespace {

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_piecewise(role, endpoint, transfer, memory, 1);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) { piecewise_cost_items(cost_items, limits, 1); }

}  // namespace

extern const Method kMultiWrite{.name = "multi_write",
                                .summary = "one write and one post for each piece, in place",
                                .notifies = kOneSided,
                                .initiator = Role::sender,
                                .exposes = Exposes::destination,
                                .indirect_keys = false,
                                .make = &make,
                                .cost_items = &cost_items};

}  // namespace lacuna::method
