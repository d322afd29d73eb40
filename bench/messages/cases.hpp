// What is sent: contiguous bytes, every DDTBench layout at every size, and transfers of AI systems.
#pragma once

#include <string>
#include <vector>

#include "bench/copy/cases.hpp"

namespace lacuna::bench {

struct MessageCase {
  std::string suite;  ///< "contiguous", "ddtbench", "ai"
  std::string name;
  std::string family;  ///< of the suite; a contiguous case has none
  std::int64_t payload = 0;
  std::int64_t blocks = 0;  ///< of the finer side
  Case (*make)(const MessageCase&) = nullptr;
  std::int64_t number = 0;  ///< what make() goes by: of the DDTBench list, or the bytes that an AI transfer is cut to
};
const std::vector<MessageCase>& message_cases();

/// The layout as an MPI program would write it: vectors, blocks of one length, blocks of several.
guide::Datatype written(const layout::Layout& layout);

}  // namespace lacuna::bench
