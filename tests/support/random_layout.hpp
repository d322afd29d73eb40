// Random nested layouts, each built twice by the same calls: by the library and as a naive typemap.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random.hpp"
#include "tests/support/typemap.hpp"

namespace lacuna::support {

struct Sample {
  layout::Layout layout;
  naive::Typemap typemap;
  std::string recipe;  ///< the calls that built it, for failure messages
};

/// How large a sample may get. The defaults keep a naive walk of a few thousand samples within seconds.
struct Limits {
  int depth = 4;
  std::int64_t runs = 2000;       ///< entries of the naive typemap
  std::int64_t bytes = 64 << 10;  ///< size
  std::int64_t span = 1 << 20;    ///< every bound lies within +- this
};

/// Any constructor in any other, with the corners that layouts have: zero counts and empty members, negative and zero
/// strides, odd and negative extents, lists that are regular in parts, members and elements that touch their
/// neighbours.
Sample random_layout(Random& random, const Limits& limits = {});
inline Sample random_layout(std::uint64_t seed, const Limits& limits = {}) {
  Random random(seed);
  return random_layout(random, limits);
}

/// A random layout of exactly `size` bytes of data.
Sample random_layout_of_size(Random& random, std::int64_t size, const Limits& limits = {});

/// A random layout in which no byte occurs twice, as a receiver needs; `size` < 0 for any size.
Sample random_receive_layout(Random& random, std::int64_t size = -1, const Limits& limits = {});

/// The value of a Result; throws, with the error and what was attempted, where there is none.
template <class T>
T value(base::Result<T> result, const std::string& attempted = "") {
  if (!result) throw std::runtime_error(result.error().text() + " <- " + attempted);
  return std::move(*result);
}

}  // namespace lacuna::support
