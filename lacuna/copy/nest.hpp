// nest: loops over blocks that are the same on two sides, each with strides of its own: what a transpose, a change of pitch or a strided array's
// copy comes down to. The order of the loops is free, since nothing is packed.
#pragma once

#include <optional>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

struct Loop {
  std::int64_t count;
  std::int64_t from;  ///< stride on either side
  std::int64_t to;
};

struct Nest {
  std::int64_t block = 0;   ///< bytes
  std::vector<Loop> loops;  ///< innermost first
};

/// The common nest of two forms of equal size that consist of loops over one run, or nothing where their counts do not divide one another.
[[nodiscard]] std::optional<Nest> zip(const layout::Node& from, const layout::Node& to);

/// Moves it. `stream`: the destination is in no cache.
void move_nest(const Nest& nest, const std::byte* from, std::byte* to, bool stream);

}  // namespace lacuna::copy
