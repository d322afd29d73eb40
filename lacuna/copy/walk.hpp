// walk: the loops around what a kernel moves.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>

#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/nest.hpp"

namespace lacuna::copy {

/// A loop around. The last entry has a place of its own: where a loop is cut into equal pieces, the last one overlaps
/// the one before.
struct Around {
  std::int64_t count = 1;
  std::int64_t from = 0, to = 0;
  std::int64_t last_from = 0, last_to = 0;

  Around() = default;
  explicit Around(const Loop& l)
      : count(l.count), from(l.from), to(l.to), last_from((l.count - 1) * l.from), last_to((l.count - 1) * l.to) {}
  /// Around a piece of a loop.
  Around(const Loop& l, std::int64_t piece)
      : count((l.count + piece - 1) / piece),
        from(piece * l.from),
        to(piece * l.to),
        last_from((l.count - piece) * l.from),
        last_to((l.count - piece) * l.to) {}

  /// Whether the last entry is where the others say.
  [[nodiscard]] bool is_even() const { return last_from == (count - 1) * from && last_to == (count - 1) * to; }

  /// some(entries, from, to) for up to `batch` entries at a time, each a step behind the one before.
  template <class Some>
  void in_batches(std::int64_t batch, const std::byte* f, std::byte* t, const Some& some) const {
    const std::int64_t even = is_even() ? count : count - 1;
    for (std::int64_t i = 0; i < even; i += batch) some(std::min(batch, even - i), f + i * from, t + i * to);
    if (even < count) some(1, f + last_from, t + last_to);
  }
};

/// The loops around, innermost first: those whose entries share lines on either side, then short steps before long
/// ones.
class Walk {
 public:
  void add(const Around& loop) {
    if (loop.count == 1) return;
    const auto step = [](const Around& l) {
      const std::int64_t from = std::abs(l.from), to = std::abs(l.to);
      return from < kLine || to < kLine ? std::min(from, to) : from + to;
    };
    std::size_t at = depth_++;
    for (; at > 0 && step(loops_[at - 1]) > step(loop); --at) loops_[at] = loops_[at - 1];
    loops_[at] = loop;
  }
  /// Makes a loop the innermost one.
  void add_inside(const Around& loop) {
    if (loop.count == 1) return;
    std::copy_backward(loops_.begin(), loops_.begin() + depth_, loops_.begin() + depth_ + 1);
    loops_[0] = loop;
    ++depth_;
  }
  /// The loop whose entries of so many bytes follow one another on `to`, if there is one, becomes the innermost.
  bool follow(std::int64_t bytes) {
    for (std::size_t i = 0; i < depth_; ++i) {
      if (loops_[i].to != bytes) continue;
      std::rotate(loops_.begin(), loops_.begin() + i, loops_.begin() + i + 1);
      return true;
    }
    return false;
  }
  void add_all(const Nest& nest) {
    for (std::size_t i = 0; i < nest.depth; ++i) add(Around(nest.loops[i]));
  }
  /// Takes the innermost loop away.
  Around take_innermost() {
    if (depth_ == 0) return Around({1, 0, 0});
    const Around taken = loops_[0];
    std::copy(loops_.begin() + 1, loops_.begin() + depth_, loops_.begin());
    --depth_;
    return taken;
  }
  /// move(from, to) for each entry.
  template <class Move>
  void run(const std::byte* from, std::byte* to, const Move& move) const {
    run(depth_, from, to, move);
  }

 private:
  template <class Move>
  void run(std::size_t left, const std::byte* from, std::byte* to, const Move& move) const {
    if (left == 0) return move(from, to);
    const Around& loop = loops_[left - 1];
    for (std::int64_t i = 0; i + 1 < loop.count; ++i) run(left - 1, from + i * loop.from, to + i * loop.to, move);
    run(left - 1, from + loop.last_from, to + loop.last_to, move);
  }

  std::size_t depth_ = 0;
  std::array<Around, Nest::kMost + 2> loops_;
};

/// A loop the other way round where it goes down on one side, which is free as long as nothing is packed. `from` and
/// `to`: where its first entry lies.
inline Loop upwards(Loop loop, std::int64_t Loop::* side, std::int64_t& from, std::int64_t& to) {
  if (loop.*side >= 0) return loop;
  from += (loop.count - 1) * loop.from;
  to += (loop.count - 1) * loop.to;
  return {loop.count, -loop.from, -loop.to};
}

/// The loop along which one side is densest.
inline std::size_t densest(const Nest& nest, std::int64_t Loop::* side) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < nest.depth; ++i) {
    if (std::abs(nest.loops[i].*side) < std::abs(nest.loops[best].*side)) best = i;
  }
  return best;
}

}  // namespace lacuna::copy
