// Nodes: their derived values, digests, and text.
#include <fmt/format.h>

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

// Digest of a node: its own numbers, its lists, and its children's digests. The size of a run is in `size`.
Digest digest_of(const Node& node) {
  XXH3_state_t state;
  XXH3_128bits_reset(&state);
  const std::int64_t own[] = {static_cast<std::int64_t>(node.kind), node.size, node.count, node.stride,
                              static_cast<std::int64_t>(node.offsets.size())};
  XXH3_128bits_update(&state, own, sizeof own);
  XXH3_128bits_update(&state, node.offsets.data(), node.offsets.size() * sizeof(std::int64_t));
  XXH3_128bits_update(&state, node.starts.data(), node.starts.size() * sizeof(std::int64_t));
  for (const NodePtr& child : node.children) XXH3_128bits_update(&state, &child->digest, sizeof child->digest);
  const XXH128_hash_t hash = XXH3_128bits_digest(&state);
  return {hash.low64, hash.high64};
}

NodePtr finish(Node node) {
  node.digest = digest_of(node);
  return std::make_shared<const Node>(std::move(node));
}

// Bounds of a child placed at several offsets, of which the first is 0.
void bound(Node& node, const Node& child, std::int64_t lowest, std::int64_t highest, std::int64_t last) {
  node.low = lowest + child.low;
  node.high = highest + child.high;
  node.tail = last + child.tail;
  node.depth = child.depth + 1;
  node.leaf = child.kind == NodeKind::run;
}

}  // namespace

NodePtr node_of(const Item& item) { return item.node ? item.node : make_run(item.length); }

NodePtr make_run(std::int64_t length) {
  Node node;
  node.size = node.high = node.tail = length;
  return finish(std::move(node));
}

NodePtr make_loop(const Item& item, std::int64_t count, std::int64_t stride) {
  Node node;
  NodePtr child = node_of(item);
  node.kind = NodeKind::loop;
  node.size = child->size * count;
  node.runs = child->runs * count;
  node.count = count;
  node.stride = stride;
  const std::int64_t last = (count - 1) * stride;
  bound(node, *child, std::min<std::int64_t>(0, last), std::max<std::int64_t>(0, last), last);
  node.children.push_back(std::move(child));
  return finish(std::move(node));
}

NodePtr make_list(std::vector<std::int64_t> offsets, const Item& item) {
  Node node;
  NodePtr child = node_of(item);
  const auto entries = static_cast<std::int64_t>(offsets.size());
  node.kind = NodeKind::list;
  node.size = child->size * entries;
  node.runs = child->runs * entries;
  const auto [lowest, highest] = extremes(offsets);
  bound(node, *child, lowest, highest, offsets.back());
  node.offsets = std::move(offsets);
  node.children.push_back(std::move(child));
  return finish(std::move(node));
}

NodePtr make_blocks(std::vector<std::int64_t> offsets, std::vector<std::int64_t> starts) {
  Node node;
  node.kind = NodeKind::blocks;
  node.size = starts.back();
  node.runs = static_cast<std::int64_t>(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t end = offsets[i] + starts[i + 1] - starts[i];
    node.low = std::min(node.low, offsets[i]);
    node.high = i == 0 ? end : std::max(node.high, end);
    node.tail = end;
  }
  node.offsets = std::move(offsets);
  node.starts = std::move(starts);
  return finish(std::move(node));
}

NodePtr make_sequence(const std::vector<Item>& items) {
  Node node;
  node.kind = NodeKind::sequence;
  node.leaf = false;
  node.runs = 0;
  const std::int64_t origin = items.front().at;
  node.starts.push_back(0);
  for (const Item& item : items) {
    NodePtr child = node_of(item);
    const std::int64_t at = item.at - origin;
    node.low = std::min(node.low, at + child->low);
    node.high = node.offsets.empty() ? at + child->high : std::max(node.high, at + child->high);
    node.tail = at + child->tail;
    node.runs += child->runs;
    node.size += child->size;
    node.depth = std::max(node.depth, child->depth + 1);
    node.offsets.push_back(at);
    node.starts.push_back(node.size);
    node.children.push_back(std::move(child));
  }
  return finish(std::move(node));
}

namespace {

void describe(const Node& node, std::string& text) {
  constexpr std::int64_t shown = 4;  // entries of a list that are spelled out
  const auto append_entries = [&](const auto& entry) {
    for (std::int64_t i = 0; i < std::min(shown, node.entries()); ++i) entry(i);
    if (node.entries() > shown) text += fmt::format(", ... {} in all", node.entries());
  };
  const auto comma = [&](std::int64_t i) { text += i == 0 ? "" : ", "; };
  switch (node.kind) {
    case NodeKind::run: text += fmt::format("{} B", node.size); return;
    case NodeKind::loop: text += fmt::format("{} x {:+} B {{ ", node.count, node.stride); break;
    case NodeKind::list:
      text += "at [";
      append_entries([&](std::int64_t i) { comma(i), text += fmt::format("{}", node.offset(i)); });
      text += "] { ";
      break;
    case NodeKind::blocks:
      text += "blocks [";
      append_entries([&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        comma(i), text += fmt::format("{} B at {}", node.starts[at + 1] - node.starts[at], node.offset(i));
      });
      text += "]";
      return;
    case NodeKind::sequence:
      text += "sequence [";
      append_entries([&](std::int64_t i) {
        comma(i), text += fmt::format("at {} ", node.offset(i));
        describe(*node.child(i), text);
      });
      text += "]";
      return;
  }
  describe(*node.children[0], text);
  text += " }";
}

}  // namespace

std::string Layout::describe() const {
  if (!state_->root) return "empty";
  std::string text = state_->at == 0 ? "" : fmt::format("at {}: ", state_->at);
  layout::describe(*state_->root, text);
  return text;
}

}  // namespace lacuna::layout
