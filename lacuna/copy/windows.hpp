// windows: 64 bytes of the scattered side at a time, of which a mask says what belongs to the layout. One masked load,
// one permutation of bytes and one store move all blocks of a window, however short they are. Needs AVX-512 with byte
// permutations (VBMI and VBMI2: Ice Lake, Zen 4, and later); elsewhere there are no such kernels, and block by block is
// what remains.
//
//   scattered   ..AAAA....BB......CCCC..DD....  ─ masked load: no byte of a gap is read or written
//                  │        ╲       ╱   ╱
//   dense       AAAABBCCCCDD                    ─ pattern: the same mask everywhere, a fixed permutation
//                                                 masks: one for each window, compress and expand
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {

struct WindowRun {
  std::int64_t offset;
  std::int64_t length;
};

/// The same few runs again and again: a vector of short blocks, an array of structs.
struct Pattern {
  alignas(64) std::uint8_t to_dense[64] = {};      ///< for each dense byte, its place in the window
  alignas(64) std::uint8_t to_scattered[64] = {};  ///< for each place in the window, its dense byte
  std::uint64_t mask = 0;
  std::int64_t width = 64;   ///< bytes from the first to the last that belong to it
  std::int64_t low = 0;      ///< where the window starts, from the first entry's offset
  std::int64_t payload = 1;  ///< bytes of a window
  std::int64_t entries = 1;  ///< of the loop, in a window
  std::int64_t stride = 0;   ///< from window to window
};

/// The pattern of a loop of `count` entries, `stride` apart, each of these runs; as many entries to a window as fit. A
/// list has stride 0: one entry to a window. Nothing where an entry does not fit into 64 bytes, or a run overlaps
/// another.
[[nodiscard]] std::optional<Pattern> pattern_of(std::span<const WindowRun> runs, std::int64_t stride, std::int64_t count);

/// Runs in any order of any lengths; neighbours that ascend within 64 bytes share a window.
struct Masks {
  std::vector<std::int32_t> offsets;
  std::vector<std::uint64_t> masks;
  std::vector<std::int64_t> starts;  ///< dense positions, one more than windows

  /// Appends a run. False if its offset does not fit.
  bool add(std::int64_t offset, std::int64_t length);
  [[nodiscard]] std::int64_t windows() const { return static_cast<std::int64_t>(masks.size()); }
};

struct WindowKernels {
  /// `windows` windows at scattered + low + i * stride, or at scattered + low + offsets[i]; the dense side holds
  /// payload bytes for each. `cold`: the side that is written is in no cache; the other is taken to be in none, either.
  void (*pack)(const Pattern& pattern, const std::int32_t* offsets, std::int64_t windows, const std::byte* scattered, std::byte* dense,
               bool cold);
  void (*unpack)(const Pattern& pattern, const std::int32_t* offsets, std::int64_t windows, std::byte* scattered, const std::byte* dense,
                 bool cold);
  /// Windows of one pattern to windows of another of as many dense bytes, layout to layout.
  void (*move)(const Pattern& from, const std::int32_t* from_offsets, const Pattern& to, const std::int32_t* to_offsets,
               std::int64_t windows, const std::byte* source, std::byte* target);
  /// Windows [first, last).
  void (*pack_masks)(const Masks& masks, std::int64_t first, std::int64_t last, const std::byte* scattered, std::byte* dense);
  void (*unpack_masks)(const Masks& masks, std::int64_t first, std::int64_t last, std::byte* scattered, const std::byte* dense);
};

/// Null where this CPU has none.
[[nodiscard]] const WindowKernels* window_kernels();

}  // namespace lacuna::copy
