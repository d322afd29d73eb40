// The DDTBench layouts as plain loop nests: every element in its order on the wire, by index arithmetic alone.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/support/typemap.hpp"
#include "tools/corpus/ddtbench.hpp"

namespace lacuna::support {

/// The runs of the sending or the receiving side, merged where they touch in the array.
std::vector<layout::Run> ddtbench_nest(const corpus::DdtCase& c, bool receive);

/// An index list of a case, and how many arrays are indexed by it.
struct DdtList {
  std::vector<std::int64_t> list;
  std::int64_t arrays;
};
std::vector<DdtList> ddtbench_lists(const corpus::DdtCase& c);

}  // namespace lacuna::support
