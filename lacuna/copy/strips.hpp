// strips: a stretch of two streams whose shapes have nothing in common that a plan could see.
#pragma once

#include "lacuna/layout/layout.hpp"

namespace lacuna::copy {

/// Moves bytes [position, position + length) of the stream of `src` to the same bytes of that of `dst`. `stream`: the
/// destination is in no cache; stores may pass the caches by then.
void move_strips(const layout::Layout& src, const std::byte* src_base, const layout::Layout& dst, std::byte* dst_base,
                 std::int64_t position, std::int64_t length, bool stream);

}  // namespace lacuna::copy
