// shuffles: short elements whose sides are dense along different loops, one of which is too short for tiles, such as
// the channels of a picture; or along one loop in opposite directions. A fixed permutation of some bytes, again and
// again:
//
//   from    r g b r g b r g b ...        windows of 16 or 64 bytes wherever the bytes lie,
//             ╲ │ ╱                      each with an order for its bytes and a mask of those that are wanted,
//   to      r r r ...  g g g ...         become as many bytes of the destination: one store, of its own bytes alone
//
// Windows of 64 bytes and masked stores need AVX-512 with permutations of bytes (VBMI), windows of 16 bytes AVX2 or
// NEON. Elsewhere there are no such programs, and elements are moved one by one.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/walk.hpp"

namespace lacuna::copy {

/// Terms of a window whose orders lanes of 16 bytes keep in registers.
inline constexpr std::int64_t kFewTerms = 8;

/// The permutations of bytes that an instruction set has.
struct Windowing {
  std::int64_t width = 0;  ///< bytes of a window; 0: it has none
  std::int64_t most = 0;   ///< bytes of one permutation: its orders stay in the L1 cache beside what is moved
  bool masked = false;     ///< stores leave out what is not wanted
  /// What they take in a cache, to decide between ways that are right in any case: 64 bytes on an EPYC of 2024, 16 on
  /// one of 2021.
  double window_cycles = 0;
  double term_cycles = 0;  ///< of up to kFewTerms
  double many_cycles = 0;  ///< of each of more
};

/// What one window of the source holds of one window of the destination.
struct Term {
  static constexpr std::uint8_t kNone = 0x80;  ///< no byte of the source's window
  alignas(64) std::uint8_t order[64];          ///< for each byte of the destination's window, its place in the source's
  std::uint64_t wanted = 0;                    ///< bytes of the destination's window that come from here
  std::uint64_t read = 0;                      ///< bytes of the source's window that are touched
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
  [[nodiscard]] std::int64_t piece_of(std::int64_t count, std::int64_t bytes, std::int64_t most) const;
  bool add_windows(std::span<const Byte> bytes, double most_cycles);
  void add_window(std::span<const Byte> window_bytes);

  Windowing windowing_;
  double cycles_ = 0;
  std::vector<ToWindow> windows_;
  std::vector<Term> terms_;
  std::int64_t bytes_ = 0;
  std::int64_t from_ = 0, to_ = 0;  // where the first one begins
  Around inner_;
  bool follows_ = false;  // what the inner loop's entries write has no gap and follows one another
  Walk walk_;
};

}  // namespace lacuna::copy
