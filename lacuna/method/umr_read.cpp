// umr_read: umr_write the other way round: the receiver reads through an indirect key at the source into one of its
// own.
#include "lacuna/method/key_cost_items.hpp"
#include "lacuna/method/part_keys.hpp"

namespace lacuna::method {
namespace {

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Notice notice = LACUNA_TRY(Notice::create(endpoint, transfer.notify));
  Flag ready = LACUNA_TRY(Flag::create(endpoint));
  if (role == Role::receiver) {
    return std::make_unique<WithKeys<Reader, nic::Opcode::read>>(LACUNA_TRY(PartKeys::for_active(endpoint, role, transfer, memory)),
                                                                 endpoint, transfer.dst, memory, std::move(notice), std::move(ready));
  }
  PartKeys keys = LACUNA_TRY(
      PartKeys::for_passive(endpoint, role, transfer, memory, {.local_write = false, .remote_write = false, .remote_read = true}));
  return std::make_unique<OffersKeys<Source>>(std::move(keys), endpoint, transfer, memory, std::move(notice), std::move(ready), Staging());
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  key_cost_items(cost_items, limits, key_room(limits), {.reading = true}, 1);
}

}  // namespace

extern const Method kUmrRead{.name = "umr_read",
                             .summary = "indirect keys on both sides, the receiver reads",
                             .notifies = kOneSided,
                             .initiator = Role::receiver,
                             .exposes = Exposes::source,
                             .indirect_keys = true,
                             .make = &make,
                             .cost_items = &cost_items};

}  // namespace lacuna::method
