#include "lacuna/copy/cold.hpp"

#include <unistd.h>

#include <cstdint>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lacuna::copy {

#if defined(__x86_64__)

namespace {

// On an EPYC of 2022 a load from any of its caches takes up to 200 ticks by this clock, fences included, and one from memory 400 to
// 1400, the page walk included. Where memory is faster than that, it passes for a cache, and stores stay ordinary ones.
constexpr std::uint64_t kMemoryTicks = 320;

// The fences keep the load between the two readings; rdtscp would do it for less, but not every virtual CPU has it.
std::uint64_t ticks_of_load(const std::byte* address) {
  _mm_lfence();
  const std::uint64_t before = __rdtsc();
  [[maybe_unused]] const std::byte loaded = *static_cast<const volatile std::byte*>(address);
  _mm_lfence();
  return __rdtsc() - before;
}

}  // namespace

bool is_cold(std::span<const std::byte* const> addresses) {
  for (const std::byte* address : addresses) {
    if (ticks_of_load(address) < kMemoryTicks) return false;
  }
  return !addresses.empty();
}

#else

bool is_cold(std::span<const std::byte* const>) { return false; }

#endif

bool exceeds_caches(std::int64_t bytes) {
  // 32 MiB where the system does not say. Three quarters, as the C library's memcpy has it: others use the cache, too.
  static const std::int64_t most = [] {
    const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return (last_level > 0 ? std::int64_t{last_level} : std::int64_t{32} << 20) / 4 * 3;
  }();
  return bytes > most;
}

}  // namespace lacuna::copy
