#include "lacuna/method/piecewise.hpp"

#include <algorithm>
#include <cmath>

namespace lacuna::method {
namespace {

class Sender final : public Initiator {
 public:
  Sender(Endpoint& endpoint, const Transfer& transfer, const Memory& memory, Notice notice, int chain, layout::Intersection pieces)
      : Initiator(endpoint, transfer.src, memory, std::move(notice), chain), pieces_(std::move(pieces)) {}

 private:
  Result<void> begin() override {
    pieces_.seek(0);
    return Initiator::begin();
  }
  [[nodiscard]] bool exhausted() const override { return pieces_.done(); }
  Result<bool> add_next(Chain& chain) override {
    const layout::Piece piece = pieces_.next(largest_message(endpoint_.limits()));
    chain.append(sge({piece.src, piece.length}));
    chain.add(nic::Opcode::write, remote(0).addr + static_cast<std::uint64_t>(piece.dst), remote(0).rkey);
    return true;
  }

  layout::Intersection pieces_;
};

}  // namespace

Made make_piecewise(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, int chain) {
  if (role == Role::receiver) return Landing::make_in_place(endpoint, transfer, memory);
  layout::Intersection pieces = LACUNA_TRY(layout::Intersection::of(transfer.src, transfer.dst));
  return std::make_unique<Sender>(endpoint, transfer, memory, LACUNA_TRY(Notice::create(endpoint.context(), transfer.notify)), chain,
                                  std::move(pieces));
}

void bill_piecewise(Bill& bill, const nic::Limits& limits, int chain) {
  const double pieces = std::max(bill.pair().pieces, messages_of(bill.pair().bytes(), limits));
  bill.haul({.requests = pieces, .doorbells = std::ceil(pieces / chain), .gathers = pieces, .scatters = pieces, .pieces = pieces});
}

}  // namespace lacuna::method
