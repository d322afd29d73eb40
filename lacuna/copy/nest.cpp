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

// Whether lines a stride apart are together in a first-level cache of 32 KiB and 8 ways, and their pages in its TLB.
bool lines_stay(std::int64_t count, std::int64_t stride) {
  constexpr std::int64_t kWays = 8, kSets = 64, kPages = 48;
  if (count <= kWays) return true;
  if (count > kPages) return false;
  std::array<std::int8_t, kSets> used{};
  for (std::int64_t i = 0; i < count; ++i) {
    if (++used[static_cast<std::size_t>(i * stride / kLine & (kSets - 1))] > kWays / 2) return false;
  }
  return true;
}

bool suffice(const Nest& nest, std::int64_t Loop::* dense, std::int64_t Loop::* jumping) {
  constexpr std::int64_t kNotInRegisters = 12, kClose = 16 << 10, kAtHand = 2 << 20;
  const std::size_t along = densest(nest, dense);
  const Loop& row = nest.loops[along];
  const bool next_goes_on = densest(nest, jumping) == (along == 0 ? 1 : 0);
  return nest.block >= kNotInRegisters && row.*dense == nest.block && row.count * nest.block >= kLine && next_goes_on &&
         bytes_of(nest) <= kAtHand && (row.count * std::abs(row.*jumping) <= kClose || lines_stay(row.count, row.*jumping));
}

// Rows of blocks along which one side is densest.
void move_rows(Nest nest, std::int64_t Loop::* dense_side, const std::byte* from, std::byte* to, bool stream) {
  const Loop inner = take(nest, densest(nest, dense_side));
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

std::int64_t Loop::* rows_suffice(const Nest& nest) {
  if (suffice(nest, &Loop::to, &Loop::from)) return &Loop::to;
  return suffice(nest, &Loop::from, &Loop::to) ? &Loop::from : nullptr;
}

void move_nest(const Nest& nest, const std::byte* from, std::byte* to, bool stream) {
  if (nest.depth == 0) {
    copy_block(to, from, nest.block, stream);
    if (stream) end_of_streaming();
    return;
  }
  if (!is_crossed(nest)) return move_rows(nest, &Loop::to, from, to, stream);
  const bool past = stream || exceeds_caches(2 * bytes_of(nest));
  if (std::int64_t Loop::* const dense = past ? nullptr : rows_suffice(nest)) return move_rows(nest, dense, from, to, stream);
  Crossing(nest, past).move(from, to);
  if (past) end_of_streaming();
}

}  // namespace lacuna::copy
