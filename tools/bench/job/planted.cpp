#include "tools/bench/job/planted.hpp"

#include <cstdlib>

namespace lacuna::bench {

const char* planted_fault() {
#if defined(LACUNA_TEST_FAULTS)
  return std::getenv("LACUNA_TEST_FAULT");
#else
  return nullptr;
#endif
}

}  // namespace lacuna::bench
