// run: a story, played and judged. What every message has to be is known without the library: a naive walk says where
// each byte goes.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "tests/simulate/story.hpp"
#include "tests/simulate/unlucky.hpp"

namespace lacuna::simulate {

struct Outcome {
  std::vector<std::string> wrong;  ///< empty: all was as it has to be
  std::string trace;               ///< where it is kept
  std::uint64_t digest = 0;        ///< of the trace
  Happened happened;
  std::int64_t messages = 0;  ///< steps that ended well
  std::int64_t failed = 0;    ///< and that failed, as they may
  std::int64_t unmapped = 0;  ///< pieces of memory that went back to the system right after their step
};

/// `shown`: where the trace goes as things happen. Throws std::bad_alloc.
Outcome run(const Story& story, bool keeps_trace = false, std::FILE* shown = nullptr);

}  // namespace lacuna::simulate
