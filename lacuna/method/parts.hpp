// What one indirect key can stand for, and how two layouts are cut so that a key on either side suffices.
#pragma once

#include <span>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::method {

/// A stretch of the packed stream.
struct StreamRange {
  std::int64_t from = 0;
  std::int64_t bytes = 0;
  auto operator<=>(const StreamRange&) const = default;
};

/// What a key may hold: the NIC's limits, or less.
struct KeyRoom {
  int entries;
  int strided_entries;
  std::int64_t stride;
};

/// The runs of a part of a layout as a binding would hold them: one strided entry where the part is whole blocks of one
/// loop, else a list.
struct Shape {
  std::vector<layout::Run> runs;  ///< of a strided shape, its first
  std::int64_t repeat = 0;        ///< 0: a list
  std::int64_t stride = 0;

  [[nodiscard]] std::int64_t entries() const { return repeat > 0 ? 1 : std::ssize(runs); }
  /// One run needs no key: the region's own will do.
  [[nodiscard]] bool direct() const { return repeat == 0 && runs.size() <= 1; }
};
/// The part must be one that cut() returned for this layout and this room.
[[nodiscard]] Shape shape_of(const layout::Layout& layout, StreamRange part, const KeyRoom& room);

/// Cuts the common stream of two layouts of equal size into parts that need at most one key on either side: few and
/// large ones, at the same positions for both. No part is larger than `most_bytes`. An empty stream has no parts.
[[nodiscard]] std::vector<StreamRange> cut(const layout::Layout& one, const layout::Layout& other, const KeyRoom& room,
                                           std::int64_t most_bytes);

}  // namespace lacuna::method
