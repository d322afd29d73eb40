// The streamed intersection with a kernel for each stretch in which the blocks of one side are a multiple of the
// other's. Where even that is rare (lengths that have nothing to do with each other, a few bytes to a strip) a piece
// costs more than its bytes, and a few KB go through the L1 cache instead: packed and unpacked at once, by kernels that
// take many blocks each.
#include "lacuna/copy/strips.hpp"

#include <algorithm>
#include <array>

#include "lacuna/copy/long_blocks.hpp"
#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {
namespace {

using Index = std::int64_t;
using layout::Layout;

constexpr Index kPoor = 256;        // bytes of a stretch that do not pay for finding it
constexpr Index kBounce = 8 << 10;  // a quarter of the smallest L1 cache in use

// A strip of one side, and how far it is used up.
class Front {
 public:
  explicit Front(const Layout& layout) : cursor_(layout) {}

  void seek(Index position) {
    cursor_.seek(position);
    strip_ = {};
    next_ = 0;
  }
  void fill() {
    if (next_ == strip_.count) {
      strip_ = cursor_.next(layout::kMaxBytes);
      next_ = within_ = 0;
    }
  }
  // Bytes of the run that comes next.
  [[nodiscard]] Index length() const { return strip_.run(next_).length - within_; }
  [[nodiscard]] Index offset() const { return strip_.run(next_).offset + within_; }
  // Runs that are whole and of one length, from here on.
  [[nodiscard]] Index alike() const { return within_ == 0 && strip_.starts == nullptr ? strip_.count - next_ : 0; }
  [[nodiscard]] bool listed() const { return strip_.offsets != nullptr; }
  [[nodiscard]] Index stride() const { return strip_.stride; }
  [[nodiscard]] Index origin() const { return listed() ? strip_.offset : strip_.offset + next_ * strip_.stride; }
  [[nodiscard]] BlockSide side() const {
    if (listed()) return {.offsets = strip_.offsets + next_};
    return {.stride = strip_.stride};
  }
  [[nodiscard]] Access access() const { return listed() ? Access::list64 : Access::stride; }

  void skip_runs(Index runs) { next_ += runs; }
  void skip_bytes(Index bytes) {
    within_ += bytes;
    if (within_ == strip_.run(next_).length) {
      within_ = 0;
      ++next_;
    }
  }

 private:
  layout::Cursor cursor_;
  layout::Strip strip_;
  Index next_ = 0;
  Index within_ = 0;
};

// Moves stretches in their order. Long blocks of several stretches go together, if the destination is in no cache.
class StretchMover {
 public:
  explicit StretchMover(bool stream) : stream_(stream) {}

  // A dense source is seen coming anyway.
  void move(Shape shape, const Move& move, const std::byte* from, std::byte* to) {
    shape.stream = stream_ && move.length >= (shape.to_dense ? LongBlocks::kLeastPacked : LongBlocks::kLeast);
    if (shape.stream && !shape.from_dense && long_.add(move, shape.from, shape.to, from, to)) return;
    finish();
    kernel_for(shape).run(move, from, to);
  }
  // Collected once there are two of one length: those of lengths in turn would be moved one by one all the same.
  void move_one(Index bytes, const std::byte* from, std::byte* to) {
    const bool again = std::exchange(last_one_, bytes) == bytes;
    if (stream_ && again && bytes >= LongBlocks::kLeast) return long_.add(to, from, bytes);
    finish();
    copy_block(to, from, bytes, false);
  }
  void finish() { long_.finish(); }

 private:
  const bool stream_;
  LongBlocks long_;
  Index last_one_ = 0;  // bytes
};

}  // namespace

void move_strips(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base, Index position, Index length,
                 bool stream) {
  Front from(src);
  Front to(dst);
  from.seek(position);
  to.seek(position);
  StretchMover mover(stream);
  const Index end = position + length;
  int poor = 0;
  while (position < end) {
    if (poor > 3) {
      alignas(64) std::array<std::byte, kBounce> bounce;
      const Index bytes = std::min(kBounce, end - position);
      mover.finish();
      CopyPlan::of(src).pack(src_base, position, bytes, bounce.data(), Caching::kept);
      CopyPlan::of(dst).unpack(dst_base, position, bytes, bounce.data(), Caching::kept);
      position += bytes;
      from.seek(position);
      to.seek(position);
      poor = 3;  // another look; one poor stretch, and it goes on
      continue;
    }
    from.fill();
    to.fill();
    const Index a = from.length();
    const Index b = to.length();
    Index moved = 0;
    if (const Index runs = std::min({from.alike(), to.alike(), (end - position) / a}); a == b && runs > 1) {
      moved = runs * a;
      mover.move({.from = from.access(), .to = to.access(), .length = a},
                 {.length = a, .count = runs, .from = from.side(), .to = to.side()}, src_base + from.origin(), dst_base + to.origin());
      from.skip_runs(runs);
      to.skip_runs(runs);
    } else if (const Index parts = std::min(a / b, to.alike()); parts > 1 && (end - position) >= a) {
      // one run of the source, several of the destination
      moved = parts * b;
      mover.move({.to = to.access(), .length = b, .from_dense = true},
                 {.length = b, .count = parts, .from = {.stride = b}, .to = to.side()}, src_base + from.offset(), dst_base + to.origin());
      from.skip_bytes(moved);
      to.skip_runs(parts);
    } else if (const Index pieces = std::min(b / a, from.alike()); pieces > 1 && (end - position) >= b) {
      moved = pieces * a;
      mover.move({.from = from.access(), .length = a, .to_dense = true},
                 {.length = a, .count = pieces, .from = from.side(), .to = {.stride = a}}, src_base + from.origin(),
                 dst_base + to.offset());
      from.skip_runs(pieces);
      to.skip_bytes(moved);
    } else {
      moved = std::min({a, b, end - position});
      mover.move_one(moved, src_base + from.offset(), dst_base + to.offset());
      from.skip_bytes(moved);
      to.skip_bytes(moved);
    }
    position += moved;
    poor = moved < kPoor ? poor + 1 : 0;
  }
  mover.finish();
}

}  // namespace lacuna::copy
