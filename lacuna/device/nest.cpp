#include "lacuna/device/nest.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <ranges>

namespace lacuna::device {
namespace {

using layout::Layout;
using layout::Node;
using layout::NodeKind;

struct Step {
  std::int64_t count;
  LoopSide side;
};

// A form from its root to what is no loop.
struct Chain {
  std::vector<Step> steps;
  const Node* form = nullptr;  // null for a run
  std::int64_t size = 0;
};

LoopSide side_of(const Node& node) {
  if (node.kind == NodeKind::loop) return {.stride = node.stride};
  return {.list = node.offsets.data()};
}

Chain chain_of(const Node* node) {
  Chain chain;
  for (; node->kind == NodeKind::loop || node->kind == NodeKind::list; node = node->children[0].get())
    chain.steps.push_back({node->entries(), side_of(*node)});
  if (node->kind != NodeKind::run) chain.form = node;
  chain.size = node->size;
  return chain;
}

// Makes the run at the chain's end `size` bytes long.
bool cut(Chain& chain, std::int64_t size) {
  if (chain.size == size) return true;
  if (chain.form != nullptr || chain.size % size != 0) return false;
  chain.steps.push_back({chain.size / size, {.stride = size}});
  chain.size = size;
  return true;
}

// Takes the innermost `count` of a chain's last loop.
std::optional<LoopSide> take(std::vector<Step>& steps, std::int64_t count) {
  Step& step = steps.back();
  const LoopSide side = step.side;
  if (step.count == count) {
    steps.pop_back();
    return side;
  }
  if (side.list != nullptr || step.count % count != 0) return std::nullopt;
  step = {step.count / count, {.stride = side.stride * count}};
  return side;
}

bool goes_on(const LoopSide& outer, const LoopSide& inner, std::int64_t count) {
  return outer.list == nullptr && inner.list == nullptr && outer.stride == inner.stride * count;
}

bool spell(const Nest& around, const Node& node, bool is_from, std::size_t most, std::vector<Nest>& nests) {
  Nest nest = around;
  const Node* form = &node;
  for (; form->kind == NodeKind::loop || form->kind == NodeKind::list; form = form->children[0].get()) {
    const LoopSide here = side_of(*form);
    const LoopSide dense{.stride = form->children[0]->size};
    nest.add(is_from ? Loop{form->entries(), here, dense} : Loop{form->entries(), dense, here});
  }
  nest.size = form->size;
  nest.from_form = nest.to_form = nullptr;
  if (form->kind != NodeKind::sequence) {
    if (form->kind == NodeKind::blocks) (is_from ? nest.from_form : nest.to_form) = form;
    if (nests.size() == most) return false;
    nests.push_back(std::move(nest));
    return true;
  }
  for (std::size_t i = 0; i < form->children.size(); ++i) {
    Nest member = nest;
    member.from += is_from ? form->offsets[i] : form->starts[i];
    member.to += is_from ? form->starts[i] : form->offsets[i];
    if (!spell(member, *form->children[i], is_from, most, nests)) return false;
  }
  return true;
}

// The loop along which one side is densest.
template <class Get>
std::size_t densest(const std::vector<Loop>& loops, Get get) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < loops.size(); ++i) {
    if (std::abs(get(loops[i])) <= std::abs(get(loops[best]))) best = i;  // of equals the innermost
  }
  return best;
}

Loop part_of(const Loop& loop, std::int64_t count, std::int64_t step) {
  return {count, {.stride = loop.from.stride * step}, {.stride = loop.to.stride * step}};
}

}  // namespace

void Nest::add(const Loop& loop) {
  if (loop.count == 1) {
    from += loop.from.place(0);
    to += loop.to.place(0);
    return;
  }
  if (!loops.empty() && goes_on(loops.back().from, loop.from, loop.count) && goes_on(loops.back().to, loop.to, loop.count)) {
    loops.back() = {loops.back().count * loop.count, loop.from, loop.to};
    return;
  }
  loops.push_back(loop);
}

std::optional<Nest> zip(const Layout& from, const Layout& to) {
  Chain a = chain_of(from.form());
  Chain b = chain_of(to.form());
  if (a.form != nullptr && b.form != nullptr) return std::nullopt;
  const std::int64_t size = a.form != nullptr ? a.size : b.form != nullptr ? b.size : std::min(a.size, b.size);
  if (!cut(a, size) || !cut(b, size)) return std::nullopt;

  std::vector<Loop> inner_first;
  while (!a.steps.empty() && !b.steps.empty()) {
    const std::int64_t count = std::min(a.steps.back().count, b.steps.back().count);
    const auto x = take(a.steps, count);
    const auto y = take(b.steps, count);
    if (!x || !y) return std::nullopt;
    inner_first.push_back({count, *x, *y});
  }
  Nest nest{.from = from.form_offset(), .to = to.form_offset(), .loops = {}, .size = size, .from_form = a.form, .to_form = b.form};
  for (const Loop& loop : std::views::reverse(inner_first)) nest.add(loop);
  // A run that goes on in the loop around it.
  if (nest.from_form == nullptr && nest.to_form == nullptr && !nest.loops.empty() && nest.loops.back().strided() &&
      nest.loops.back().from.stride == nest.size && nest.loops.back().to.stride == nest.size) {
    nest.size *= nest.loops.back().count;
    nest.loops.pop_back();
  }
  return nest;
}

base::Result<std::vector<Apart>> take_apart(const Pair& pair) {
  constexpr std::size_t most_children = 64;
  const Node& from = *pair.from.form();
  const Node& to = *pair.to.form();
  const auto sliced = [&](std::int64_t position, std::int64_t length) -> base::Result<Pair> {
    return Pair{LACUNA_TRY(pair.from.slice(position, length)), LACUNA_TRY(pair.to.slice(position, length))};
  };
  std::vector<Apart> parts;
  const auto repeats = [](const Node& node) {
    return node.kind == NodeKind::loop ? node.count : node.kind == NodeKind::run ? node.size : 1;
  };
  const std::int64_t count = std::gcd(repeats(from), repeats(to));
  if (count > 1 && (from.kind == NodeKind::loop || to.kind == NodeKind::loop)) {
    const std::int64_t size = pair.from.size() / count;
    const auto stride = [&](const Node& node) { return node.kind == NodeKind::loop ? node.stride * (node.count / count) : size; };
    parts.push_back({{count, {.stride = stride(from)}, {.stride = stride(to)}}, LACUNA_TRY(sliced(0, size))});
    return parts;
  }
  const Node& sequence = from.kind == NodeKind::sequence ? from : to;
  if (sequence.kind != NodeKind::sequence || sequence.children.size() > most_children) return parts;
  for (std::size_t i = 0; i < sequence.children.size(); ++i)
    parts.push_back({{}, LACUNA_TRY(sliced(sequence.starts[i], sequence.starts[i + 1] - sequence.starts[i]))});
  return parts;
}

bool spell_out(const Nest& nest, std::size_t most, std::vector<Nest>& nests) {
  const bool is_from = nest.from_form != nullptr;
  return spell(nest, *(is_from ? nest.from_form : nest.to_form), is_from, most, nests);
}

std::vector<Nest> tiled(Nest nest, std::int64_t tile_bytes) {
  std::vector<Loop>& loops = nest.loops;
  if (loops.size() < 2 || nest.size >= tile_bytes || !std::ranges::all_of(loops, &Loop::strided)) return {std::move(nest)};
  const std::size_t a = densest(loops, [](const Loop& l) { return l.from.stride; });
  const std::size_t b = densest(loops, [](const Loop& l) { return l.to.stride; });
  const Loop along_from = loops[a];
  const Loop along_to = loops[b];
  loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
  if (a != b) loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)));
  if (a == b || std::abs(along_from.from.stride) >= tile_bytes || std::abs(along_to.to.stride) >= tile_bytes) {
    if (a != b) loops.push_back(along_from);
    loops.push_back(along_to);
    return {std::move(nest)};
  }
  const auto in_tile = [&](std::int64_t stride, std::int64_t count) {
    return std::clamp<std::int64_t>(tile_bytes / std::max<std::int64_t>(std::abs(stride), 1), 1, count);
  };
  const std::int64_t wide = in_tile(along_from.from.stride, along_from.count);
  const std::int64_t high = in_tile(along_to.to.stride, along_to.count);
  std::vector<Nest> nests;
  for (const bool rest_a : {false, true}) {
    for (const bool rest_b : {false, true}) {
      const std::int64_t tiles_a = along_from.count / wide;
      const std::int64_t tiles_b = along_to.count / high;
      const std::int64_t wide_here = rest_a ? along_from.count % wide : wide;
      const std::int64_t high_here = rest_b ? along_to.count % high : high;
      if (wide_here == 0 || high_here == 0) continue;
      Nest part = nest;
      part.from += (rest_a ? tiles_a * wide * along_from.from.stride : 0) + (rest_b ? tiles_b * high * along_to.from.stride : 0);
      part.to += (rest_a ? tiles_a * wide * along_from.to.stride : 0) + (rest_b ? tiles_b * high * along_to.to.stride : 0);
      if (!rest_b) part.loops.push_back(part_of(along_to, tiles_b, high));
      if (!rest_a) part.loops.push_back(part_of(along_from, tiles_a, wide));
      part.loops.push_back(part_of(along_from, wide_here, 1));
      part.loops.push_back(part_of(along_to, high_here, 1));
      std::erase_if(part.loops, [](const Loop& loop) { return loop.count == 1; });
      nests.push_back(std::move(part));
    }
  }
  return nests;
}

}  // namespace lacuna::device
