// What memory holds before a transfer and must hold after it. The expectation is computed from nothing but the naive walk of both layouts.
//
// A layout that is mostly gap (30 blocks, 45 MB apart) is looked at through windows: its runs and a guard around each. Otherwise there is one
// window, over all of it and a guard at either end.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

inline constexpr std::int64_t kGuard = 4096;  // bytes around what a layout covers, which nobody may touch

/// Byte `offset` of a source filled with `seed`.
[[nodiscard]] inline std::byte source_byte(std::uint64_t seed, std::int64_t offset) {
  std::uint64_t x = (seed << 40) + static_cast<std::uint64_t>(offset);  // splitmix64's mixer
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return static_cast<std::byte>(x >> 56);
}
/// Byte `offset` of a gap: not constant, so that a shifted gap shows.
[[nodiscard]] inline std::byte gap_byte(std::int64_t offset) { return static_cast<std::byte>(0xa5 ^ (offset * 7 & 0xff)); }

class Windows {
 public:
  /// Of a layout within [0, span).
  Windows(const Layout& layout, std::int64_t span);
  struct Window {
    std::int64_t from;  // offset from the layout's base
    std::int64_t to;
    std::int64_t at;  // where its bytes are in an image
  };
  [[nodiscard]] std::span<const Window> list() const { return list_; }
  [[nodiscard]] std::int64_t bytes() const { return list_.back().at + list_.back().to - list_.back().from; }
  /// Where byte `offset`, which must be within a window, is in an image.
  [[nodiscard]] std::int64_t index(std::int64_t offset) const;

 private:
  std::vector<Window> list_;
};

/// What the windows of one buffer hold.
class Image {
 public:
  static Image source(const Case& what, std::uint64_t seed);
  /// A destination before a transfer.
  static Image empty(const Case& what);
  /// A destination after a transfer from source(seed): the payload in place, gaps and guards as before.
  static Image expected(const Case& what, std::uint64_t seed);

  void write_to(std::byte* base) const;
  /// Nothing if the memory at `base` holds the same, else a sentence that names the first byte that differs. No transfer into it may be under
  /// way.
  [[nodiscard]] std::string difference(const std::byte* base) const;
  [[nodiscard]] const Windows& windows() const { return windows_; }
  [[nodiscard]] const std::vector<std::byte>& bytes() const { return bytes_; }

 private:
  Image(Windows windows, const auto& byte_at);
  Windows windows_;
  std::vector<std::byte> bytes_;
};

}  // namespace lacuna::guide
