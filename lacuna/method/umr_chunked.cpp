// umr_chunked: like umr_send, but with many small keys in a list instead of one large one. Where a device searches a
// key's list for each packet, as the collapse of UMR with long lists suggests (F23; paper_findings, note 1), short
// lists avoid the search; and each is bound by a request that holds it inline.
#include "lacuna/method/key_cost_items.hpp"
#include "lacuna/method/key_messages.hpp"

namespace lacuna::method {
namespace {

KeyRoom inline_room(const nic::Limits& limits) {
  KeyRoom room = key_room(limits);
  room.entries = limits.indirect.inline_entries;
  return room;
}

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  const nic::Limits& limits = endpoint.limits();
  return make_key_messages(role, endpoint, transfer, memory, limits.max_sge, inline_room(limits));
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  key_cost_items(cost_items, limits, inline_room(limits), {.messages = true}, limits.max_sge);
}

}  // namespace

extern const Method kUmrChunked{.name = "umr_chunked",
                                .summary = "many small indirect keys in the lists of send and receive",
                                .notifies = kTwoSided,
                                .initiator = Role::sender,
                                .exposes = Exposes::destination,
                                .indirect_keys = true,
                                .make = &make,
                                .cost_items = &cost_items};

}  // namespace lacuna::method
