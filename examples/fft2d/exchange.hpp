// The exchange between the two halves of the transform: the matrix, in blocks of rows over the ranks, becomes its
// transpose in the same blocks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/common/job.hpp"
#include "examples/fft2d/matrix.hpp"

namespace examples::fft2d {

/// Microseconds of this rank.
struct Phases {
  double packing = 0;        ///< loops written by hand: packing, unpacking, and the block that stays
  double communication = 0;  ///< calls of MPI or Lacuna
};

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// All ranks at once: `from` is this rank's block of rows, `to` that of the transpose.
  virtual Phases run(const Complex* from, Complex* to) = 0;
};

/// "none": packed and unpacked by hand; "send", "recv", "both": that side, or both, by MPI's datatypes; "native": by
/// Lacuna, without MPI. Throws std::invalid_argument at another name.
std::unique_ptr<Exchange> make_exchange(const std::string& variant, const Rows& rows, Job& job);

std::unique_ptr<Exchange> make_native(const Rows& rows, Job& job);
std::unique_ptr<Exchange> make_by_mpi(const Rows& rows, const Job& job, bool send_datatype, bool recv_datatype);

}  // namespace examples::fft2d
