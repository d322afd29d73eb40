#include "examples/stencil2d/jacobi.hpp"

#include <bit>

namespace examples::stencil2d {

double initial(std::uint64_t seed, int row, int column) {
  std::uint64_t x = (static_cast<std::uint64_t>(row + 1) << 32U) + static_cast<std::uint64_t>(column + 1) + seed * 0x9e3779b97f4a7c15U;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;  // SplitMix64's finalizer
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
  return static_cast<double>((x ^ (x >> 31U)) >> 11U) * 0x1p-53;
}

std::vector<double> initial_field(std::uint64_t seed, const Block& block) {
  std::vector<double> field(block.cells());
  for (int r = -1; r <= block.rows.count; ++r)
    for (int c = -1; c <= block.columns.count; ++c) field[block.at(r, c)] = initial(seed, block.rows.first + r, block.columns.first + c);
  return field;
}

void relax(const Block& block, const double* __restrict from, double* __restrict to) {
  const std::size_t pitch = block.pitch();
  for (int r = 0; r < block.rows.count; ++r) {
    const std::size_t row = block.at(r, 0);
    for (std::size_t i = row; i < row + static_cast<std::size_t>(block.columns.count); ++i)
      to[i] = ((from[i - pitch] + from[i + pitch]) + (from[i - 1] + from[i + 1])) * 0.25;
  }
}

std::vector<double> serial(std::uint64_t seed, const Block& whole, int steps) {
  std::vector<double> now = initial_field(seed, whole);
  std::vector<double> next = now;
  for (int step = 0; step < steps; ++step) {
    relax(whole, now.data(), next.data());
    now.swap(next);
  }
  return now;
}

std::size_t differences(const Block& block, std::span<const double> field, const Block& whole, std::span<const double> wanted) {
  std::size_t wrong = 0;
  for (int r = 0; r < block.rows.count; ++r)
    for (int c = 0; c < block.columns.count; ++c)
      if (std::bit_cast<std::uint64_t>(field[block.at(r, c)]) !=
          std::bit_cast<std::uint64_t>(wanted[whole.at(block.rows.first + r, block.columns.first + c)]))
        ++wrong;
  return wrong;
}

}  // namespace examples::stencil2d
