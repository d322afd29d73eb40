// What each cell must hold: a number that is its place in the whole field, and differs from round to round.
#pragma once

#include <span>

#include "examples/faces3d/box.hpp"

namespace examples::faces3d {

/// Fills the box; its border with what no cell holds.
void fill(const Box& box, int round, std::span<double> field);

/// Cells, with the border, that do not hold what they must.
std::size_t wrong_cells(const Box& box, int round, std::span<const double> field);

}  // namespace examples::faces3d
