// pack and unpack run the layout's plan; transpack walks the intersection.
#include "lacuna/copy/copy.hpp"

#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {

void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  if (length > 0) Plan::of(layout).pack(base, position, length, out);
}

void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  if (length > 0) Plan::of(layout).unpack(base, position, length, in);
}

base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base) {
  layout::Intersection pieces = LACUNA_TRY(layout::Intersection::of(src, dst));
  if (src.contiguous_bytes() && src.size() > 0) {
    unpack(dst, dst_base, 0, dst.size(), src_base + src.true_lower_bound());
    return {};
  }
  if (dst.contiguous_bytes() && dst.size() > 0) {
    pack(src, src_base, 0, src.size(), dst_base + dst.true_lower_bound());
    return {};
  }
  while (!pieces.done()) {
    const layout::Piece piece = pieces.next();
    copy_block(dst_base + piece.dst, src_base + piece.src, piece.length, false);
  }
  return {};
}

}  // namespace lacuna::copy
