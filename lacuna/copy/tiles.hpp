// tiles: transposes of short elements, a square of registers at a time, so that each cache line of either side is loaded or stored once and whole.
//
//   side A, dense along the rows        side B, dense along a row
//   line c:  r0 r1 r2 r3 ...       ◀──▶   row r:  c0 c1 c2 c3 ...       one vector of A holds what K vectors of B hold one element of each
#pragma once

#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {

/// A kernel for moves of rows of which one side is dense along the rows (outer == length) and the other along a row (stride == length); blocks of 4, 8 or 16
/// bytes. What does not have this shape, and what is left at the edges, it moves block by block. Null for other lengths.
[[nodiscard]] Run tile_kernel(std::int64_t length, bool stream);

}  // namespace lacuna::copy
