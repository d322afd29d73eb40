// The exchange of a box's border with all neighbours.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "examples/common/job.hpp"
#include "examples/faces3d/box.hpp"

namespace examples::faces3d {

class Exchange {
 public:
  virtual ~Exchange() = default;
  /// All ranks at once: fills the border.
  virtual void run(double* field) = 0;
};

/// "datatype": by MPI's; "native": by Lacuna. Throws std::invalid_argument at another name.
std::unique_ptr<Exchange> make_exchange(const std::string& variant, const Box& box, Job& job);

std::unique_ptr<Exchange> make_native(const Box& box, Job& job);
std::unique_ptr<Exchange> make_by_datatype(const Box& box);

}  // namespace examples::faces3d
