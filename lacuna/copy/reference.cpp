// The scalar references: byte by byte, run by run. Slow on purpose, and the judge of everything else.
#include "lacuna/copy/copy.hpp"

namespace lacuna::copy::reference {

void pack(const Layout& layout, const std::byte* base, std::int64_t position, std::int64_t length, std::byte* out) {
  layout::Cursor cursor(layout);
  cursor.seek(position);
  while (length > 0) {
    const layout::Run run = cursor.next_run(length);
    for (std::int64_t i = 0; i < run.length; ++i) *out++ = base[run.offset + i];
    length -= run.length;
  }
}

void unpack(const Layout& layout, std::byte* base, std::int64_t position, std::int64_t length, const std::byte* in) {
  layout::Cursor cursor(layout);
  cursor.seek(position);
  while (length > 0) {
    const layout::Run run = cursor.next_run(length);
    for (std::int64_t i = 0; i < run.length; ++i) base[run.offset + i] = *in++;
    length -= run.length;
  }
}

base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base) {
  layout::Intersection pieces = LACUNA_TRY(layout::Intersection::of(src, dst));
  while (!pieces.done()) {
    const layout::Piece piece = pieces.next();
    for (std::int64_t i = 0; i < piece.length; ++i) dst_base[piece.dst + i] = src_base[piece.src + i];
  }
  return {};
}

}  // namespace lacuna::copy::reference
