// Layout to layout in one pass. Where both plans have the same steps they are run in step; where both sides are loops, as one nest; what is left goes
// through the streamed intersection, strip by strip.
//
//   one side contiguous ─▶ pack or unpack
//   loops over a run on both sides ─▶ nest: any order, tiled where the sides are dense along different loops
//   equal steps ─▶ in step: lists, blocks, members of structs, sequences, each with a kernel for both sides
//   anything else ─▶ strips
#include <algorithm>
#include <array>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/plan.hpp"
#include "lacuna/copy/strips.hpp"

namespace lacuna::copy {
namespace {

using Kind = Step::Kind;
using Index = std::int64_t;

// Where the blocks of a step lie, with lists in 64 bits, which the form has anyway.
struct Entries {
  Access access;
  Side side;
};
Entries entries_of(const layout::Node& node, Index first) {
  if (node.kind == layout::Kind::loop) return {Access::stride, {.stride = node.stride}};
  return {Access::list64, {.offsets = node.offsets.data() + first}};
}

class Transpacker {
 public:
  Transpacker(const Layout& src, const Layout& dst, const std::byte* src_base, std::byte* dst_base)
      : src_(src), dst_(dst), src_base_(src_base), dst_base_(dst_base) {
    constexpr Index ask = 64 << 10;
    if (dst.size() >= ask) {
      const std::byte* first = dst_base + dst.form_offset();
      stream_ = is_cold(std::array{first, static_cast<const std::byte*>(dst_base + dst.form_offset() + dst.form()->tail - 1)});
    }
  }

  void run() {
    steps(Plan::of(src_).root(), src_base_ + src_.form_offset(), Plan::of(dst_).root(), dst_base_ + dst_.form_offset(), 0);
    if (stream_) end_of_streaming();
  }

 private:
  // The steps hold as many bytes; `position` is where they are in the stream.
  void steps(const Step& s, const std::byte* from, const Step& d, std::byte* to, Index position) {
    if (s.kind == Kind::run) return unpack_step(d, to, from, stream_);
    if (d.kind == Kind::run) return pack_step(s, from, to, stream_);
    if (const std::optional<Nest> nest = zip(*s.node, *d.node)) return move_nest(*nest, from, to, stream_);
    const Index entries = s.node->entries();
    const bool as_many = entries == d.node->entries();
    if (as_many && s.kind == Kind::blocks && d.kind == Kind::blocks && s.node->starts == d.node->starts) {
      return s.irregular.move({.count = entries, .offsets = s.node->offsets.data(), .starts = s.node->starts.data()},
                              d.node->offsets.data(), from, to);
    }
    if (as_many && one_row(s) && one_row(d) && s.moved.length == d.moved.length) return blocks(s, from, d, to, s.moved.length, 0, entries);
    if (as_many && s.kind == Kind::woven && d.kind == Kind::woven && alike(s.run_moves, d.run_moves)) return woven(s, from, d, to);
    if (as_many && s.kind == Kind::sequence && d.kind == Kind::sequence && s.node->starts == d.node->starts) {
      for (std::size_t i = 0; i < s.children.size(); ++i)
        steps(s.children[i], from + s.node->offsets[i], d.children[i], to + d.node->offsets[i], position + s.node->starts[i]);
      return;
    }
    if (as_many && s.kind == Kind::repeat && d.kind == Kind::repeat) {
      for (Index i = 0; i < entries; ++i)
        steps(s.children[0], from + s.node->offset(i), d.children[0], to + d.node->offset(i), position + i * s.children[0].size);
      return;
    }
    move_strips(src_, src_base_, dst_, dst_base_, position, s.size);
  }

  static bool one_row(const Step& step) { return step.kind == Kind::list || (step.kind == Kind::nest && step.moved.rows == 1); }
  static bool alike(const std::vector<Step::Moved>& a, const std::vector<Step::Moved>& b) {
    return std::ranges::equal(a, b, {}, &Step::Moved::length, &Step::Moved::length);
  }

  void blocks(const Step& s, const std::byte* from, const Step& d, std::byte* to, Index length, Index first, Index count) {
    const Entries a = entries_of(*s.node, first);
    const Entries b = entries_of(*d.node, first);
    if (a.access == Access::stride) from += first * a.side.stride;
    if (b.access == Access::stride) to += first * b.side.stride;
    const Kernel kernel = kernel_for({.from = a.access, .to = b.access, .length = length, .stream = stream_});
    kernel.run({.length = length, .count = count, .from = a.side, .to = b.side}, from, to);
  }

  void woven(const Step& s, const std::byte* from, const Step& d, std::byte* to) {
    const Index entries = s.node->entries();
    const Index chunk = std::min(s.run_moves.front().count, d.run_moves.front().count);
    for (Index i = 0; i < entries; i += chunk) {
      for (std::size_t k = 0; k < s.run_moves.size(); ++k)
        blocks(s, from + s.run_offsets[k], d, to + d.run_offsets[k], s.run_moves[k].length, i, std::min(chunk, entries - i));
    }
  }

  const Layout& src_;
  const Layout& dst_;
  const std::byte* src_base_;
  std::byte* dst_base_;
  bool stream_ = false;
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
