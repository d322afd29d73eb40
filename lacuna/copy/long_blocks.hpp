// long_blocks: blocks of one length that come from loops around a few of them each, collected, so that a kernel sees
// the next ones coming. For destinations that are in no cache: else it takes longer than the loops. It hides that a
// kernel of lists moves them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {

class LongBlocks {
 public:
  /// Bytes of a block that it pays for, and of one that goes to dense bytes. Figures of these and of kFew and kMost:
  /// docs/notes/copying.md, slices of heads.
  static constexpr std::int64_t kLeast = 256, kLeastPacked = 512;

  /// Blocks are moved in the order in which they come, by finish() at the latest. The memory stays until then.
  void add(std::byte* to, const std::byte* from, std::int64_t length) {
    if (length != length_) {
      begin(to, from, length);
    } else if (count_ == kMost) {
      move(count_ - kBlocksAhead);
    }
    const auto at = static_cast<std::size_t>(count_++);
    to_offsets_[at] = to - to_;
    from_offsets_[at] = from - from_;
  }
  /// If the blocks of a move are so few that a kernel sees too little: adds them.
  bool add(const Move& move, Access from_access, Access to_access, const std::byte* from, std::byte* to);
  /// Moves what was added and is not there yet.
  void finish() { move(count_); }

 private:
  void begin(std::byte* to, const std::byte* from, std::int64_t length);
  void move(std::int64_t count);

  static constexpr std::int64_t kFew = 64;  // of a move: a kernel sees enough of more
  // Those that were asked for come meanwhile: more would take longer to collect than these to come.
  static constexpr std::int64_t kMost = 64;
  std::int64_t length_ = 0;
  Kernel kernel_;
  std::int64_t count_ = 0;
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  std::array<std::int64_t, kMost> to_offsets_, from_offsets_;
};

}  // namespace lacuna::copy
