// How the result is checked, without any transform but sums written out.
//
// An exchange moves bits: the sum over all elements of their bits, each weighted by a hash of its place, is the same
// before and after it if and only if each element is where it belongs (but for 64-bit coincidences). A row of the
// result is compared with the transform's definition, evaluated directly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "examples/fft2d/matrix.hpp"

namespace examples::fft2d {

/// The input at a row and a column: real and imaginary part between -0.5 and 0.5, others for each seed.
Complex input(std::uint64_t seed, int n, int row, int column);

enum class Order : std::uint8_t { rows, transposed };

/// A block's part of the weighted sum: rows `first` to `first + rows` of n columns, of the matrix or of its transpose.
std::uint64_t fingerprint(std::span<const Complex> block, int first, int n, Order order);

/// Row `row` of the input's two-dimensional transform, evaluated directly: 2 n^2 products.
std::vector<Complex> transformed_row(std::uint64_t seed, int n, int row);

/// |got - wanted| / |wanted|, in the Euclidean norm; not a number where `got` holds what is none.
double relative_error(std::span<const Complex> got, std::span<const Complex> wanted);

/// Errors of transforms in double precision are some 1e-16 times log2(n); of the direct sums some 1e-16 times the root
/// of n, 1e-14 for n = 10 000. One element that is wrong by its own size is 1 / n.
inline constexpr double kMostError = 1e-11;

}  // namespace examples::fft2d
