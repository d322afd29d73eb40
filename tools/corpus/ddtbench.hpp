// The DDTBench corpus: the data layouts of the micro-applications of Schneider, Gerstenberger and Hoefler
// ("Micro-applications for communication data access patterns and MPI datatypes", EuroMPI 2012), for all their sizes,
// built from the constructors that an MPI program would use. Index lists come from fixed seeds, so a case is the same
// layout everywhere and always.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tools/corpus/datatype.hpp"

namespace lacuna::corpus {

/// One exchange: what a process sends and where its peer puts it. Each side's arrays lie one after the other, aligned
/// to 64 bytes, in one allocation of `span` bytes, to whose start its layout is relative; all offsets are within the
/// span.
struct DdtCase {
  std::string name;    ///< the family
  std::string dims;    ///< the size, as the benchmark gives it
  Datatype send_type;  ///< as an MPI program builds it
  Datatype receive_type;
  layout::Layout send;
  layout::Layout receive;
  std::int64_t send_span = 0;
  std::int64_t receive_span = 0;
};

/// The families, in the benchmark's order.
[[nodiscard]] std::vector<std::string> ddtbench_families();
/// How many sizes a family has; 0 if there is no such family.
[[nodiscard]] int ddtbench_sizes(std::string_view family);
/// Errors: invalid_argument if there is no such family or size.
[[nodiscard]] base::Result<DdtCase> ddtbench(std::string_view family, int size_index);

/// The first `count` entries of a shuffled [0, n): the index lists of the irregular families.
[[nodiscard]] std::vector<std::int64_t> ddtbench_list(std::int64_t n, std::int64_t count, std::uint64_t seed);

}  // namespace lacuna::corpus
