// What is sent in a job, by what it is called; each is made when it is asked for.
#pragma once

#include <string>
#include <vector>

#include "tools/bench/copy/cases.hpp"

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

/// So many bytes in one piece.
MessageCase contiguous_case(std::int64_t bytes);
/// Every DDTBench layout at every size.
std::vector<MessageCase> ddtbench_cases();

std::int64_t finer(const layout::Layout& send, const layout::Layout& receive);  ///< the blocks of the finer one

}  // namespace lacuna::bench
