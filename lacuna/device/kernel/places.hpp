// places: where the runs of a thread's units lie. It hides how a number is divided among the loops of a part.
#pragma once

#include "lacuna/device/kernel/memory.hpp"

namespace lacuna::device::kernel {

/// Where the runs of a thread's units lie on both sides, relative to the part's first byte, and which units of them
/// they are.
template <class Offset, int flight>
struct Spots {
  Offset from[flight];
  Offset to[flight];
  u32 unit[flight];
};

/// Divides what is left of the units by the level's count: the remainders are the loop's indices. The outermost loop
/// takes what is left.
template <int flight>
LACUNA_ON_DEVICE void divide(const Level& level, bool outermost, u32 (&left)[flight], u32 (&index)[flight]) {
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    index[k] = left[k];
    if (outermost) continue;
    left[k] = (high_word(left[k], level.magic) + left[k]) >> level.shift;
    index[k] -= left[k] * level.count;
  }
}

/// `places`: from or to, which grows by where the loop's entries lie on that side.
template <class Offset, int flight>
LACUNA_ON_DEVICE void add_places(const u64* tables, Places kind, u32 list, i64 step, const u32 (&index)[flight], Offset (&places)[flight]) {
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    if (kind == Places::stride)
      places[k] += static_cast<Offset>(index[k]) * static_cast<Offset>(step);
    else if (kind == Places::list32)
      places[k] += static_cast<Offset>(listed<int>(tables, list, index[k])) * static_cast<Offset>(step);
    else
      places[k] += static_cast<Offset>(listed<i64>(tables, list, index[k]));
  }
}

/// The block that holds a unit.
LACUNA_ON_DEVICE u32 block_of(const u64* tables, const Part& part, u32 unit) {
  const u64 mark = listed<u64>(tables, part.blocks.marks, unit >> 5);
  const u32 begun = static_cast<u32>(mark >> 32) & (0xffffffffU >> (31 - (unit & 31)));  // up to the unit itself
  return static_cast<u32>(mark) + ones(begun);
}

/// The units first + k * kThreads; those beyond `end` are found as the part's first one.
template <class Offset, int flight>
LACUNA_ON_DEVICE void find(const u64* tables, const Part& part, u32 first, u32 end, Spots<Offset, flight>& spots) {
  u32 left[flight];
  u32 index[flight];
  const int levels = part.levels;
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const u32 unit = first + static_cast<u32>(k * kThreads);
    left[k] = unit < end ? unit : 0;
    spots.from[k] = 0;
    spots.to[k] = 0;
  }
  divide<flight>(part.level[0], levels == 1, left, spots.unit);
  LACUNA_ONE_BY_ONE
  for (int l = 1; l < levels; ++l) {
    const Level& level = part.level[l];
    divide<flight>(level, l + 1 == levels, left, index);
    add_places<Offset, flight>(tables, level.from_places, level.from_list, level.from, index, spots.from);
    add_places<Offset, flight>(tables, level.to_places, level.to_list, level.to, index, spots.to);
  }
}

}  // namespace lacuna::device::kernel
