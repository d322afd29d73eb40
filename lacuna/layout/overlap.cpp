// Does a layout name some byte twice? By rules on the tree where they decide it, else by sorting the runs.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

constexpr std::int64_t kSortLimit = std::int64_t{1} << 24;  // runs; 256 MB of them

std::optional<bool> decide(const Node& node);

// A nest of loops over one node is a set of sums of multiples of its strides, whatever their order. If, from the smallest
// stride up, each stride clears the span of all that is inside, no two sums come close: no overlap. A transpose's inner
// stride is larger than its outer one, and is decided here.
std::optional<bool> decide_nest(const Node& node) {
  struct Loop {
    std::int64_t stride;
    std::int64_t count;
  };
  std::vector<Loop> loops;
  const Node* body = &node;
  for (; body->kind == Kind::loop; body = body->children[0].get()) loops.push_back({std::abs(body->stride), body->count});
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

// Entries whose bounding intervals are disjoint do not meet; whether they overlap is then up to each.
std::optional<bool> decide_entries(const Node& node) {
  struct Interval {
    std::int64_t low;
    std::int64_t high;
  };
  std::vector<Interval> intervals;
  intervals.reserve(node.offsets.size());
  bool each_decided = true;
  for (std::int64_t i = 0; i < node.entries(); ++i) {
    const std::int64_t at = node.offset(i);
    if (node.kind == Kind::blocks) {
      const auto entry = static_cast<std::size_t>(i);
      intervals.push_back({at, at + node.starts[entry + 1] - node.starts[entry]});
      continue;
    }
    const Node& child = *node.child(i);
    intervals.push_back({at + child.low, at + child.high});
    if (node.kind == Kind::list && i > 0) continue;
    const std::optional<bool> inner = decide(child);
    if (inner.value_or(false)) return true;
    each_decided = each_decided && inner.has_value();
  }
  std::ranges::sort(intervals, {}, &Interval::low);
  for (std::size_t i = 1; i < intervals.size(); ++i) {
    if (intervals[i].low >= intervals[i - 1].high) continue;
    const bool solid = node.kind == Kind::blocks || (node.kind == Kind::list && node.leaf);  // an interval is a run, without gaps
    return solid ? std::optional<bool>(true) : std::nullopt;
  }
  return each_decided ? std::optional<bool>(false) : std::nullopt;
}

std::optional<bool> decide(const Node& node) {
  if (node.size > node.high - node.low) return true;  // more bytes than places for them
  switch (node.kind) {
    case Kind::run: return false;
    case Kind::loop: return decide_nest(node);
    default: return decide_entries(node);
  }
}

bool sorted_runs_meet(const Layout& layout) {
  std::vector<Run> runs;
  runs.reserve(static_cast<std::size_t>(layout.run_count()));
  for (Cursor cursor(layout); !cursor.done();) runs.push_back(cursor.next_run(kMaxBytes));
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
  if (!answer) answer = sorted_runs_meet(*this);
  state_->overlaps.store(*answer ? 1 : 0, std::memory_order_relaxed);
  return *answer;
}

}  // namespace lacuna::layout
