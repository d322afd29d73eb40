#include "examples/faces3d/check.hpp"

namespace examples::faces3d {
namespace {

// Of a cell of the box with its border: the cell's number in the whole field, which begins again where it ends. Exact
// in a double.
double value(const Box& box, int round, const Triple& cell) {
  std::int64_t number = round;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const int all = box.grid[axis] * box.cells[axis];
    const int at = (box.place[axis] * box.cells[axis] + cell[axis] - 1 + all) % all;
    number = number * all + at;
  }
  return static_cast<double>(number);
}

template <class Visit>
void each_cell(const Box& box, Visit visit) {
  const Triple sizes = box.sizes();
  for (int z = 0; z < sizes[0]; ++z)
    for (int y = 0; y < sizes[1]; ++y)
      for (int x = 0; x < sizes[2]; ++x) visit(Triple{z, y, x});
}

bool is_border(const Box& box, const Triple& cell) {
  for (std::size_t axis = 0; axis < 3; ++axis)
    if (cell[axis] == 0 || cell[axis] == box.cells[axis] + 1) return true;
  return false;
}

}  // namespace

void fill(const Box& box, int round, std::span<double> field) {
  each_cell(box,
            [&](const Triple& cell) { field[box.at(cell[0], cell[1], cell[2])] = is_border(box, cell) ? -1 : value(box, round, cell); });
}

std::size_t wrong_cells(const Box& box, int round, std::span<const double> field) {
  std::size_t wrong = 0;
  each_cell(box, [&](const Triple& cell) { wrong += field[box.at(cell[0], cell[1], cell[2])] != value(box, round, cell) ? 1U : 0U; });
  return wrong;
}

}  // namespace examples::faces3d
