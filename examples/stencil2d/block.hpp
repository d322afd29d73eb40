// One rank's block of the field: rows of doubles with a border of one cell all around, which holds the neighbours'
// cells or the field's fixed edge.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace examples::stencil2d {

/// What part of an axis a place of a process grid has; the first ones have one cell more where it does not divide.
struct Share {
  int first = 0;
  int count = 0;
};
inline Share share(int cells, int places, int place) {
  return {place * (cells / places) + std::min(place, cells % places), cells / places + (place < cells % places ? 1 : 0)};
}

struct Block {
  Share rows;
  Share columns;
  std::array<int, 4> neighbours{};  ///< up, down, left, right; negative: the field ends there

  [[nodiscard]] std::size_t pitch() const { return static_cast<std::size_t>(columns.count) + 2; }
  [[nodiscard]] std::size_t cells() const { return (static_cast<std::size_t>(rows.count) + 2) * pitch(); }
  /// Row and column from -1 (the border) to the count (the border again).
  [[nodiscard]] std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(row + 1) * pitch() + static_cast<std::size_t>(column + 1);
  }
};

/// Which cells go to a neighbour, and which of the border come from it: the first one's index, and whether they lie in
/// a column. In the order of Block::neighbours.
struct Side {
  std::size_t inner = 0;
  std::size_t border = 0;
  bool column = false;
};
inline std::array<Side, 4> sides(const Block& b) {
  return {{{b.at(0, 0), b.at(-1, 0), false},
           {b.at(b.rows.count - 1, 0), b.at(b.rows.count, 0), false},
           {b.at(0, 0), b.at(0, -1), true},
           {b.at(0, b.columns.count - 1), b.at(0, b.columns.count), true}}};
}
/// The side on which the neighbour has this rank.
inline std::size_t opposite(std::size_t side) { return side ^ 1U; }

}  // namespace examples::stencil2d
