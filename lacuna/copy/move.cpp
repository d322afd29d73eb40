// Running a plan: whole steps at a time, and of a fragment whatever part of a step it covers.
#include <algorithm>
#include <array>

#include "lacuna/copy/cold.hpp"
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
      case Step::Kind::nest:
      case Step::Kind::list: return kernel(step.moved, 0, step.moved.count, step.moved.rows, step.moved.length, scattered, dense);
      case Step::Kind::blocks: return irregular(step, 0, step.node->entries(), scattered, dense);
      case Step::Kind::woven: return woven(step, 0, step.node->entries(), scattered, dense);
      case Step::Kind::repeat: return repeat(step, 0, step.node->entries(), scattered, dense);
      case Step::Kind::sequence:
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
      case Step::Kind::nest: {
        const Step::Moved& m = step.moved;
        const Index row = m.length * m.count;
        return split(
            from, to, row, dense, [&](Index r, Index f, Index t, Dense* d) { blocks_of(step, scattered + r * m.scattered.outer, d, f, t); },
            [&](Index r, Index rows, Dense* d) { kernel(m, 0, m.count, rows, m.length, scattered + r * m.scattered.outer, d); });
      }
      case Step::Kind::list: return blocks_of(step, scattered, dense, from, to);
      case Step::Kind::blocks: return part_irregular(step, scattered, dense, from, to);
      case Step::Kind::woven:
      case Step::Kind::repeat: {
        const Step& child = step.children.front();
        return split(
            from, to, child.size, dense,
            [&](Index i, Index f, Index t, Dense* d) { part(child, scattered + step.node->offset(i), d, f, t); },
            [&](Index i, Index n, Dense* d) {
              step.kind == Step::Kind::woven ? woven(step, i, n, scattered, d) : repeat(step, i, n, scattered, d);
            });
      }
      case Step::Kind::sequence: {
        const std::vector<Index>& starts = step.node->starts;
        for (Index i = containing(starts, from); from < to; ++i) {
          const Index end = std::min(to, starts[static_cast<std::size_t>(i) + 1]);
          const Index start = starts[static_cast<std::size_t>(i)];
          part(step.children[static_cast<std::size_t>(i)], scattered + step.node->offset(i), dense, from - start, end - start);
          dense += end - from;
          from = end;
        }
        return;
      }
    }
  }

 private:
  static Index containing(const std::vector<Index>& starts, Index position) {
    return std::ranges::upper_bound(starts, position) - starts.begin() - 1;
  }

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
    if (last >= first && to % each != 0) part(last, 0, to % each, dense);
  }

  void block(Scattered* scattered, Dense* dense, Index bytes) const {
    if constexpr (Pack) {
      copy_block(dense, scattered, bytes, stream_);
    } else {
      copy_block(scattered, dense, bytes, stream_);
    }
  }

  // Blocks [first, first + count) of each of `rows` rows; dense_stride is the distance of blocks on the dense side.
  void kernel(const Step::Moved& moved, Index first, Index count, Index rows, Index dense_stride, Scattered* scattered,
              Dense* dense) const {
    Side side = moved.scattered;
    if (side.offsets == nullptr) {
      scattered += first * side.stride;
    } else if (moved.narrow) {
      side.offsets = static_cast<const std::int32_t*>(side.offsets) + first;
    } else {
      side.offsets = static_cast<const std::int64_t*>(side.offsets) + first;
    }
    const Side packed{.stride = dense_stride, .outer = count * dense_stride};
    if constexpr (Pack) {
      (stream_ ? moved.pack_stream : moved.pack)
          .run({.length = moved.length, .count = count, .rows = rows, .from = side, .to = packed}, scattered, dense);
    } else {
      (stream_ ? moved.unpack_stream : moved.unpack)
          .run({.length = moved.length, .count = count, .rows = rows, .from = packed, .to = side}, dense, scattered);
    }
  }

  // Bytes [from, to) of one row of blocks.
  void blocks_of(const Step& step, Scattered* scattered, Dense* dense, Index from, Index to) const {
    const Step::Moved& m = step.moved;
    split(
        from, to, m.length, dense, [&](Index i, Index f, Index t, Dense* d) { block(scattered + step.block_offset(i) + f, d, t - f); },
        [&](Index i, Index n, Dense* d) { kernel(m, i, n, 1, m.length, scattered, d); });
  }

  void irregular(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Irregular blocks{.count = count, .offsets = step.node->offsets.data() + first, .starts = step.node->starts.data() + first};
    if constexpr (Pack) {
      step.irregular.pack(blocks, scattered, dense);
    } else {
      step.irregular.unpack(blocks, dense, scattered);
    }
  }

  void part_irregular(const Step& step, Scattered* scattered, Dense* dense, Index from, Index to) const {
    const std::vector<Index>& starts = step.node->starts;
    Index first = containing(starts, from);
    if (const Index start = starts[static_cast<std::size_t>(first)]; from > start) {
      const Index end = std::min(to, starts[static_cast<std::size_t>(first) + 1]);
      block(scattered + step.node->offset(first) + from - start, dense, end - from);
      dense += end - from;
      from = end;
      ++first;
    }
    if (from == to) return;
    const Index last = containing(starts, to);  // the block that is cut, or the end
    if (last > first) irregular(step, first, last - first, scattered, dense);
    const Index start = starts[static_cast<std::size_t>(last)];
    if (to > start) block(scattered + step.node->offset(last), dense + start - from, to - start);
  }

  void woven(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Index chunk = step.run_moves.front().count;
    const Index each = step.children.front().size;
    for (Index i = first; i < first + count; i += chunk) {
      const Index entries = std::min(chunk, first + count - i);
      for (std::size_t k = 0; k < step.run_moves.size(); ++k)
        kernel(step.run_moves[k], i, entries, 1, each, scattered + step.run_offsets[k], dense + step.run_starts[k]);
      dense += entries * each;
    }
  }

  void repeat(const Step& step, Index first, Index count, Scattered* scattered, Dense* dense) const {
    const Step& child = step.children.front();
    for (Index i = first; i < first + count; ++i, dense += child.size) whole(child, scattered + step.node->offset(i), dense);
  }

  bool stream_;
};

constexpr Index kAsk = 64 << 10;  // below this, asking whether memory is cold costs more than it can bring

// The offset of byte `position` of a step's stream.
Index offset_at(const Step& step, Index position) {
  const layout::Node* node = step.node;
  Index offset = 0;
  while (node->kind != layout::Kind::run) {
    if (!node->starts.empty()) {
      const auto i = static_cast<std::size_t>(std::ranges::upper_bound(node->starts, position) - node->starts.begin() - 1);
      offset += node->offsets[i];
      position -= node->starts[i];
      if (node->kind == layout::Kind::blocks) return offset + position;
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

void Plan::pack(const std::byte* base, Index position, Index length, std::byte* dense) const {
  bool stream = false;
  if (streams_ && length >= kAsk) {
    const std::array<const std::byte*, 2> places{dense + length / 3, dense + length / 3 * 2};
    stream = is_cold(places);
  }
  Mover<true>(stream).part(root_, base + at_, dense, position, position + length);
  if (stream) end_of_streaming();
}

void Plan::unpack(std::byte* base, Index position, Index length, const std::byte* dense) const {
  bool stream = false;
  if (streams_ && length >= kAsk) {
    const std::array<const std::byte*, 2> places{base + at_ + offset_at(root_, position + length / 3),
                                                 base + at_ + offset_at(root_, position + length / 3 * 2)};
    stream = is_cold(places);
  }
  Mover<false>(stream).part(root_, base + at_, dense, position, position + length);
  if (stream) end_of_streaming();
}

}  // namespace lacuna::copy
