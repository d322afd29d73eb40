// nests: a list of equal pieces as a layout, in one pass over the list where it is regular. The layout is the one that
// Layout::hindexed_block() makes of the list; it hides that a list of strides, and of strides of strides, need not be
// spelled out for that.
#pragma once

#include <cstdint>
#include <span>

#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// Pieces of `length` bytes at `offsets`, of which the first is 0. Errors: overflow.
Result<Layout> layout_of_pieces(std::int64_t length, std::span<const std::int64_t> offsets);

}  // namespace lacuna::nixl
