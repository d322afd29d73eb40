// nest: loops over blocks that are the same on two sides, each with strides of its own: what a transpose, a change of
// pitch or a strided array's copy comes down to. The order of the loops is free, since nothing is packed.
#pragma once

#include <algorithm>
#include <array>
#include <optional>

#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

struct Loop {
  std::int64_t count;
  std::int64_t from;  ///< stride on either side
  std::int64_t to;
  friend bool operator==(const Loop&, const Loop&) = default;
};

/// Whether a loop around this one goes on, on both sides, where it ends: the two are one.
[[nodiscard]] constexpr bool goes_on(const Loop& inner, const Loop& outer) {
  return outer.from == inner.count * inner.from && outer.to == inner.count * inner.to;
}

/// Entries of a piece, where a loop of `count` is cut into equal pieces of at most `most`.
[[nodiscard]] constexpr std::int64_t equal_piece(std::int64_t count, std::int64_t most) {
  const std::int64_t pieces = (count + most - 1) / most;
  return (count + pieces - 1) / pieces;
}

/// A fixed number of loops, since a small copy must not pay for an allocation; a nest of more is not zipped.
struct Nest {
  static constexpr std::size_t kMost = 8;
  std::int64_t block = 0;  ///< bytes
  std::size_t depth = 0;
  std::array<Loop, kMost> loops;  ///< innermost first

  void remove(std::size_t i) {
    std::copy(loops.begin() + i + 1, loops.begin() + depth, loops.begin() + i);
    --depth;
  }
  friend bool operator==(const Nest& a, const Nest& b) {
    return a.block == b.block && std::equal(a.loops.begin(), a.loops.begin() + a.depth, b.loops.begin(), b.loops.begin() + b.depth);
  }
};

/// The common nest of two forms of equal size that consist of loops over one run, or nothing where their counts do not
/// divide one another.
[[nodiscard]] std::optional<Nest> zip(const layout::Node& from, const layout::Node& to);

/// The nest of loops over one run and of what is packed from it, in the packed stream's order; nothing for other forms.
[[nodiscard]] std::optional<Nest> packing_nest(const layout::Node& form);
/// From and to change places.
[[nodiscard]] Nest turned(const Nest& nest);

[[nodiscard]] std::int64_t bytes_of(const Nest& nest);
/// Whether the sides are dense along different loops, by less than a line: a transpose.
[[nodiscard]] bool is_crossed(const Nest& nest);
/// Of a transpose in a cache, the side along whose dense loop rows are as good as tiles, or null: elements that tiles
/// move one by one, too, and rows whose lines on the other side stay in the first-level cache until the rows that
/// follow have had the rest of each. They are few, or close to one another, or spread over its sets.
[[nodiscard]] std::int64_t Loop::* rows_suffice(const Nest& nest);

/// Moves it. `stream`: the destination is in no cache. Stores that passed the caches by are done when this returns.
void move_nest(const Nest& nest, const std::byte* from, std::byte* to, bool stream);

}  // namespace lacuna::copy
