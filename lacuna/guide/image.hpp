// What memory holds before a transfer and must hold after it. The expectation is computed from nothing but the naive walk of both layouts.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

inline constexpr std::int64_t kGuard = 4096;  // bytes on each side of a buffer that nobody may touch

/// Byte `offset` of a source filled with `seed`.
[[nodiscard]] inline std::byte source_byte(std::uint64_t seed, std::int64_t offset) {
  std::uint64_t x = (seed << 32) + static_cast<std::uint64_t>(offset);  // splitmix64's mixer
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return static_cast<std::byte>(x >> 56);
}
/// Byte `offset` of a gap: not constant, so that a shifted gap shows.
[[nodiscard]] inline std::byte gap_byte(std::int64_t offset) { return static_cast<std::byte>(0xa5 ^ (offset * 7 & 0xff)); }

/// A source of `span` bytes.
[[nodiscard]] std::vector<std::byte> source_image(std::uint64_t seed, std::int64_t span);
/// A destination before a transfer: guard, `span` bytes, guard.
[[nodiscard]] std::vector<std::byte> empty_image(std::int64_t span);
/// A destination after a transfer from source_image(seed): the payload in place, gaps and guards as before.
[[nodiscard]] std::vector<std::byte> expected_image(const Case& what, std::uint64_t seed);
/// Nothing if both hold the same, else a sentence that names the first byte that differs. `memory` and `expected` include the guards.
/// No transfer into `memory` may be under way.
[[nodiscard]] std::string difference(const std::byte* memory, const std::vector<std::byte>& expected);

}  // namespace lacuna::guide
