// The DDTBench layouts as plain loop nests: every element in its order on the wire, by index arithmetic alone.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/guide/ddtbench.hpp"
#include "tests/support/typemap.hpp"

namespace lacuna::support {

/// The runs of the sending or the receiving side, merged where they touch in the array.
std::vector<layout::Run> ddtbench_nest(const guide::DdtCase& c, bool receive);

/// An index list of a case, and how many arrays are indexed by it.
struct DdtList {
  std::vector<std::int64_t> list;
  std::int64_t arrays;
};
std::vector<DdtList> ddtbench_lists(const guide::DdtCase& c);

}  // namespace lacuna::support
