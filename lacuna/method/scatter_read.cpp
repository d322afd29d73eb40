// scatter_read: the receiver reads, and its NIC scatters into as many of the destination's runs as a list takes. The
// source's CPU packs first, unless its layout is contiguous.
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Receiver final : public Reader {
 public:
  Receiver(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Flag ready)
      : Reader(endpoint, transfer.dst, memory, std::move(notice), std::move(ready)), runs_(own_) {}

 private:
  Result<void> begin() override {
    runs_.seek(0);
    return Reader::begin();
  }
  [[nodiscard]] bool exhausted() const override { return runs_.done(); }
  Result<bool> add_next(Chain& chain, int /*room*/) override {
    const std::int64_t from = runs_.position();
    const std::int64_t end = from + largest_message(endpoint_.limits());
    while (!runs_.done() && chain.list_size() < endpoint_.limits().max_sge_rd && runs_.position() < end)
      chain.append(sge(runs_.next_run(end - runs_.position())));
    chain.add(nic::Opcode::read, remote(0).addr + static_cast<std::uint64_t>(from), remote(0).rkey);
    return true;
  }

  layout::Cursor runs_;
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  if (role == Role::sender) return Source::make_contiguous(endpoint, transfer, memory);
  return std::make_unique<Receiver>(endpoint, transfer, memory, LACUNA_TRY(Notice::create(endpoint, transfer.notify)),
                                    LACUNA_TRY(Flag::create(endpoint)));
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  const auto runs = static_cast<double>(cost_items.pair().dst.runs);
  const double reads = lists_of(runs, limits.max_sge_rd, cost_items.pair().bytes(), limits);
  cost_items.pack(CostItems::When::before);
  cost_items.haul({.reading = true, .requests = reads, .doorbells = reads, .gathers = reads, .scatters = runs, .pieces = runs});
}

}  // namespace

extern const Method kScatterRead{.name = "scatter_read",
                                 .summary = "the CPU packs, the receiver's NIC reads and scatters",
                                 .notifies = kOneSided,
                                 .initiator = Role::receiver,
                                 .exposes = Exposes::nothing,
                                 .indirect_keys = false,
                                 .make = &make,
                                 .cost_items = &cost_items};

}  // namespace lacuna::method
