// A stretch of the packed stream as a layout of its own: on its way down the form, what lies whole within the stretch
// stays as it is, and at most two entries of a level are cut. So a part of a loop is a loop, however many runs it has.
#include <fmt/format.h>

#include <algorithm>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

// Runs that are looked through for the form they would have alone: a few microseconds.
constexpr std::int64_t kFew = 64;

Item placed(std::int64_t at, const NodePtr& node) { return {at, node->size, node->kind == NodeKind::run ? nullptr : node}; }

std::int64_t start_of(const Node& node, std::int64_t i) {
  return node.starts.empty() ? i * node.children[0]->size : node.starts[static_cast<std::size_t>(i)];
}

// The entry that holds byte `position` < size.
std::int64_t entry_at(const Node& node, std::int64_t position) {
  if (node.starts.empty()) return position / node.children[0]->size;
  return std::ranges::upper_bound(node.starts, position) - node.starts.begin() - 1;
}

Item listed(std::vector<std::int64_t> offsets, const Item& each) {
  const std::int64_t origin = offsets.front();
  for (std::int64_t& offset : offsets) offset -= origin;
  return placed(origin, make_list(std::move(offsets), each));
}

// Entries [from, to) of a node of which each is its child, or a run.
Result<Item> entries(const Node& node, std::int64_t at, std::int64_t from, std::int64_t to) {
  if (node.kind == NodeKind::loop) return repeat(placed(at + node.offset(from), node.children[0]), to - from, node.stride);
  std::vector<std::int64_t> offsets(node.offsets.begin() + from, node.offsets.begin() + to);
  for (std::int64_t& offset : offsets) offset += at;
  if (node.kind == NodeKind::blocks || node.children[0]->kind == NodeKind::run) {
    if (to - from <= kFew) {
      std::vector<std::int64_t> lengths(offsets.size());
      for (std::int64_t i = from; i < to; ++i) lengths[static_cast<std::size_t>(i - from)] = start_of(node, i + 1) - start_of(node, i);
      return join_runs(std::move(offsets), std::move(lengths));
    }
    if (node.kind == NodeKind::list) return listed(std::move(offsets), placed(0, node.children[0]));
    std::vector<std::int64_t> starts(node.starts.begin() + from, node.starts.begin() + to + 1);
    for (std::int64_t& start : starts) start -= start_of(node, from);
    const std::int64_t origin = offsets.front();
    for (std::int64_t& offset : offsets) offset -= origin;
    return placed(origin, make_blocks(std::move(offsets), std::move(starts)));
  }
  if (to - from == 1) return placed(offsets.front(), node.children[0]);
  return listed(std::move(offsets), placed(0, node.children[0]));
}

Result<void> cut(const NodePtr& node, std::int64_t at, std::int64_t from, std::int64_t to, std::vector<Item>& items) {
  if (from == 0 && to == node->size) {
    items.push_back(placed(at, node));
    return {};
  }
  if (node->kind == NodeKind::run) {
    items.push_back({at + from, to - from, nullptr});
    return {};
  }
  // Of one entry, or of a sequence's one by one.
  const auto within = [&](std::int64_t i) -> Result<void> {
    const std::int64_t start = start_of(*node, i);
    const std::int64_t low = std::max(from, start) - start;
    const std::int64_t high = std::min(to, start_of(*node, i + 1)) - start;
    if (node->kind == NodeKind::blocks) {
      items.push_back({at + node->offset(i) + low, high - low, nullptr});
      return {};
    }
    return cut(node->child(i), at + node->offset(i), low, high, items);
  };
  const std::int64_t first = entry_at(*node, from);
  const std::int64_t last = entry_at(*node, to - 1);
  if (node->kind == NodeKind::sequence) {
    for (std::int64_t i = first; i <= last; ++i) LACUNA_TRY(within(i));
    return {};
  }
  const std::int64_t whole_from = from == start_of(*node, first) ? first : first + 1;
  const std::int64_t whole_to = to == start_of(*node, last + 1) ? last + 1 : last;
  if (whole_from > first) LACUNA_TRY(within(first));
  if (whole_from < whole_to) items.push_back(LACUNA_TRY(entries(*node, at, whole_from, whole_to)));
  if (whole_to <= last && (whole_from == first || last > first)) LACUNA_TRY(within(last));
  return {};
}

}  // namespace

Result<Layout> Layout::slice(std::int64_t position, std::int64_t length) const {
  if (position < 0 || length < 0 || position > size() - length)
    return base::fail(base::Code::invalid_argument, fmt::format("bytes {} to {} of a layout of {}", position, position + length, size()));
  if (length == 0) return Layout();
  std::vector<Item> items;
  LACUNA_TRY(cut(state_->root, state_->at, position, position + length, items));
  Item item = LACUNA_TRY(join(std::move(items), kFew));
  const bool few = !item.node || item.node->runs <= kFew;
  if (item.node && few) item = spelled_out(item);
  return Access::make(&item, item.low(), item.high(), false, state_->kept && !few);
}

}  // namespace lacuna::layout
