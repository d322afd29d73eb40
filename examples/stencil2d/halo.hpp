// The exchange of borders between neighbours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/common/job.hpp"
#include "examples/stencil2d/block.hpp"

namespace examples::stencil2d {

class Halo {
 public:
  virtual ~Halo() = default;
  /// All ranks at once: fills the border of `field`, one of two blocks of the same shape.
  virtual void exchange(double* field) = 0;
};

/// "datatype": by MPI's; "native": by Lacuna. Throws std::invalid_argument at another name.
std::unique_ptr<Halo> make_halo(const std::string& variant, const Block& block, Job& job);

std::unique_ptr<Halo> make_native(const Block& block, Job& job);
std::unique_ptr<Halo> make_by_datatype(const Block& block);

}  // namespace examples::stencil2d
