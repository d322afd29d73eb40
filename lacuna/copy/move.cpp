// Running a plan: whole steps at a time, and of a fragment whatever part of a step it covers.
#include <algorithm>
#include <array>
#include <bit>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/long_blocks.hpp"
#include "lacuna/copy/plan.hpp"

namespace lacuna::copy {
namespace {

using Index = std::int64_t;

// Both directions of one plan: scattered to dense, or dense to scattered.
template <bool Pack>
class Mover {
 public:
  using Scattered = std::conditional_t<Pack, const std::byte, std::byte>;
  using Dense = std::conditional_t<Pack, std::byte, const std::byte>;

  explicit Mover(bool stream) : stream_(stream) {}

  void whole(const Step& step, Scattered* scattered, Dense* dense) const {
    switch (step.kind) {
      case Step::Kind::run: return block(scattered, dense, step.size);
      case Step::Kind::nest: return rows(step, 0, step.rows, scattered, dense);
      case Step::Kind::crossed: return crossed(*step.packing, *step.unpacking, scattered, dense);
      case Step::Kind::list: return blocks(step.moved, step.spots, 0, step.count, step.moved.length, scattered, dense);
      case Step::Kind::blocks: return irregular(step, 0, step.count, scattered, dense);
      case Step::Kind::masked: return masked(step, 0, step.masks.windows(), scattered, dense);
      case Step::Kind::woven: return woven(step, 0, step.count, scattered, dense);
      case Step::Kind::repeat: return repeat(step, 0, step.count, scattered, dense);
      case Step::Kind::sequence:
        if (step.structs.batch > 0) return structs(step, scattered, dense);
        for (std::size_t i = 0; i < step.children.size(); ++i)
          whole(step.children[i], scattered + step.node->offsets[i], dense + step.node->starts[i]);
        return;
    }
  }

  // Bytes [from, to) of the step's stream; `dense` is where byte `from` is.
  void part(const Step& step, Scattered* scattered, Dense* dense, Index from, Index to) const {
    if (from == to) return;
    if (from == 0 && to == step.size) return whole(step, scattered, dense);
    switch (step.kind) {
      case Step::Kind::run: return block(scattered + from, dense, to - from);
      case Step::Kind::nest:
        return split(
            from, to, step.moved.length * step.count, dense,
            [&](Index r, Index f, Index t, Dense* d) { part_of_blocks(step, scattered + r * step.outer, d, f, t); },
            [&](Index r, Index n, Dense* d) { rows(step, r, n, scattered, d); });
      case Step::Kind::crossed: return part_of_crossed(step.packing->nest(), scattered, dense, from, to);
      case Step::Kind::list: return part_of_blocks(step, scattered, dense, from, to);
      case Step::Kind::blocks:
        return split_starts(
            step.node->starts, from, to, dense,
            [&](Index i, Index f, Index t, Dense* d) { block(scattered + step.node->offset(i) + f, d, t - f); },
            [&](Index i, Index n, Dense* d) { irregular(step, i, n, scattered, d); });
      case Step::Kind::masked:
        return split_starts(
            step.masks.starts, from, to, dense,
            [&](Index i, Index f, Index t, Dense* d) { part_of_window(step.masks, i, scattered, d, f, t); },
            [&](Index i, Index n, Dense* d) { masked(step, i, n, scattered, d); });
      case Step::Kind::woven:
        return split(
            from, to, step.size / step.count, dense,
            [&](Index i, Index f, Index t, Dense* d) { part_of_entry(step, scattered + step.spots.offset(i), d, f, t); },
            [&](Index i, Index n, Dense* d) { woven(step, i, n, scattered, d); });
      case Step::Kind::repeat:
        return split(
            from, to, step.children.front().size, dense,
            [&](Index i, Index f, Index t, Dense* d) { part(step.children.front(), scattered + step.spots.offset(i), d, f, t); },
            [&](Index i, Index n, Dense* d) { repeat(step, i, n, scattered, d); });
      case Step::Kind::sequence:
        return split_starts(
            step.node->starts, from, to, dense,
            [&](Index i, Index f, Index t, Dense* d) {
              part(step.children[static_cast<std::size_t>(i)], scattered + step.node->offset(i), d, f, t);
            },
            [&](Index i, Index n, Dense* d) {
              for (const Index end = i + n; i < end; ++i) {
                const Step& child = step.children[static_cast<std::size_t>(i)];
                whole(child, scattered + step.node->offset(i), d);
                d += child.size;
              }
            });
    }
  }

 private:
  // [from, to) of equal entries of `each` bytes: a part of the first, whole ones, a part of the last.
  template <class Part, class Whole>
  static void split(Index from, Index to, Index each, Dense* dense, Part part, Whole whole) {
    Index first = from / each;
    if (from % each != 0) {
      const Index end = std::min(to, (first + 1) * each);
      part(first, from % each, end - first * each, dense);
      dense += end - from;
      ++first;
    }
    const Index last = to / each;
    if (last > first) {
      whole(first, last - first, dense);
      dense += (last - first) * each;
    }
    if (last >= first && to % each != 0) part(last, Index{0}, to % each, dense);
  }

  // The same of entries that begin at `starts`.
  template <class Part, class Whole>
  static void split_starts(const std::vector<Index>& starts, Index from, Index to, Dense* dense, Part part, Whole whole) {
    const auto containing = [&](Index position) { return std::ranges::upper_bound(starts, position) - starts.begin() - 1; };
    const auto start = [&](Index i) { return starts[static_cast<std::size_t>(i)]; };
    Index first = containing(from);
    if (from > start(first)) {
      const Index end = std::min(to, start(first + 1));
      part(first, from - start(first), end - start(first), dense);
      dense += end - from;
      from = end;
      ++first;
    }
    if (from == to) return;
    const Index last = containing(to);  // the one that is cut, or the end
    if (last > first) whole(first, last - first, dense);
    if (to > start(last)) part(last, Index{0}, to - start(last), dense + (start(last) - from));
  }

  void block(Scattered* scattered, Dense* dense, Index bytes) const {
    if constexpr (Pack) {
      copy_block(dense, scattered, bytes, stream_);
    } else {
      copy_block(scattered, dense, bytes, stream_);
    }
  }

  void move(const Moved& moved, Index count, Index rows, const BlockSide& scattered_side, Index dense_stride, Scattered* scattered,
            Dense* dense) const {
    const BlockSide dense_side{.stride = dense_stride, .outer = count * dense_stride};
    if constexpr (Pack) {
      (stream_ ? moved.pack_stream : moved.pack)
          .run({.length = moved.length, .count = count, .rows = rows, .from = scattered_side, .to = dense_side}, scattered, dense);
    } else {
      (stream_ ? moved.unpack_stream : moved.unpack)
          .run({.length = moved.length, .count = count, .rows = rows, .from = dense_side, .to = scattered_side}, dense, scattered);
    }
  }

  // Entries [first, first + count) of one row; `dense_stride` is the distance of blocks on the dense side.
  void blocks(const Moved& moved, const Spots& spots, Index first, Index count, Index dense_stride, Scattered* scattered,
              Dense* dense) const {
    move(moved, count, 1, spots.side(first), dense_stride, scattered + spots.shift(first), dense);
  }

  [[nodiscard]] const Pattern* pattern_of_rows(const Step& step) const {
    // Stores with a mask to memory take 1.3 times as long as the blocks one by one.
    const bool suits = Pack ? step.packs_windows && !stream_ : !stream_ || step.moved.length < 4;
    return step.pattern && suits ? step.pattern.get() : nullptr;
  }

  // Whole windows of a pattern, from entry `first` on; answers how many entries they are.
  Index windows(const Step& step, const Pattern& pattern, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Index windows = count / pattern.entries;
    const std::int32_t* offsets = step.spots.access == Access::list32 ? step.spots.narrow.data() + first : nullptr;
    scattered += step.spots.shift(first);
    if constexpr (Pack) {
      step.windows->pack(pattern, offsets, windows, scattered, dense, stream_);
    } else {
      step.windows->unpack(pattern, offsets, windows, scattered, dense, stream_);
    }
    return windows * pattern.entries;
  }

  void row(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Index length = step.moved.length;
    const Pattern* pattern = pattern_of_rows(step);
    const Index done = pattern != nullptr ? windows(step, *pattern, first, count, scattered, dense) : 0;
    if (done < count) blocks(step.moved, step.spots, first + done, count - done, length, scattered, dense + done * length);
  }

  void rows(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    scattered += first * step.outer;
    if (pattern_of_rows(step) == nullptr) {
      return move(step.moved, step.count, count, {.stride = step.spots.stride, .outer = step.outer}, step.moved.length, scattered, dense);
    }
    for (Index r = 0; r < count; ++r, scattered += step.outer, dense += step.count * step.moved.length)
      row(step, 0, step.count, scattered, dense);
  }

  // Bytes [from, to) of one row of blocks.
  void part_of_blocks(const Step& step, Scattered* scattered, Dense* dense, Index from, Index to) const {
    split(
        from, to, step.moved.length, dense,
        [&](Index i, Index f, Index t, Dense* d) { block(scattered + step.spots.offset(i) + f, d, t - f); },
        [&](Index i, Index n, Dense* d) { row(step, i, n, scattered, d); });
  }

  void crossed(const NestMove& packing, const NestMove& unpacking, Scattered* scattered, Dense* dense) const {
    if constexpr (Pack) {
      packing.move(scattered, dense, stream_);
    } else {
      unpacking.move(dense, scattered, stream_);
    }
  }

  void structs(const Step& step, Scattered* scattered, Dense* dense) const {
    const Structs& all = step.structs;
    for (Index first = 0; first < all.count; first += all.batch) {
      const Index count = std::min(all.batch, all.count - first);
      auto crossed = all.crossed.begin();
      for (std::size_t i = 0; i < step.children.size(); ++i) {
        const Step& part = step.children[i];
        Scattered* const from = scattered + step.node->offsets[i];
        Dense* const to = dense + step.node->starts[i];
        if (crossed == all.crossed.end() || crossed->part != i) {
          row(part, first, count, from, to + first * part.moved.length);
        } else {
          fields(*crossed++, count, from + first * all.stride, to, first);
        }
      }
    }
  }

  // Of `count` structs, the first of which is number `first` in the stream: of a batch, or of what is left.
  void fields(const CrossedFields& some, Index count, Scattered* scattered, Dense* dense, Index first) const {
    Nest nest = some.packing.nest();
    Loop& loop = nest.loops[some.along];
    dense += first * loop.to;
    if (count == loop.count) return crossed(some.packing, some.unpacking, scattered, dense);
    loop.count = count;
    loops(nest, scattered, dense);
  }

  void loops(const Nest& nest, Scattered* scattered, Dense* dense) const {
    if constexpr (Pack) {
      move_nest(nest, scattered, dense, stream_);
    } else {
      move_nest(turned(nest), dense, scattered, stream_);
    }
  }

  // Bytes [from, to) of a nest whose outermost loop is the slowest of the stream.
  void part_of_crossed(Nest nest, Scattered* scattered, Dense* dense, Index from, Index to) const {
    if (nest.depth == 0) return block(scattered + from, dense, to - from);
    const Loop outermost = nest.loops[--nest.depth];
    split(
        from, to, outermost.to, dense,
        [&](Index i, Index f, Index t, Dense* d) { part_of_crossed(nest, scattered + i * outermost.from, d, f, t); },
        [&](Index i, Index n, Dense* d) {
          Nest whole = nest;
          whole.loops[whole.depth++] = {n, outermost.from, outermost.to};
          loops(whole, scattered + i * outermost.from, d);
        });
  }

  void irregular(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Irregular blocks{.count = count, .offsets = step.node->offsets.data() + first, .starts = step.node->starts.data() + first};
    if constexpr (Pack) {
      step.irregular.pack(blocks, scattered, dense);
    } else {
      step.irregular.unpack(blocks, dense, scattered);
    }
  }

  void masked(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    if constexpr (Pack) {
      step.windows->pack_masks(step.masks, first, first + count, scattered, dense);
    } else {
      step.windows->unpack_masks(step.masks, first, first + count, scattered, dense);
    }
  }

  // The dense bytes [from, to) of one window: the from-th to the to-th bit of its mask.
  void part_of_window(const Masks& masks, Index window, Scattered* scattered, Dense* dense, Index from, Index to) const {
    const auto at = static_cast<std::size_t>(window);
    scattered += masks.offsets[at];
    std::uint64_t bits = masks.masks[at];
    for (Index i = 0; i < to; ++i, bits &= bits - 1) {
      if (i >= from) block(scattered + std::countr_zero(bits), dense++, 1);
    }
  }

  void woven(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Index each = step.size / step.count;
    Index i = first;
    if (step.pattern && (Pack || stream_ || step.unpacks_windows)) {
      const Index done = windows(step, *step.pattern, first, count, scattered, dense);
      i += done;
      dense += done * each;
    }
    for (const Index end = first + count; i < end;) {
      const Index entries = std::min(step.chunk, end - i);
      for (const Member& member : step.members)
        blocks(member.moved, step.spots, i, entries, each, scattered + member.place.offset, dense + member.start);
      dense += entries * each;
      i += entries;
    }
  }

  // Bytes [from, to) of one entry.
  void part_of_entry(const Step& step, Scattered* scattered, Dense* dense, Index from, Index to) const {
    for (const Member& member : step.members) {
      const Index f = std::max(from, member.start);
      const Index t = std::min(to, member.start + member.place.length);
      if (f < t) block(scattered + member.place.offset + f - member.start, dense + f - from, t - f);
    }
  }

  void repeat(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Step& child = step.children.front();
    if constexpr (Pack) {
      if (stream_ && child.kind == Step::Kind::nest && child.moved.length >= LongBlocks::kLeastPacked)
        return repeat_long(step, first, count, scattered, dense);
    }
    for (Index i = first; i < first + count; ++i, dense += child.size) whole(child, scattered + step.spots.offset(i), dense);
  }

  // A dense source needs no look ahead.
  void repeat_long(const Step& step, Index first, Index count, const std::byte* scattered, std::byte* dense) const {
    const Step& nest = step.children.front();
    const Index length = nest.moved.length;
    const Move one{.length = length,
                   .count = nest.count,
                   .rows = nest.rows,
                   .from = {.stride = nest.spots.stride, .outer = nest.outer},
                   .to = {.stride = length, .outer = nest.count * length}};
    LongBlocks blocks;
    for (Index i = first; i < first + count; ++i, dense += nest.size) {
      const std::byte* const place = scattered + step.spots.offset(i);
      if (!blocks.add(one, Access::stride, Access::stride, place, dense)) nest.moved.pack_stream.run(one, place, dense);
    }
    blocks.finish();
  }

  bool stream_;
};

// The offset of byte `position` of a step's stream.
Index offset_at(const Step& step, Index position) {
  const layout::Node* node = step.node;
  Index offset = 0;
  while (node->kind != layout::NodeKind::run) {
    if (!node->starts.empty()) {
      const auto i = static_cast<std::size_t>(std::ranges::upper_bound(node->starts, position) - node->starts.begin() - 1);
      offset += node->offsets[i];
      position -= node->starts[i];
      if (node->kind == layout::NodeKind::blocks) return offset + position;
      node = node->children[i].get();
    } else {
      const Index each = node->children[0]->size;
      offset += node->offset(position / each);
      position %= each;
      node = node->children[0].get();
    }
  }
  return offset + position;
}

}  // namespace

void pack_step(const Step& step, const std::byte* scattered, std::byte* dense, bool stream) {
  Mover<true>(stream).whole(step, scattered, dense);
}
void unpack_step(const Step& step, std::byte* scattered, const std::byte* dense, bool stream) {
  Mover<false>(stream).whole(step, scattered, dense);
}

void CopyPlan::pack(const std::byte* base, Index position, Index length, std::byte* dense, Caching caching) const {
  if (caching == Caching::passed) return pack_past(base, position, length, dense);
  bool stream = false;
  if (caching == Caching::asked && streams_) stream = is_cold(length, [&](Index thirds) { return dense + length / 3 * thirds; });
  Mover<true>(stream).part(root_, base + at_, dense, position, position + length);
  if (stream && packing_leaves_) end_of_streaming();
}

// Blocks that do not fill lines are packed where this CPU has them at hand, and go on from there in whole lines.
void CopyPlan::pack_past(const std::byte* base, Index position, Index length, std::byte* dense) const {
  constexpr Index kAtHand = 4096;  // stays in the L1 cache, with what is packed
  const Mover<true> mover(false);
  alignas(64) std::array<std::byte, kAtHand> at_hand;
  for (Index done = 0; done < length && root_.kind != Step::Kind::run; done += kAtHand) {
    const Index bytes = std::min(length - done, kAtHand);
    mover.part(root_, base + at_, at_hand.data(), position + done, position + done + bytes);
    copy_block(dense + done, at_hand.data(), bytes, true);
  }
  if (root_.kind == Step::Kind::run) copy_block(dense, base + at_ + position, length, true);
  end_of_streaming();
}

bool CopyPlan::is_kept_at(const std::byte* base) const {
  return is_kept([&](Index thirds) { return base + at_ + offset_at(root_, root_.size / 3 * thirds); });
}

bool CopyPlan::is_cold_at(const std::byte* base, Index position, Index length) const {
  return is_cold(length, [&](Index thirds) { return base + at_ + offset_at(root_, position + length / 3 * thirds); });
}

void CopyPlan::unpack(std::byte* base, Index position, Index length, const std::byte* dense, Caching caching) const {
  bool stream = caching == Caching::passed;
  if (caching == Caching::asked && streams_) stream = is_cold_at(base, position, length);
  Mover<false>(stream).part(root_, base + at_, dense, position, position + length);
  if (stream && unpacking_leaves_) end_of_streaming();
}

}  // namespace lacuna::copy
