// cold: whether memory is in any cache, asked of the memory itself. Stores that pass the caches by save a third of the
// traffic to memory that is in none, and cost twice the time where it is in one; no caller knows which, so a few of its
// lines are timed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lacuna::copy {

/// Bytes; below this, asking costs more than it can bring (docs/notes/copying.md).
inline constexpr std::int64_t kAsk = 64 << 10;

/// Loads a byte at each address, until one comes from a cache: true if none does. Costs what the loads take, some 30 ns
/// each from a cache and some 300 from memory. Where the CPU has no clock fine enough, false.
[[nodiscard]] bool is_cold(std::span<const std::byte* const> addresses);

/// Whether so many bytes are more than the last level of the caches keeps until they are wanted again. Of these a store
/// that passes the caches by is best whatever they hold now.
[[nodiscard]] bool exceeds_caches(std::int64_t bytes);

}  // namespace lacuna::copy
