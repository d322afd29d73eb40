// umr_write: an indirect key on either side, one write for each part of the stream that one key can hold: usually one
// for all. No CPU copies; the receiver posts nothing and polls nothing but the notification.
#include "lacuna/method/key_cost_items.hpp"
#include "lacuna/method/part_keys.hpp"

namespace lacuna::method {
namespace {

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  Notice notice = LACUNA_TRY(Notice::create(endpoint, transfer.notify));
  if (role == Role::sender) {
    return std::make_unique<WithKeys<Initiator, nic::Opcode::write>>(LACUNA_TRY(PartKeys::for_active(endpoint, role, transfer, memory)),
                                                                     endpoint, transfer.src, memory, std::move(notice), 1);
  }
  PartKeys keys = LACUNA_TRY(PartKeys::for_passive(endpoint, role, transfer, memory, {.remote_write = true, .remote_read = false}));
  return std::make_unique<OffersKeys<Landing>>(std::move(keys), endpoint, transfer, memory, std::move(notice), Staging(), 0);
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) { key_cost_items(cost_items, limits, key_room(limits), {}, 1); }

}  // namespace

extern const Method kUmrWrite{.name = "umr_write",
                              .summary = "indirect keys on both sides, one write",
                              .notifies = kOneSided,
                              .initiator = Role::sender,
                              .exposes = Exposes::destination,
                              .indirect_keys = true,
                              .make = &make,
                              .cost_items = &cost_items};

}  // namespace lacuna::method
