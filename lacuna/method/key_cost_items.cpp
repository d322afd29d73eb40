#include "lacuna/method/key_cost_items.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lacuna::method {
namespace {

// Entries of a binding; 0 where a region's own key will do.
double entries_of(const layout::Outline& side, const KeyRoom& room) {
  if (side.contiguous()) return 0;
  const bool strided = side.stride > 0 && room.strided_entries > 0 && side.stride <= room.stride;
  return strided ? 1.0 : static_cast<double>(side.runs);
}

// Of `entries` in keys of `room`, of which the last one has what is left. Where both sides have lists, either's key may
// fill first: then it is so on average only.
double longer_of(double entries, double room, double keys) {
  if (keys < 2 || keys > std::ceil(entries / room)) return 1;  // one key, or cut by messages
  const double left = entries - (keys - 1) * room;
  const double mean = entries / keys;
  return ((keys - 1) * room * room + left * left) / (keys * mean * mean);
}

}  // namespace

void key_cost_items(CostItems& cost_items, const nic::Limits& limits, const KeyRoom& room, CostItems::Haul haul, int list) {
  const layout::PairOutline& pair = cost_items.pair();
  haul.gather_keys = entries_of(pair.src, room);
  haul.scatter_keys = entries_of(pair.dst, room);
  // Both sides are cut where either's key is full.
  const bool listed = haul.gather_keys > 1 && haul.scatter_keys > 1;
  const double most = listed ? pair.paired : std::max(haul.gather_keys, haul.scatter_keys);
  haul.keys = lists_of(most, room.entries, pair.bytes(), limits);
  haul.longer = longer_of(most, std::max(1, room.entries), haul.keys);
  haul.requests = haul.doorbells = std::ceil(haul.keys / std::max(1, list));
  haul.gathers = haul.scatters = haul.keys;
  haul.pieces = pair.pieces;
  cost_items.haul(haul);
  cost_items.bind(haul.keys, std::max(haul.gather_keys, haul.scatter_keys));  // both ends bind at the same time
}

}  // namespace lacuna::method
