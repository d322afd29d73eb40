#include "lacuna/copy/nest.hpp"

#include <algorithm>
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

bool levels_of(const Node& root, std::vector<Level>& levels) {
  const Node* node = &root;
  for (; node->kind == Kind::loop; node = node->children[0].get()) levels.push_back({node->count, node->stride});
  if (node->kind != Kind::run) return false;
  levels.push_back({node->size, 1});
  std::ranges::reverse(levels);
  return true;
}

// Loops that go on where the one inside them ends, on both sides, are one loop.
void add(std::vector<Loop>& loops, Loop loop) {
  if (loop.count == 1) return;
  if (!loops.empty()) {
    Loop& inner = loops.back();
    if (loop.from == inner.count * inner.from && loop.to == inner.count * inner.to) {
      inner.count *= loop.count;
      return;
    }
  }
  loops.push_back(loop);
}

void move_loops(const Move& move, Kernel kernel, const std::vector<Loop>& outer, std::size_t left, const std::byte* from, std::byte* to) {
  if (left == 0) return kernel.run(move, from, to);
  const Loop& loop = outer[left - 1];
  for (std::int64_t i = 0; i < loop.count; ++i) move_loops(move, kernel, outer, left - 1, from + i * loop.from, to + i * loop.to);
}

Loop take(std::vector<Loop>& loops, std::size_t i) {
  const Loop taken = loops[i];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  return taken;
}

}  // namespace

std::optional<Nest> zip(const Node& from, const Node& to) {
  std::vector<Level> a;
  std::vector<Level> b;
  if (!levels_of(from, a) || !levels_of(to, b)) return std::nullopt;
  std::vector<Loop> loops;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    const std::int64_t count = std::min(a[i].count, b[j].count);
    if (a[i].count % count != 0 || b[j].count % count != 0) return std::nullopt;
    add(loops, {count, a[i].stride, b[j].stride});
    for (auto [levels, at] : {std::pair{&a, &i}, std::pair{&b, &j}}) {
      Level& level = (*levels)[*at];
      level = {level.count / count, level.stride * count};
      if (level.count == 1) ++*at;
    }
  }
  Nest nest{.block = 1, .loops = std::move(loops)};
  if (!nest.loops.empty() && nest.loops.front().from == 1 && nest.loops.front().to == 1) nest.block = take(nest.loops, 0).count;
  return nest;
}

void move_nest(const Nest& nest, const std::byte* from, std::byte* to, bool stream) {
  std::vector<Loop> loops = nest.loops;
  if (loops.empty()) return copy_block(to, from, nest.block, stream);
  // The two loops that the kernel takes: those along which each side is densest.
  const auto densest = [&](auto stride) {
    return static_cast<std::size_t>(std::ranges::min_element(loops, {}, [&](const Loop& l) { return std::abs(stride(l)); }) -
                                    loops.begin());
  };
  const std::size_t along_from = densest([](const Loop& l) { return l.from; });
  const std::size_t along_to = densest([](const Loop& l) { return l.to; });
  const bool crossed =
      along_from != along_to && nest.block < 64 && std::abs(loops[along_from].from) < 64 && std::abs(loops[along_to].to) < 64;
  Loop inner;
  Loop rows{1, 0, 0};
  if (crossed) {
    rows = loops[along_to];
    inner = loops[along_from];
    take(loops, std::max(along_to, along_from));
    take(loops, std::min(along_to, along_from));
  } else {
    inner = take(loops, along_to);
    if (!loops.empty()) rows = take(loops, 0);
  }
  const Move move{.length = nest.block,
                  .count = inner.count,
                  .rows = rows.count,
                  .from = {.stride = inner.from, .outer = rows.from},
                  .to = {.stride = inner.to, .outer = rows.to}};
  const auto dense = [&](std::int64_t stride, std::int64_t outer) {
    return stride == nest.block && (rows.count == 1 || outer == inner.count * nest.block);
  };
  const Shape shape{.length = nest.block,
                    .from_dense = dense(inner.from, rows.from),
                    .to_dense = dense(inner.to, rows.to),
                    .crossed = crossed,
                    .stream = stream};
  move_loops(move, kernel_for(shape), loops, loops.size(), from, to);
}

}  // namespace lacuna::copy
