// linked_write: one write for each piece, as multi_write, but linked into chains with one doorbell each. A chain fills
// the send queue; the next is built while it is under way.
#include "lacuna/method/piecewise.hpp"

namespace lacuna::method {
namespace {

constexpr int kQueue = Endpoint::Options().max_send_wr;  // the usual one; cost items know no endpoint

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_piecewise(role, endpoint, transfer, memory, endpoint.options().max_send_wr);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) { piecewise_cost_items(cost_items, limits, kQueue); }

}  // namespace

extern const Method kLinkedWrite{.name = "linked_write",
                                 .summary = "one write for each piece, in place, a chain of them with one doorbell",
                                 .notifies = kOneSided,
                                 .initiator = Role::sender,
                                 .exposes = Exposes::destination,
                                 .indirect_keys = false,
                                 .make = &make,
                                 .cost_items = &cost_items};

}  // namespace lacuna::method
