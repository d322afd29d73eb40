// One rank's box of cells with a border of one cell on every side, and its 26 neighbours: six across faces, twelve
// across edges, eight across corners.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace examples::faces3d {

using Triple = std::array<int, 3>;  // z, y, x; the last one is contiguous

/// A direction to a neighbour: -1, 0 or 1 for each axis. Number 13 is the box itself.
inline constexpr int kDirections = 27;
inline constexpr int kItself = 13;
inline Triple direction(int number) { return {number / 9 - 1, number / 3 % 3 - 1, number % 3 - 1}; }
inline int opposite(int number) { return kDirections - 1 - number; }

/// A part of the box with its border, in cells from the border's first on.
struct Part {
  Triple first{};
  Triple count{};
};

struct Box {
  Triple cells{};  ///< without the border
  Triple grid{};   ///< of boxes; beyond its end it begins again
  Triple place{};  ///< of this one

  [[nodiscard]] Triple sizes() const { return {cells[0] + 2, cells[1] + 2, cells[2] + 2}; }
  [[nodiscard]] std::size_t all() const {
    const Triple s = sizes();
    return static_cast<std::size_t>(s[0]) * static_cast<std::size_t>(s[1]) * static_cast<std::size_t>(s[2]);
  }
  [[nodiscard]] std::size_t at(int z, int y, int x) const {
    const Triple s = sizes();
    return (static_cast<std::size_t>(z) * static_cast<std::size_t>(s[1]) + static_cast<std::size_t>(y)) * static_cast<std::size_t>(s[2]) +
           static_cast<std::size_t>(x);
  }
  [[nodiscard]] int neighbour(int number) const {
    const Triple d = direction(number);
    int rank = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) rank = rank * grid[axis] + (place[axis] + d[axis] + grid[axis]) % grid[axis];
    return rank;
  }
  /// The cells that the neighbour in this direction needs.
  [[nodiscard]] Part inner(int number) const { return part(number, 1, 0); }
  /// The part of the border that it fills.
  [[nodiscard]] Part border(int number) const { return part(number, 0, 1); }

 private:
  [[nodiscard]] Part part(int number, int at_start, int beyond_end) const {
    const Triple d = direction(number);
    Part made;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      made.first[axis] = d[axis] < 0 ? at_start : d[axis] > 0 ? cells[axis] + beyond_end : 1;
      made.count[axis] = d[axis] == 0 ? cells[axis] : 1;
    }
    return made;
  }
};

}  // namespace examples::faces3d
