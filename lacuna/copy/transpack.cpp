// Layout to layout in one pass. Where both plans have the same steps they are run in step; where both sides are loops,
// as one nest; what is left goes through the streamed intersection, strip by strip.
//
//   one side contiguous ─▶ pack or unpack
//   loops over a run on both sides ─▶ nest: any order, tiled where the sides are dense along different loops
//   equal steps ─▶ in step: lists, blocks, members of structs, sequences, each with a kernel for both sides
//   anything else ─▶ strips
#include <algorithm>
#include <array>
#include <cstdlib>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/long_blocks.hpp"
#include "lacuna/copy/nest_move.hpp"
#include "lacuna/copy/plan.hpp"
#include "lacuna/copy/strips.hpp"

namespace lacuna::copy {
namespace {

using Kind = Step::Kind;
using Index = std::int64_t;

// Whether stores pass the caches by. What is copied again and again has its source in a cache, and would have its
// destination there, too, had the stores of the time before not passed. For long blocks that gains more than passing.
bool passes_caches(const Layout& src, const std::byte* src_base, const Layout& dst, const std::byte* dst_base) {
  constexpr Index kLong = 16 << 10, kMostAgain = 2 << 20;  // docs/notes/copying.md, slices of heads
  const Index bytes = dst.size();
  if (!CopyPlan::of(dst).is_cold_at(dst_base, 0, bytes)) return false;
  const bool keeps = bytes <= kMostAgain && bytes / std::max(src.run_count(), dst.run_count()) >= kLong;
  return !keeps || !CopyPlan::of(src).is_kept_at(src_base);
}

class Transpacker {
 public:
  Transpacker(const Layout& src, const Layout& dst, const std::byte* src_base, std::byte* dst_base)
      : src_(src), dst_(dst), src_base_(src_base), dst_base_(dst_base), stream_(passes_caches(src, src_base, dst, dst_base)) {}

  void run() {
    steps(CopyPlan::of(src_).root(), src_base_ + src_.form_offset(), CopyPlan::of(dst_).root(), dst_base_ + dst_.form_offset(), 0);
    if (leaves_) end_of_streaming();
  }

 private:
  // The steps hold as many bytes; `position` is where they are in the stream.
  void steps(const Step& s, const std::byte* from, const Step& d, std::byte* to, Index position) {
    if (s.kind == Kind::run) return unpack_one(d, to, from);
    if (d.kind == Kind::run) return pack_one(s, from, to);
    const bool single = s.count == d.count && s.rows == 1 && d.rows == 1;
    if (s.pattern && d.pattern && single && windows(s, from, d, to, position)) return;
    const bool places_fit = s.count == d.count && fit(s.spots, d.spots);
    const bool equal_rows = places_fit && one_row(s) && one_row(d) && s.moved.length == d.moved.length;
    // What a nest could add is permutations of bytes. To look for a remembered one takes longer than a few blocks.
    if (equal_rows && s.moved.length > kLongestShuffled) return blocks(s.spots, from, d.spots, to, s.moved.length, 0, s.count);
    if (loops(s) && loops(d) && nest(s, from, d, to)) return;
    if (equal_rows) return blocks(s.spots, from, d.spots, to, s.moved.length, 0, s.count);
    if (places_fit && s.kind == Kind::woven && d.kind == Kind::woven && alike(s.members, d.members)) return woven(s, from, d, to);
    if (s.kind == Kind::blocks && d.kind == Kind::blocks && s.node->starts == d.node->starts) {
      return s.irregular.move({.count = s.count, .offsets = s.node->offsets.data(), .starts = s.node->starts.data()},
                              d.node->offsets.data(), from, to);
    }
    if (s.kind == Kind::sequence && d.kind == Kind::sequence && s.node->starts == d.node->starts) {
      for (std::size_t i = 0; i < s.children.size(); ++i)
        steps(s.children[i], from + s.node->offsets[i], d.children[i], to + d.node->offsets[i], position + s.node->starts[i]);
      return;
    }
    // Lists of several arrays that go to, or come from, one contiguous piece each.
    if (s.kind == Kind::sequence && d.kind == Kind::blocks && s.node->starts == d.node->starts) {
      for (std::size_t i = 0; i < s.children.size(); ++i) pack_one(s.children[i], from + s.node->offsets[i], to + d.node->offsets[i]);
      return;
    }
    if (s.kind == Kind::blocks && d.kind == Kind::sequence && s.node->starts == d.node->starts) {
      for (std::size_t i = 0; i < d.children.size(); ++i) unpack_one(d.children[i], to + d.node->offsets[i], from + s.node->offsets[i]);
      return;
    }
    if (s.kind == Kind::repeat && d.kind == Kind::repeat && s.count == d.count) {
      if (stream_ && long_alike(s.children[0], d.children[0])) return pages(s, from, d, to, position);
      for (Index i = 0; i < s.count; ++i)
        steps(s.children[0], from + s.spots.offset(i), d.children[0], to + d.spots.offset(i), position + i * s.children[0].size);
      return;
    }
    if (s.size <= kShort) return staged(s, from, d, to);
    strips(position, s.size);
  }

  static bool long_alike(const Step& a, const Step& b) {
    return a.kind == Kind::nest && b.kind == Kind::nest && a.moved.length == b.moved.length && a.moved.length >= LongBlocks::kLeast &&
           a.count == b.count && a.rows == b.rows;
  }

  // Long blocks of several pages that are cut alike go together.
  void pages(const Step& s, const std::byte* from, const Step& d, std::byte* to, Index position) {
    const Step &a = s.children[0], &b = d.children[0];
    const Move page{.length = a.moved.length,
                    .count = a.count,
                    .rows = a.rows,
                    .from = {.stride = a.spots.stride, .outer = a.outer},
                    .to = {.stride = b.spots.stride, .outer = b.outer}};
    LongBlocks blocks;
    for (Index i = 0; i < s.count; ++i) {
      const std::byte* const there = from + s.spots.offset(i);
      std::byte* const here = to + d.spots.offset(i);
      if (!blocks.add(page, Access::stride, Access::stride, there, here)) steps(a, there, b, here, position + i * a.size);
    }
    blocks.finish();
    leaves_ = true;
  }

  void strips(Index position, Index length) {
    move_strips(src_, src_base_, dst_, dst_base_, position, length, stream_);
    leaves_ = leaves_ || stream_;
  }

  // Short parts: to look at both sides' runs takes longer than two copies within the first-level cache. Not a part of
  // steps(), which calls itself as deep as layouts nest.
  [[gnu::noinline]] void staged(const Step& s, const std::byte* from, const Step& d, std::byte* to) {
    std::array<std::byte, kShort> stage;
    pack_step(s, from, stage.data(), false);
    unpack_one(d, to, stage.data());
  }

  void pack_one(const Step& step, const std::byte* from, std::byte* to) {
    pack_step(step, from, to, stream_);
    leaves_ = leaves_ || stream_;
  }
  void unpack_one(const Step& step, std::byte* to, const std::byte* from) {
    unpack_step(step, to, from, stream_);
    leaves_ = leaves_ || stream_;
  }

  static bool loops(const Step& step) { return step.node->kind == layout::NodeKind::loop || step.node->loops; }

  // False if the loops of one side do not divide the other's. The way of whole layouts is remembered.
  bool nest(const Step& s, const std::byte* from, const Step& d, std::byte* to) {
    if (s.size == src_.size()) {
      const auto known = CopyPlan::of(dst_).from(src_, dst_);
      if (known) known->move(from, to, stream_);
      return known != nullptr;
    }
    const std::optional<Nest> found = zip(*s.node, *d.node);
    if (found) move_nest(*found, from, to, stream_);
    return found.has_value();
  }

  static const std::int32_t* offsets(const Step& step) { return step.spots.access == Access::list32 ? step.spots.narrow.data() : nullptr; }

  // Entries of short runs on both sides, window by window. False if the windows do not hold as many entries.
  bool windows(const Step& s, const std::byte* from, const Step& d, std::byte* to, Index position) {
    const Pattern& a = *s.pattern;
    const Pattern& b = *d.pattern;
    if (a.entries != b.entries || a.payload != b.payload) return false;
    const Index windows = s.count / a.entries;
    s.windows->move(a, offsets(s), b, offsets(d), windows, from, to);
    const Index done = windows * a.entries;
    if (done == s.count) return true;
    if (s.kind == Kind::nest && d.kind == Kind::nest) {
      blocks(s.spots, from, d.spots, to, s.moved.length, done, s.count - done);
    } else {
      const Index each = s.size / s.count;
      strips(position + each * done, each * (s.count - done));
    }
    return true;
  }

  // Lists of different widths have no kernel.
  static bool fit(const Spots& a, const Spots& b) {
    return a.access == b.access || a.access == Access::stride || b.access == Access::stride;
  }
  static bool one_row(const Step& step) { return step.kind == Kind::list || (step.kind == Kind::nest && step.rows == 1); }
  static bool alike(const std::vector<Member>& a, const std::vector<Member>& b) {
    const auto length = [](const Member& member) { return member.place.length; };
    return std::ranges::equal(a, b, {}, length, length);
  }

  // Lines from and to places of a list, both in no cache: loads that miss and stores that pass the caches hold one
  // another up, so some are fetched, and then sent.
  void lines(const Spots& s, const std::byte* from, const Spots& d, std::byte* to, Index first, Index count) {
    constexpr Index most = 16;
    alignas(kLine) std::array<std::byte, most * kLine> stage;
    const Kernel fetch = kernel_for({.from = s.access, .length = kLine, .to_dense = true, .stream = true});
    const Kernel send = kernel_for({.to = d.access, .length = kLine, .from_dense = true, .stream = true});
    for (const Index end = first + count; first < end;) {
      const Index some = std::min(most, end - first);
      fetch.run({.length = kLine, .count = some, .from = s.side(first), .to = {.stride = kLine}}, from + s.shift(first), stage.data());
      send.run({.length = kLine, .count = some, .from = {.stride = kLine}, .to = d.side(first)}, stage.data(), to + d.shift(first));
      first += some;
    }
    leaves_ = true;
  }

  void blocks(const Spots& s, const std::byte* from, const Spots& d, std::byte* to, Index length, Index first, Index count) {
    const bool listed = s.access != Access::stride || d.access != Access::stride;
    if (stream_ && listed && length == kLine) return lines(s, from, d, to, first, count);
    const Kernel kernel = kernel_for({.from = s.access,
                                      .to = d.access,
                                      .length = length,
                                      .stream = stream_,
                                      .apart = std::max(std::abs(s.stride), std::abs(d.stride)) >= kLine});
    kernel.run({.length = length, .count = count, .from = s.side(first), .to = d.side(first)}, from + s.shift(first), to + d.shift(first));
    leaves_ = leaves_ || kernel.streams;
  }

  // A chunk is long enough that choosing the kernel for each does not show; a vector of kernels costs small lists a
  // quarter.
  void woven(const Step& s, const std::byte* from, const Step& d, std::byte* to) {
    const Index chunk = std::min(s.chunk, d.chunk);
    for (Index i = 0; i < s.count; i += chunk) {
      for (std::size_t k = 0; k < s.members.size(); ++k) {
        const WindowRun& a = s.members[k].place;
        blocks(s.spots, from + a.offset, d.spots, to + d.members[k].place.offset, a.length, i, std::min(chunk, s.count - i));
      }
    }
  }

  static constexpr Index kShort = 4096;
  const Layout& src_;
  const Layout& dst_;
  const std::byte* src_base_;
  std::byte* dst_base_;
  bool stream_;
  bool leaves_ = false;  // stores passed the caches by, and nothing has waited for them
};

}  // namespace

base::Result<void> transpack(const Layout& src, const std::byte* src_base, const Layout& dst, std::byte* dst_base) {
  LACUNA_TRY(layout::check_sizes(src, dst));
  if (src.size() == 0) return {};
  if (src.contiguous_bytes()) {
    unpack(dst, dst_base, 0, dst.size(), src_base + src.true_lower_bound());
  } else if (dst.contiguous_bytes()) {
    pack(src, src_base, 0, src.size(), dst_base + dst.true_lower_bound());
  } else {
    Transpacker(src, dst, src_base, dst_base).run();
  }
  return {};
}

}  // namespace lacuna::copy
