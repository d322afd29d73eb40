// What this program holds of the heap, counted by its operators new and delete, the library's calls included.
#pragma once

#include <cstdint>

namespace lacuna::test {

struct Allocations {
  std::int64_t bytes = 0;    ///< now
  std::int64_t most = 0;     ///< since the last call of watch()
  std::int64_t largest = 0;  ///< at once, since then
};
[[nodiscard]] Allocations allocations();
/// From here on; what is held already counts as nothing.
void watch();

}  // namespace lacuna::test
