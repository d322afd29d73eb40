#include "lacuna/copy/nest.hpp"

#include <cstdlib>

#include "lacuna/copy/cold.hpp"
#include "lacuna/copy/crossing.hpp"
#include "lacuna/copy/kernels.hpp"
#include "lacuna/copy/walk.hpp"

namespace lacuna::copy {
namespace {

using layout::Node;
using layout::NodeKind;

// One side's loops, innermost first; the run is the innermost loop, of bytes.
struct Level {
  std::int64_t count;
  std::int64_t stride;
};
struct Levels {
  std::array<Level, Nest::kMost> levels;
  std::size_t depth = 0;
};

bool levels_of(const Node& root, Levels& side) {
  const Node* node = root.loops ? root.loops.get() : &root;
  for (; node->kind == NodeKind::loop; node = node->children[0].get()) {
    if (side.depth + 1 == Nest::kMost) return false;
    side.levels[side.depth++] = {node->count, node->stride};
  }
  if (node->kind != NodeKind::run) return false;
  side.levels[side.depth++] = {node->size, 1};
  std::reverse(side.levels.begin(), side.levels.begin() + side.depth);
  return true;
}

// Loops that go on where the one inside them ends, on both sides, are one loop.
bool add(Nest& nest, Loop loop) {
  if (loop.count == 1) return true;
  if (nest.depth > 0) {
    Loop& inner = nest.loops[nest.depth - 1];
    if (goes_on(inner, loop)) {
      inner.count *= loop.count;
      return true;
    }
  }
  if (nest.depth == Nest::kMost) return false;
  nest.loops[nest.depth++] = loop;
  return true;
}

Loop take(Nest& nest, std::size_t i) {
  const Loop taken = nest.loops[i];
  nest.remove(i);
  return taken;
}

// Rows of blocks along which the destination is densest.
void move_rows(Nest nest, const std::byte* from, std::byte* to, bool stream) {
  const Loop inner = take(nest, densest(nest, &Loop::to));
  const Loop rows = nest.depth > 0 ? take(nest, 0) : Loop{1, 0, 0};
  const Move move{.length = nest.block,
                  .count = inner.count,
                  .rows = rows.count,
                  .from = {.stride = inner.from, .outer = rows.from},
                  .to = {.stride = inner.to, .outer = rows.to}};
  const auto dense = [&](std::int64_t stride, std::int64_t outer) {
    return stride == nest.block && (rows.count == 1 || outer == inner.count * nest.block);
  };
  const Kernel kernel = kernel_for({.length = nest.block,
                                    .from_dense = dense(inner.from, rows.from),
                                    .to_dense = dense(inner.to, rows.to),
                                    .stream = stream,
                                    .apart = std::max(std::abs(inner.from), std::abs(inner.to)) >= kLine,
                                    .repeats = inner.from == 0 && inner.to == nest.block});
  Walk walk;
  walk.add_all(nest);
  walk.run(from, to, [&](const std::byte* f, std::byte* t) { kernel.run(move, f, t); });
  if (kernel.streams) end_of_streaming();
}

}  // namespace

std::optional<Nest> packing_nest(const Node& root) {
  Levels levels;
  if (!levels_of(root, levels)) return std::nullopt;
  Nest nest{.block = levels.levels[0].count, .depth = levels.depth - 1};
  std::int64_t dense = nest.block;
  for (std::size_t i = 0; i < nest.depth; ++i) {
    const Level& level = levels.levels[i + 1];
    nest.loops[i] = {level.count, level.stride, dense};
    dense *= level.count;
  }
  return nest;
}

Nest turned(const Nest& nest) {
  Nest other = nest;
  for (std::size_t i = 0; i < nest.depth; ++i) std::swap(other.loops[i].from, other.loops[i].to);
  return other;
}

std::optional<Nest> zip(const Node& from, const Node& to) {
  Levels a;
  Levels b;
  if (!levels_of(from, a) || !levels_of(to, b)) return std::nullopt;
  Nest nest{.block = 1};
  for (std::size_t i = 0, j = 0; i < a.depth && j < b.depth;) {
    Level& x = a.levels[i];
    Level& y = b.levels[j];
    const std::int64_t count = std::min(x.count, y.count);
    if (x.count % count != 0 || y.count % count != 0 || !add(nest, {count, x.stride, y.stride})) return std::nullopt;
    x = {x.count / count, x.stride * count};
    y = {y.count / count, y.stride * count};
    i += x.count == 1 ? 1 : 0;
    j += y.count == 1 ? 1 : 0;
  }
  if (nest.depth > 0 && nest.loops[0].from == 1 && nest.loops[0].to == 1) nest.block = take(nest, 0).count;
  return nest;
}

std::int64_t bytes_of(const Nest& nest) {
  std::int64_t bytes = nest.block;
  for (std::size_t i = 0; i < nest.depth; ++i) bytes *= nest.loops[i].count;
  return bytes;
}

bool is_crossed(const Nest& nest) {
  if (nest.depth < 2 || nest.block >= kLine) return false;
  const std::size_t along_from = densest(nest, &Loop::from);
  const std::size_t along_to = densest(nest, &Loop::to);
  return along_from != along_to && std::abs(nest.loops[along_from].from) < kLine && std::abs(nest.loops[along_to].to) < kLine;
}

bool rows_suffice(const Nest& nest) {
  constexpr std::int64_t kNotInRegisters = 16, kWays = 8, kClose = 16 << 10, kAtHand = 2 << 20;
  const std::size_t along_to = densest(nest, &Loop::to);
  const Loop& row = nest.loops[along_to];
  const bool next_reads_on = densest(nest, &Loop::from) == (along_to == 0 ? 1 : 0);
  const bool stay = row.count <= kWays || row.count * std::abs(row.from) <= kClose;
  return nest.block >= kNotInRegisters && row.to == nest.block && row.count * row.to >= kLine && stay && next_reads_on &&
         bytes_of(nest) <= kAtHand;
}

void move_nest(const Nest& nest, const std::byte* from, std::byte* to, bool stream) {
  if (nest.depth == 0) {
    copy_block(to, from, nest.block, stream);
    if (stream) end_of_streaming();
    return;
  }
  if (!is_crossed(nest)) return move_rows(nest, from, to, stream);
  const bool past = stream || exceeds_caches(2 * bytes_of(nest));
  if (!past && rows_suffice(nest)) return move_rows(nest, from, to, stream);
  Crossing(nest, past).move(from, to);
  if (past) end_of_streaming();
}

}  // namespace lacuna::copy
