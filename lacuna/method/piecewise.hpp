// What multi_write and linked_write share: one write for each piece that is contiguous on both sides, so many of them
// with one doorbell.
#pragma once

#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {

Made make_piecewise(Role role, Endpoint& endpoint, const Transfer& transfer, const Memory& memory, int chain);

/// A write for each piece, `chain` of them with a doorbell.
void piecewise_cost_items(CostItems& cost_items, const nic::Limits& limits, int chain);

}  // namespace lacuna::method
