// pack_write: the papers' Copy Write. The CPU packs, one write carries all to a contiguous place, the target's CPU
// unpacks from there; each only if its layout is not contiguous, so that to a contiguous remote buffer there is one
// copy.
#include <algorithm>

#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {
namespace {

class Sender final : public Initiator {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, Staging staging)
      : Initiator(endpoint, transfer.src, memory, std::move(notice), 1), staging_(std::move(staging)) {}

 private:
  Result<void> begin() override {
    at_ = 0;
    if (staging_ != nullptr) pack(0, own_.size(), staging_->buffer.data());
    return Initiator::begin();
  }
  [[nodiscard]] bool exhausted() const override { return at_ == own_.size(); }
  Result<bool> add_next(Chain& chain, int /*room*/) override {
    const std::int64_t bytes = std::min(own_.size() - at_, largest_message(endpoint_.limits()));
    chain.append(staging_ != nullptr ? staging_->sge(at_, bytes) : sge({own_.true_lower_bound() + at_, bytes}));
    chain.add(nic::Opcode::write, remote(0).addr + static_cast<std::uint64_t>(at_), remote(0).rkey);
    at_ += bytes;
    return true;
  }

  Staging staging_;  // empty if the source is contiguous
  std::int64_t at_ = 0;
};

Made make(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory) {
  if (role == Role::receiver) return Landing::make_contiguous(endpoint, transfer, memory);
  Staging staging;
  if (!transfer.src.contiguous_bytes()) staging = LACUNA_TRY(endpoint.staging(transfer.src.size()));
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Notice::create(endpoint, transfer.notify)), std::move(staging));
}

void cost_items(CostItems& cost_items, const nic::Limits& limits) {
  const double writes = messages_of(cost_items.pair().bytes(), limits);
  cost_items.pack(CostItems::When::before);
  cost_items.haul({.requests = writes,
                   .doorbells = writes,
                   .gathers = writes,
                   .scatters = writes,
                   .pieces = writes,
                   .staging = static_cast<double>(cost_items.pair().bytes())});
  cost_items.unpack(CostItems::When::after);
}

}  // namespace

extern const Method kPackWrite{.name = "pack_write",
                               .summary = "the CPU packs all, one write, the CPU unpacks all",
                               .notifies = kOneSided,
                               .initiator = Role::sender,
                               .exposes = Exposes::nothing,
                               .indirect_keys = false,
                               .make = &make,
                               .cost_items = &cost_items};

}  // namespace lacuna::method
