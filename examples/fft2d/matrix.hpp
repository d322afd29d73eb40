// The matrix: n x n complex numbers in blocks of whole rows over the ranks, as even as possible: the first n % ranks
// have one row more.
#pragma once

#include <algorithm>
#include <complex>
#include <cstddef>

namespace examples::fft2d {

using Complex = std::complex<double>;

struct Rows {
  int n = 0;
  int ranks = 1;

  [[nodiscard]] int count(int rank) const { return n / ranks + (rank < n % ranks ? 1 : 0); }
  [[nodiscard]] int first(int rank) const { return rank * (n / ranks) + std::min(rank, n % ranks); }
  /// Elements of a rank's block.
  [[nodiscard]] std::size_t elements(int rank) const { return static_cast<std::size_t>(count(rank)) * static_cast<std::size_t>(n); }
};

}  // namespace examples::fft2d
