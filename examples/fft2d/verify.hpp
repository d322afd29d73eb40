// Whether a variant transforms the matrix: known input, both exchanges bit by bit, the result against a reference
// (check.hpp).
#pragma once

#include <cstdint>
#include <string>

#include "examples/fft2d/transform.hpp"

namespace examples::fft2d {

struct Verified {
  std::string against;
  int rows = 0;      ///< of the result that were compared, of all ranks
  double error = 0;  ///< the largest of a row
};

/// All ranks together. Throws std::runtime_error, in all of them, where something is wrong.
Verified verify(Transform& transform, Exchange& exchange, const Rows& rows, const Job& job, std::uint64_t seed);

}  // namespace examples::fft2d
