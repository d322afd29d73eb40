// Two cursors side by side: a piece ends where a run of either side ends.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/layout/layout.hpp"

namespace lacuna::layout {

Result<void> check_sizes(const Layout& src, const Layout& dst) {
  if (src.size() == dst.size()) return {};
  return base::fail(
      base::Code::invalid_argument,
      fmt::format("the source layout holds {} bytes, the destination layout {}; they must hold the same", src.size(), dst.size()));
}

Result<Intersection> Intersection::of(const Layout& src, const Layout& dst) {
  LACUNA_TRY(check_sizes(src, dst));
  return Intersection(src, dst);
}

void Intersection::seek(std::int64_t position) {
  src_.seek(position);
  dst_.seek(position);
  src_run_ = dst_run_ = {};
  position_ = position;
}

Piece Intersection::next(std::int64_t max_bytes) {
  if (src_run_.length == 0) src_run_ = src_.next_run(kMaxBytes);
  if (dst_run_.length == 0) dst_run_ = dst_.next_run(kMaxBytes);
  const Piece piece{src_run_.offset, dst_run_.offset, std::min({src_run_.length, dst_run_.length, max_bytes})};
  position_ += piece.length;
  src_run_ = {src_run_.offset + piece.length, src_run_.length - piece.length};
  dst_run_ = {dst_run_.offset + piece.length, dst_run_.length - piece.length};
  return piece;
}

}  // namespace lacuna::layout
