// Jacobi's iteration with five points: every cell becomes the mean of its four neighbours. The field's edge stays as it
// is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "examples/stencil2d/block.hpp"

namespace examples::stencil2d {

/// What a cell begins with, -1 and `n` being the edge; another field for each seed.
double initial(std::uint64_t seed, int row, int column);

/// A block with its border.
std::vector<double> initial_field(std::uint64_t seed, const Block& block);

/// One step of a block whose border is up to date.
void relax(const Block& block, const double* from, double* to);

/// The whole field of n x n cells after so many steps, by one process, as a block that has all of it.
std::vector<double> serial(std::uint64_t seed, const Block& whole, int steps);

/// Cells of the block that are not, bit for bit, what the whole field has there.
std::size_t differences(const Block& block, std::span<const double> field, const Block& whole, std::span<const double> wanted);

}  // namespace examples::stencil2d
