#include "lacuna/copy/nest.hpp"

#include <cstdlib>

#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {
namespace {

using layout::Kind;
using layout::Node;

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
  const Node* node = &root;
  for (; node->kind == Kind::loop; node = node->children[0].get()) {
    if (side.depth + 1 == Nest::kMost) return false;
    side.levels[side.depth++] = {node->count, node->stride};
  }
  if (node->kind != Kind::run) return false;
  side.levels[side.depth++] = {node->size, 1};
  std::reverse(side.levels.begin(), side.levels.begin() + side.depth);
  return true;
}

// Loops that go on where the one inside them ends, on both sides, are one loop.
bool add(Nest& nest, Loop loop) {
  if (loop.count == 1) return true;
  if (nest.depth > 0) {
    Loop& inner = nest.loops[nest.depth - 1];
    if (loop.from == inner.count * inner.from && loop.to == inner.count * inner.to) {
      inner.count *= loop.count;
      return true;
    }
  }
  if (nest.depth == Nest::kMost) return false;
  nest.loops[nest.depth++] = loop;
  return true;
}

void move_loops(const Move& move, Kernel kernel, const Nest& nest, std::size_t left, const std::byte* from, std::byte* to) {
  if (left == 0) return kernel.run(move, from, to);
  const Loop& loop = nest.loops[left - 1];
  for (std::int64_t i = 0; i < loop.count; ++i) move_loops(move, kernel, nest, left - 1, from + i * loop.from, to + i * loop.to);
}

Loop take(Nest& nest, std::size_t i) {
  const Loop taken = nest.loops[i];
  nest.remove(i);
  return taken;
}

// The loop along which one side is densest.
template <class Stride>
std::size_t densest(const Nest& nest, Stride stride) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < nest.depth; ++i) {
    if (std::abs(stride(nest.loops[i])) < std::abs(stride(nest.loops[best]))) best = i;
  }
  return best;
}

}  // namespace

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

void move_nest(Nest nest, const std::byte* from, std::byte* to, bool stream) {
  if (nest.depth == 0) return copy_block(to, from, nest.block, stream);
  const std::size_t along_from = densest(nest, [](const Loop& l) { return l.from; });
  const std::size_t along_to = densest(nest, [](const Loop& l) { return l.to; });
  const bool crossed =
      along_from != along_to && nest.block < 64 && std::abs(nest.loops[along_from].from) < 64 && std::abs(nest.loops[along_to].to) < 64;
  // The two loops that the kernel takes.
  Loop inner = nest.loops[crossed ? along_from : along_to];
  Loop rows{1, 0, 0};
  if (crossed) {
    rows = nest.loops[along_to];
    nest.remove(std::max(along_to, along_from));
    nest.remove(std::min(along_to, along_from));
  } else {
    nest.remove(along_to);
    if (nest.depth > 0) rows = take(nest, 0);
  }
  const Move move{.length = nest.block,
                  .count = inner.count,
                  .rows = rows.count,
                  .from = {.stride = inner.from, .outer = rows.from},
                  .to = {.stride = inner.to, .outer = rows.to}};
  const auto dense = [&](std::int64_t stride, std::int64_t outer) {
    return stride == nest.block && (rows.count == 1 || outer == inner.count * nest.block);
  };
  const Shape shape{
      .length = nest.block,
      .from_dense = dense(inner.from, rows.from),
      .to_dense = dense(inner.to, rows.to),
      .crossed = crossed,
      .squares = crossed && ((inner.from == nest.block && rows.to == nest.block) || (rows.from == nest.block && inner.to == nest.block)),
      .stream = stream};
  move_loops(move, kernel_for(shape), nest, nest.depth, from, to);
}

}  // namespace lacuna::copy
