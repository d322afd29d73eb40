// Does a layout name some byte twice? By rules on the tree where they decide it, else by marking the runs on a map of
// the memory, or by sorting them.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

constexpr std::int64_t kSortLimit = std::int64_t{1} << 24;  // runs; 256 MB of them

// Whether any of these intervals within [low, high) meet, by a map of the memory with a bit for each grain: the largest
// power of two that divides all offsets and lengths. Pages of a cache have large grains, and marking them in the order
// of a page table takes a few ns each where sorting takes 70. Nothing if the map would have more than kGrains bits for
// an interval: it is never longer than their offsets in 64 bits. `each(use)` calls use(offset, length > 0) for all of
// them, twice the same.
constexpr std::int64_t kGrains = 64;

std::optional<bool> marks_meet(std::int64_t count, std::int64_t low, std::int64_t high, const auto& each) {
  std::uint64_t places = 0;
  each([&](std::int64_t at, std::int64_t length) { places |= static_cast<std::uint64_t>(at - low) | static_cast<std::uint64_t>(length); });
  if (places == 0) return false;
  const int shift = std::countr_zero(places);
  if ((high - low) >> shift > kGrains * count) return std::nullopt;
  std::vector<std::uint64_t> marks(static_cast<std::size_t>(((high - low) >> shift) / 64 + 1));
  std::uint64_t twice = 0;
  each([&](std::int64_t at, std::int64_t length) {
    auto grain = static_cast<std::uint64_t>((at - low) >> shift);
    for (auto left = static_cast<std::uint64_t>(length >> shift); left > 0;) {
      const std::uint64_t bit = grain % 64;
      const std::uint64_t taken = std::min(left, 64 - bit);
      const std::uint64_t mask = (~std::uint64_t{0} >> (64 - taken)) << bit;
      std::uint64_t& word = marks[grain / 64];
      twice |= word & mask;
      word |= mask;
      grain += taken;
      left -= taken;
    }
  });
  return twice != 0;
}

std::optional<bool> decide(const Node& node);

// A nest of loops over one node is a set of sums of multiples of its strides, whatever their order. If, from the
// smallest stride up, each stride clears the span of all that is inside, no two sums come close: no overlap. A
// transpose's inner stride is larger than its outer one, and is decided here.
std::optional<bool> decide_nest(const Node& node) {
  struct Loop {
    std::int64_t stride;
    std::int64_t count;
  };
  std::vector<Loop> loops;
  const Node* body = &node;
  for (; body->kind == NodeKind::loop; body = body->children[0].get()) loops.push_back({std::abs(body->stride), body->count});
  const std::optional<bool> inner = decide(*body);
  if (inner.value_or(true)) return inner;
  std::ranges::sort(loops, {}, &Loop::stride);
  std::int64_t span = body->high - body->low;
  for (const Loop& loop : loops) {
    if (loop.stride == 0) return true;
    if (loop.stride < span) return std::nullopt;
    span += (loop.count - 1) * loop.stride;
  }
  return false;
}

// Calls use(offset, length) for the bounding interval of each entry.
void each_interval(const Node& node, const auto& use) {
  if (node.kind == NodeKind::blocks) {
    for (std::size_t i = 0; i < node.offsets.size(); ++i) use(node.offsets[i], node.starts[i + 1] - node.starts[i]);
  } else if (node.kind == NodeKind::list) {
    const Node& child = *node.children[0];
    for (const std::int64_t at : node.offsets) use(at + child.low, child.high - child.low);
  } else {
    for (std::size_t i = 0; i < node.offsets.size(); ++i)
      use(node.offsets[i] + node.children[i]->low, node.children[i]->high - node.children[i]->low);
  }
}

bool intervals_meet(const Node& node) {
  if (const std::optional<bool> meet = marks_meet(node.entries(), node.low, node.high, [&](const auto& use) { each_interval(node, use); }))
    return *meet;
  struct Interval {
    std::int64_t low;
    std::int64_t high;
  };
  std::vector<Interval> intervals;
  intervals.reserve(node.offsets.size());
  each_interval(node, [&](std::int64_t at, std::int64_t length) { intervals.push_back({at, at + length}); });
  std::ranges::sort(intervals, {}, &Interval::low);
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    if (intervals[i].low < intervals[i - 1].high) return true;
  }
  return false;
}

// Entries whose bounding intervals are disjoint do not meet; whether they overlap is then up to each.
std::optional<bool> decide_entries(const Node& node) {
  // an interval is a run, without gaps
  const bool solid = node.kind == NodeKind::blocks || (node.kind == NodeKind::list && node.leaf);
  const bool meet = intervals_meet(node);
  if (solid) return meet;
  if (meet && node.runs <= kSortLimit) return std::nullopt;
  bool each_decided = !meet;
  for (const auto& child : node.children) {
    const std::optional<bool> inner = decide(*child);
    if (inner.value_or(false)) return true;
    each_decided = each_decided && inner.has_value();
  }
  return each_decided ? std::optional<bool>(false) : std::nullopt;
}

std::optional<bool> decide(const Node& node) {
  if (node.size > node.high - node.low) return true;  // more bytes than places for them
  if (node.loops) {
    if (const std::optional<bool> answer = decide_nest(*node.loops)) return answer;
  }
  switch (node.kind) {
    case NodeKind::run: return false;
    case NodeKind::loop: return decide_nest(node);
    default: return decide_entries(node);
  }
}

// Calls use(offset, length) for each run.
void each_run(const Layout& layout, const auto& use) {
  for (Cursor cursor(layout); !cursor.done();) {
    const Strip strip = cursor.next(kMaxBytes);
    for (std::int64_t i = 0; i < strip.count; ++i) {
      const Run run = strip.run(i);
      use(run.offset, run.length);
    }
  }
}

bool runs_meet(const Layout& layout) {
  const std::int64_t low = layout.true_lower_bound();
  const auto each = [&](const auto& use) { each_run(layout, use); };
  if (const std::optional<bool> meet = marks_meet(layout.run_count(), low, low + layout.true_extent(), each)) return *meet;
  std::vector<Run> runs;
  runs.reserve(static_cast<std::size_t>(layout.run_count()));
  each_run(layout, [&](std::int64_t at, std::int64_t length) { runs.push_back({at, length}); });
  std::ranges::sort(runs);
  for (std::size_t i = 1; i < runs.size(); ++i) {
    if (runs[i].offset < runs[i - 1].offset + runs[i - 1].length) return true;
  }
  return false;
}

}  // namespace

Result<bool> Layout::overlaps() const {
  if (const signed char known = state_->overlaps.load(std::memory_order_relaxed); known >= 0) return known == 1;
  std::optional<bool> answer = state_->root ? decide(*state_->root) : false;
  if (!answer && run_count() > kSortLimit) {
    return base::fail(base::Code::limit,
                      fmt::format("cannot tell whether this layout of {} runs overlaps itself; it is decided by sorting up to {} runs",
                                  run_count(), kSortLimit));
  }
  if (!answer) answer = runs_meet(*this);
  state_->overlaps.store(*answer ? 1 : 0, std::memory_order_relaxed);
  return *answer;
}

}  // namespace lacuna::layout
