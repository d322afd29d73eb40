#include "lacuna/copy/cold.hpp"

#include <cstdint>
#include <new>

#include "lacuna/base/base.hpp"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace lacuna::copy {

#if defined(__x86_64__)

namespace {

// On two EPYCs of 2022 a load from any of their caches takes up to 290 ticks by this clock, fences and the page walk
// included, and one from memory 400 to 1400 on the one, 312 to 1000 on the other. Where memory is faster than that, it
// passes for a cache, and stores stay ordinary ones.
constexpr std::uint64_t kMemoryTicks = 300;

// The fences keep the load between the two readings; rdtscp would do it for less, but not every virtual CPU has it.
std::uint64_t ticks_of_load(const std::byte* address) {
  _mm_lfence();
  const std::uint64_t before = __rdtsc();
  [[maybe_unused]] const std::byte loaded = *static_cast<const volatile std::byte*>(address);
  _mm_lfence();
  return __rdtsc() - before;
}

}  // namespace

bool misses(const std::byte* address) { return ticks_of_load(address) >= kMemoryTicks; }

#else

bool misses(const std::byte*) { return false; }

#endif

namespace {

// Others use the cache, too.
std::int64_t kept_bytes() {
  const std::int64_t known = base::machine().llc_bytes;
  return (known > 0 ? known : std::int64_t{32} << 20) * 5 / 8;
}

}  // namespace

bool exceeds_caches(std::int64_t bytes) {
  try {
    static const std::int64_t most = kept_bytes();
    return bytes > most;
  } catch (const std::bad_alloc&) {  // it is asked again next time
    return false;
  }
}

}  // namespace lacuna::copy
