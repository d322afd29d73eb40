// What the methods with indirect keys add as cost items.
#pragma once

#include "lacuna/method/key_cache.hpp"
#include "lacuna/method/one_sided.hpp"

namespace lacuna::method {

/// Parts of the stream that a key of `room` on either side holds, `list` of them in a request's list; `haul` says how
/// the requests move.
void key_cost_items(CostItems& cost_items, const nic::Limits& limits, const KeyRoom& room, CostItems::Haul haul, int list);

}  // namespace lacuna::method
