// Making a plan: which part of the canonical form becomes which step.
#include "lacuna/copy/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <optional>

namespace lacuna::copy {
namespace {

using layout::Kind;
using layout::Node;

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kHot = 16 << 10;      // bytes of both sides that may be under way at once: half of a small L1 cache
constexpr std::size_t kMostWovenRuns = 32;   // members of a struct that are woven
constexpr std::int64_t kFewestEntries = 8;   // and the entries that pay for it
constexpr std::int64_t kFewestCrossed = 32;  // blocks of a row, each on a line of its own, before the line is wanted again

std::optional<std::vector<std::int32_t>> in_32_bits(const std::vector<std::int64_t>& offsets) {
  const auto [least, most] = std::ranges::minmax(offsets);
  if (least < std::numeric_limits<std::int32_t>::min() || most > std::numeric_limits<std::int32_t>::max()) return std::nullopt;
  std::vector<std::int32_t> narrow(offsets.size());
  std::ranges::transform(offsets, narrow.begin(), [](std::int64_t offset) { return static_cast<std::int32_t>(offset); });
  return narrow;
}

// The kernels of a move between `scattered` and a stream in which the blocks are `dense_stride` apart.
void choose(Step::Moved& moved, Access access, std::int64_t dense_stride) {
  const bool dense = dense_stride == moved.length;
  moved.narrow = access == Access::list32;
  const std::int64_t stride = std::abs(moved.scattered.stride);
  const bool crossed = access == Access::stride && moved.rows > 1 && moved.length < kLine && stride >= kLine &&
                       std::abs(moved.scattered.outer) < kLine && moved.count >= kFewestCrossed;
  const Shape pack{.from = access, .length = moved.length, .to_dense = dense, .crossed = crossed};
  const Shape unpack{.to = access, .length = moved.length, .from_dense = dense, .crossed = crossed};
  moved.pack = kernel_for(pack);
  moved.unpack = kernel_for(unpack);
  const auto streamed = [](Shape shape) {
    shape.stream = true;
    return kernel_for(shape);
  };
  moved.pack_stream = streamed(pack);
  moved.unpack_stream = streamed(unpack);
}

Access list_of(Step& step, const Node& node, Side& side) {
  if (std::optional<std::vector<std::int32_t>> narrow = in_32_bits(node.offsets)) {
    step.offsets32 = std::move(*narrow);
    side.offsets = step.offsets32.data();  // a vector's memory stays where it is when the step moves
    return Access::list32;
  }
  side.offsets = node.offsets.data();
  return Access::list64;
}

struct Place {
  std::int64_t offset;
  std::int64_t length;
};

// The runs of a node in order; false if there are more than a few.
bool few_runs(const Node& node, std::int64_t at, std::vector<Place>& runs) {
  if (runs.size() + static_cast<std::size_t>(node.runs) > kMostWovenRuns) return false;
  if (node.kind == Kind::run) {
    runs.push_back({at, node.size});
    return true;
  }
  if (node.kind == Kind::blocks) {
    for (std::size_t i = 0; i < node.offsets.size(); ++i) runs.push_back({at + node.offsets[i], node.starts[i + 1] - node.starts[i]});
    return true;
  }
  for (std::int64_t i = 0; i < node.entries(); ++i) {
    if (!few_runs(*node.child(i), at + node.offset(i), runs)) return false;
  }
  return true;
}

Step step_of(const Node& node);

// Many entries of few runs: how many entries at a time, or 0 if weaving does not pay.
std::int64_t woven_chunk(const Node& node) {
  const Node& child = *node.children[0];
  if (child.runs > static_cast<std::int64_t>(kMostWovenRuns) || node.entries() < kFewestEntries) return 0;
  const std::int64_t touched = std::min(child.high - child.low + kLine, child.runs * 2 * kLine + child.size) + child.size;
  const std::int64_t chunk = kHot / touched;
  return chunk < kFewestEntries ? 0 : std::min(chunk, node.entries());
}

Step woven(const Node& node, std::int64_t chunk) {
  Step step{.kind = Step::Kind::woven};
  const Node& child = *node.children[0];
  Side side;
  Access access = Access::stride;
  if (node.kind == Kind::loop) {
    side.stride = node.stride;
  } else {
    access = list_of(step, node, side);
  }
  std::vector<Place> runs;
  few_runs(child, 0, runs);
  std::int64_t start = 0;
  for (const Place& run : runs) {
    step.run_offsets.push_back(run.offset);
    step.run_starts.push_back(start);
    start += run.length;
    Step::Moved moved{.length = run.length, .count = chunk, .scattered = side};
    choose(moved, access, child.size);
    step.run_moves.push_back(moved);
  }
  step.children.push_back(step_of(child));
  return step;
}

Step loop_step(const Node& node) {
  const Node& child = *node.children[0];
  if (child.kind == Kind::run) {
    Step step{.kind = Step::Kind::nest};
    step.moved = {.length = child.size, .count = node.count, .scattered = {.stride = node.stride}};
    choose(step.moved, Access::stride, child.size);
    return step;
  }
  if (child.kind == Kind::loop && child.children[0]->kind == Kind::run) {
    Step step{.kind = Step::Kind::nest};
    step.moved = {.length = child.children[0]->size,
                  .count = child.count,
                  .rows = node.count,
                  .scattered = {.stride = child.stride, .outer = node.stride}};
    choose(step.moved, Access::stride, child.children[0]->size);
    return step;
  }
  if (const std::int64_t chunk = woven_chunk(node); chunk > 0) return woven(node, chunk);
  Step step{.kind = Step::Kind::repeat};
  step.children.push_back(step_of(child));
  return step;
}

Step list_step(const Node& node) {
  const Node& child = *node.children[0];
  if (child.kind == Kind::run) {
    Step step{.kind = Step::Kind::list};
    step.moved = {.length = child.size, .count = node.entries()};
    choose(step.moved, list_of(step, node, step.moved.scattered), child.size);
    return step;
  }
  if (const std::int64_t chunk = woven_chunk(node); chunk > 0) return woven(node, chunk);
  Step step{.kind = Step::Kind::repeat};
  step.children.push_back(step_of(child));
  return step;
}

Step step_of(const Node& node) {
  Step step;
  switch (node.kind) {
    case Kind::run: break;
    case Kind::loop: step = loop_step(node); break;
    case Kind::list: step = list_step(node); break;
    case Kind::blocks:
      step.kind = Step::Kind::blocks;
      step.irregular = irregular_kernel();
      break;
    case Kind::sequence:
      step.kind = Step::Kind::sequence;
      step.children.reserve(node.children.size());
      for (const auto& child : node.children) step.children.push_back(step_of(*child));
      break;
  }
  step.node = &node;
  step.size = node.size;
  return step;
}

std::string moved_text(const Step::Moved& moved) {
  const std::string how = std::string_view(moved.pack.name) == moved.unpack.name
                              ? moved.pack.name
                              : fmt::format("{} (unpack: {})", moved.pack.name, moved.unpack.name);
  const bool streams = moved.pack_stream.run != moved.pack.run;
  return fmt::format("blocks of {} B: {}{}", moved.length, how, streams ? ", streaming stores where the destination is cold" : "");
}

void describe(const Step& step, int indent, std::string& text) {
  const std::string margin(static_cast<std::size_t>(indent) * 2, ' ');
  const Step::Moved& m = step.moved;
  switch (step.kind) {
    case Step::Kind::run: text += fmt::format("{}one block of {} B\n", margin, step.size); return;
    case Step::Kind::nest: text += fmt::format("{}strided, {} x {}, {}\n", margin, m.rows, m.count, moved_text(m)); return;
    case Step::Kind::list:
      text += fmt::format("{}indexed by {} bits, {} x, {}\n", margin, step.offsets32.empty() ? 64 : 32, m.count, moved_text(m));
      return;
    case Step::Kind::blocks:
      text += fmt::format("{}{} blocks of various lengths, {}\n", margin, step.node->entries(), step.irregular.name);
      return;
    case Step::Kind::woven:
      text += fmt::format("{}{} entries, {} at a time, member by member:\n", margin, step.node->entries(), step.run_moves.front().count);
      for (const Step::Moved& member : step.run_moves) text += fmt::format("{}  {}\n", margin, moved_text(member));
      return;
    case Step::Kind::repeat: text += fmt::format("{}{} times:\n", margin, step.node->entries()); break;
    case Step::Kind::sequence: text += fmt::format("{}one after another, {} parts:\n", margin, step.children.size()); break;
  }
  constexpr std::size_t shown = 16;
  for (std::size_t i = 0; i < std::min(shown, step.children.size()); ++i) describe(step.children[i], indent + 1, text);
  if (step.children.size() > shown) text += fmt::format("{}  ... {} parts in all\n", margin, step.children.size());
}

bool streams(const Step& step) {
  if (step.kind == Step::Kind::run) return true;
  if (step.moved.pack_stream.run != step.moved.pack.run || step.moved.unpack_stream.run != step.moved.unpack.run) return true;
  return std::ranges::any_of(step.children, streams);
}

}  // namespace

Plan::Plan(const layout::Layout& layout) : root_(step_of(*layout.form())), at_(layout.form_offset()), streams_(streams(root_)) {}

const Plan& Plan::make(const layout::Layout& layout) {
  return static_cast<const Plan&>(*layout.keep(std::make_unique<const Plan>(layout)));
}

std::string Plan::describe() const {
  std::string text;
  copy::describe(root_, 0, text);
  return text;
}

}  // namespace lacuna::copy
