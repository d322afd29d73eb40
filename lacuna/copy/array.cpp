// Array to array of one shape: no layout is made, since nothing has an order. The loops are free, and those that are
// dense on both sides become one.
#include <algorithm>
#include <cstdlib>
#include <optional>
#include <vector>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/nest_move.hpp"

namespace lacuna::copy {
namespace {

// Loops of more than one entry, the one along which the destination is densest first, all of them upwards there.
std::vector<Loop> loops_of(const layout::StridedArray& src, const layout::StridedArray& dst, std::int64_t& from, std::int64_t& to) {
  std::vector<Loop> loops;
  for (std::size_t i = 0; i < src.shape.size(); ++i) {
    if (src.shape[i] == 1) continue;
    loops.push_back(upwards({src.shape[i], src.strides[i], dst.strides[i]}, &Loop::to, from, to));
  }
  std::ranges::sort(loops, {}, &Loop::to);
  return loops;
}

// As one loop, those that go on on both sides where the one before them ends; a block of what is dense on both.
std::vector<Loop> joined(const std::vector<Loop>& loops, std::int64_t& block) {
  std::vector<Loop> out;
  for (const Loop& loop : loops) {
    if (out.empty() && loop.from == block && loop.to == block) {
      block *= loop.count;
    } else if (!out.empty() && goes_on(out.back(), loop)) {
      out.back().count *= loop.count;
    } else {
      out.push_back(loop);
    }
  }
  return out;
}

// The way of the last nest is kept: arrays of one shape are often copied one after another.
void move_remembered(const Nest& nest, const std::byte* from, std::byte* to, bool stream) {
  thread_local std::optional<NestMove> last;
  if (!last || last->nest() != nest) last.emplace(nest);
  last->move(from, to, stream);
}

// The loops that a nest has no room for go around.
void move_loops(const std::vector<Loop>& loops, std::size_t left, std::int64_t block, const std::byte* from, std::byte* to, bool stream) {
  if (left <= Nest::kMost) {
    Nest nest{.block = block, .depth = left};
    std::copy_n(loops.begin(), left, nest.loops.begin());
    return move_remembered(nest, from, to, stream);
  }
  const Loop& loop = loops[left - 1];
  for (std::int64_t i = 0; i < loop.count; ++i) move_loops(loops, left - 1, block, from + i * loop.from, to + i * loop.to, stream);
}

}  // namespace

base::Result<void> move_array(const layout::StridedArray& src, const std::byte* src_base, const layout::StridedArray& dst,
                              std::byte* dst_base) {
  if (src.item_bytes != dst.item_bytes || !std::ranges::equal(src.shape, dst.shape) || src.strides.size() != src.shape.size() ||
      dst.strides.size() != dst.shape.size()) {
    return base::fail(base::Code::invalid_argument, "arrays of different shapes or elements");
  }
  if (std::ranges::find(src.shape, 0) != src.shape.end() || src.item_bytes == 0) return {};
  std::int64_t from = 0, to = 0;
  std::int64_t block = src.item_bytes;
  const std::vector<Loop> loops = joined(loops_of(src, dst, from, to), block);
  std::int64_t bytes = block;
  for (const Loop& loop : loops) bytes *= loop.count;
  const bool stream = is_cold(bytes, [&](std::int64_t thirds) {
    std::int64_t at = to;
    for (const Loop& loop : loops) at += loop.count * thirds / 3 * loop.to;
    return dst_base + at;
  });
  move_loops(loops, loops.size(), block, src_base + from, dst_base + to, stream);
  return {};
}

}  // namespace lacuna::copy
