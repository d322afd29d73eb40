// The cursor: a path from the root to a leaf, and a place within the leaf.
#include <algorithm>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

struct EntryPosition {
  std::int64_t index;
  std::int64_t within;
};

// The entry of a node that holds byte `position` of its stream, position < size: a division, or a search of prefix
// sums.
EntryPosition locate(const Node& node, std::int64_t position) {
  if (node.kind == NodeKind::run) return {0, position};
  if (!node.starts.empty()) {
    const auto after = std::ranges::upper_bound(node.starts, position);
    const std::int64_t index = after - node.starts.begin() - 1;
    return {index, position - node.starts[static_cast<std::size_t>(index)]};
  }
  const std::int64_t each = node.children[0]->size;
  return {position / each, position % each};
}

std::int64_t run_length(const Node& leaf, std::int64_t index) {
  if (leaf.kind == NodeKind::run) return leaf.size;
  if (leaf.kind != NodeKind::blocks) return leaf.children[0]->size;
  return leaf.starts[static_cast<std::size_t>(index) + 1] - leaf.starts[static_cast<std::size_t>(index)];
}

std::int64_t run_offset(const Node& leaf, std::int64_t index) { return leaf.kind == NodeKind::run ? 0 : leaf.offset(index); }

// How many whole runs of a leaf from `index` on fit into max_bytes.
std::int64_t whole_runs(const Node& leaf, std::int64_t index, std::int64_t max_bytes) {
  if (leaf.kind == NodeKind::run) return max_bytes >= leaf.size ? 1 : 0;
  if (leaf.kind != NodeKind::blocks) return std::min(leaf.entries() - index, max_bytes / leaf.children[0]->size);
  if (leaf.size - leaf.starts[static_cast<std::size_t>(index)] <= max_bytes) return leaf.entries() - index;
  const auto from = leaf.starts.begin() + index;
  return std::upper_bound(from, leaf.starts.end(), *from + max_bytes) - from - 1;
}

}  // namespace

Cursor::Cursor(const Layout& layout) : layout_(layout.state_), size_(layout.size()) { seek(0); }

void Cursor::seek(std::int64_t position) {
  position_ = position;
  frames_.clear();
  if (position < size_) descend(layout_->root.get(), layout_->at, position);
}

void Cursor::descend(const Node* node, std::int64_t base, std::int64_t within) {
  while (!node->leaf) {
    const EntryPosition place = locate(*node, within);
    frames_.push_back({node, base, place.index});
    base += node->offset(place.index);
    within = place.within;
    node = node->child(place.index).get();
  }
  const EntryPosition place = locate(*node, within);
  leaf_ = node;
  leaf_base_ = base;
  leaf_index_ = place.index;
  leaf_within_ = place.within;
}

// The leaf is used up: on to the next one in order.
void Cursor::advance_leaf() {
  while (!frames_.empty()) {
    Frame& frame = frames_.back();
    if (++frame.index < frame.node->entries()) {
      const Frame here = frame;
      return descend(here.node->child(here.index).get(), here.base + here.node->offset(here.index), 0);
    }
    frames_.pop_back();
  }
}

Run Cursor::next_run(std::int64_t max_bytes) {
  if (done()) return {};
  const std::int64_t length = std::min(run_length(*leaf_, leaf_index_) - leaf_within_, max_bytes);
  const Run run{leaf_base_ + run_offset(*leaf_, leaf_index_) + leaf_within_, length};
  position_ += length;
  leaf_within_ += length;
  if (leaf_within_ == run_length(*leaf_, leaf_index_)) {
    leaf_within_ = 0;
    if (++leaf_index_ == (leaf_->kind == NodeKind::run ? 1 : leaf_->entries()) && !done()) advance_leaf();
  }
  return run;
}

Strip Cursor::next(std::int64_t max_bytes) {
  if (done()) return {};
  const std::int64_t count = leaf_within_ == 0 ? whole_runs(*leaf_, leaf_index_, max_bytes) : 0;
  if (count <= 1) {  // a part of a run, or one run
    const Run run = next_run(max_bytes);
    return {.offset = run.offset, .length = run.length, .count = 1};
  }
  Strip strip{.offset = leaf_base_, .length = 0, .count = count};
  if (leaf_->kind == NodeKind::loop) {
    strip.offset += leaf_->offset(leaf_index_);
    strip.stride = leaf_->stride;
  } else {
    strip.offsets = leaf_->offsets.data() + leaf_index_;
  }
  if (leaf_->kind == NodeKind::blocks) {
    strip.starts = leaf_->starts.data() + leaf_index_;
  } else {
    strip.length = leaf_->children[0]->size;
  }
  position_ += strip.bytes();
  leaf_index_ += count;
  if (leaf_index_ == leaf_->entries() && !done()) advance_leaf();
  return strip;
}

}  // namespace lacuna::layout
