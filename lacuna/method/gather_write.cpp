// gather_write: the NIC gathers the source's runs, as many as a list takes, into writes that land one behind the other
// in a contiguous place; the target's CPU unpacks from there, unless its layout is contiguous.
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sender final : public Initiator {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice)
      : Initiator(endpoint, transfer.src, memory, std::move(notice), 1), runs_(own_) {}

 private:
  Result<void> begin() override {
    runs_.seek(0);
    return Initiator::begin();
  }
  [[nodiscard]] bool exhausted() const override { return runs_.done(); }
  Result<bool> add_next(Chain& chain, int /*room*/) override {
    const std::int64_t from = runs_.position();
    const std::int64_t end = from + largest_message(endpoint_.limits());
    while (!runs_.done() && chain.list_size() < endpoint_.limits().max_sge && runs_.position() < end)
      chain.append(sge(runs_.next_run(end - runs_.position())));
    chain.add(nic::Opcode::write, remote(0).addr + static_cast<std::uint64_t>(from), remote(0).rkey);
    return true;
  }

  layout::Cursor runs_;
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  if (role == Role::receiver) return Landing::make_contiguous(endpoint, transfer, memory);
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Notice::create(endpoint, transfer.notify)));
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  const auto runs = static_cast<double>(cost_items.pair().src.runs);
  const double writes = lists_of(runs, limits.max_sge, cost_items.pair().bytes(), limits);
  cost_items.haul({.requests = writes,
                   .doorbells = writes,
                   .gathers = runs,
                   .scatters = writes,
                   .pieces = runs,
                   .staging = static_cast<double>(cost_items.pair().bytes())});
  cost_items.unpack(CostItems::When::after);
}

}  // namespace

extern const Method kGatherWrite{.name = "gather_write",
                                 .summary = "the NIC gathers into writes to one contiguous place, the CPU unpacks",
                                 .notifies = kOneSided,
                                 .initiator = Role::sender,
                                 .exposes = Exposes::nothing,
                                 .indirect_keys = false,
                                 .make = &make,
                                 .cost_items = &cost_items};

}  // namespace lacuna::method
