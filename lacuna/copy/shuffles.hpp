// shuffles: short elements whose sides are dense along different loops, one of which is too short for tiles, such as
// the channels of a picture; or along one loop in opposite directions. A fixed permutation of some bytes, again and
// again:
//
//   from    r g b r g b r g b ...        windows of 64 bytes wherever the bytes lie,
//             ╲ │ ╱                      each with an order for its bytes and a mask of those that are wanted,
//   to      r r r ...  g g g ...         become 64 bytes of the destination: one store, of its own bytes alone
//
// Needs AVX-512 with permutations of bytes (VBMI); elsewhere there are no such programs, and elements are moved one by
// one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/walk.hpp"

namespace lacuna::copy {

/// What one window of the source holds of one window of the destination.
struct Term {
  alignas(64) std::uint8_t order[64] = {};  ///< for each byte of the destination's window, its place in the source's
  std::uint64_t wanted = 0;                 ///< bytes of the destination's window that come from here
  std::uint64_t read = 0;                   ///< bytes of the source's window that are touched
  std::int64_t from = 0;
};
struct ToWindow {
  std::int64_t to = 0;
  std::uint64_t written = 0;
  std::int64_t terms = 0;
};

/// One window of many permutations, each some bytes behind the one before.
struct Steps {
  std::int64_t count;
  std::int64_t from;
  std::int64_t to;
};

class Shuffles {
 public:
  /// Nothing where that is expected to take longer than `cycles` for each byte, or where this CPU has no such
  /// permutations. Throws std::bad_alloc.
  static std::optional<Shuffles> of(const Nest& nest, double cycles);

  /// `stream`: the destination is in no cache.
  void move(const std::byte* from, std::byte* to, bool stream) const;
  /// Whether what is written has no gap over long stretches, so that it can leave the caches in whole lines.
  [[nodiscard]] bool follows() const { return follows_; }
  [[nodiscard]] std::int64_t windows() const { return static_cast<std::int64_t>(windows_.size()); }
  [[nodiscard]] std::int64_t terms() const { return static_cast<std::int64_t>(terms_.size()); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Byte {
    std::int64_t to;
    std::int64_t from;
  };
  std::int64_t take_blocks(Nest& rest, std::span<Byte> blocks);
  void add_around(const Loop& loop, std::int64_t piece, std::int64_t bytes);
  void add_window(Byte* bytes, std::int64_t count);

  std::vector<ToWindow> windows_;
  std::vector<Term> terms_;
  std::int64_t bytes_ = 0;
  std::int64_t from_ = 0, to_ = 0;  // where the first one begins
  Around inner_;
  bool follows_ = false;  // what the inner loop's entries write has no gap and follows one another
  Walk walk_;
};

}  // namespace lacuna::copy
