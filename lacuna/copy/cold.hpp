// cold: whether memory is in any cache, asked of the memory itself. Stores that pass the caches by save a third of the
// traffic to memory that is in none, and cost twice the time where it is in one; no caller knows which, so a few of its
// lines are timed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lacuna::copy {

/// Bytes; below this, asking costs more than it can bring, and below that, asking twice (docs/notes/copying.md).
inline constexpr std::int64_t kAsk = 64 << 10;
inline constexpr std::int64_t kAskTwice = 256 << 10;

/// Whether a load of this byte does not come from a cache. Costs what the load takes, some 30 ns from a cache and some
/// 300 from memory. Where the CPU has no clock fine enough, false.
[[nodiscard]] bool misses(const std::byte* address);

/// Whether so many bytes are in no cache, as one or two of them say: `behind(k)` is the address of one with about k
/// thirds of them before it. False without asking where the answer would not be worth the question.
template <class Behind>
[[nodiscard]] bool is_cold(std::int64_t bytes, const Behind& behind) {
  return bytes >= kAsk && misses(behind(1)) && (bytes < kAskTwice || misses(behind(2)));
}

/// Whether bytes are in a cache, as two of them say. Not the opposite of is_cold(): of what is in part in one,
/// neither holds.
template <class Behind>
[[nodiscard]] bool is_kept(const Behind& behind) {
  return !misses(behind(1)) && !misses(behind(2));
}

/// Whether so many bytes are more than the last level of the caches keeps until they are wanted again. Of these a store
/// that passes the caches by is best whatever they hold now.
[[nodiscard]] bool exceeds_caches(std::int64_t bytes);

}  // namespace lacuna::copy
