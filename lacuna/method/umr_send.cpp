// umr_send: an indirect key on either side, one send and one receive of one entry each for each part of the stream that
// one key can hold: usually one for all. No CPU copies.
#include "lacuna/method/key_cost_items.hpp"
#include "lacuna/method/key_messages.hpp"

namespace lacuna::method {
namespace {

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  return make_key_messages(role, endpoint, transfer, memory, 1, key_room(endpoint.limits()));
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  key_cost_items(cost_items, limits, key_room(limits), {.messages = true}, 1);
}

}  // namespace

extern const Method kUmrSend{.name = "umr_send",
                             .summary = "indirect keys on both sides, send and receive of one entry",
                             .notifies = kTwoSided,
                             .initiator = Role::sender,
                             .exposes = Exposes::destination,
                             .indirect_keys = true,
                             .make = &make,
                             .cost_items = &cost_items};

}  // namespace lacuna::method
