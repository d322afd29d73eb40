// Making a plan: which part of the canonical form becomes which step.
#include "lacuna/copy/plan.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>

#include "lacuna/copy/long_blocks.hpp"

namespace lacuna::copy {
namespace {

using layout::Node;
using layout::NodeKind;
using Index = std::int64_t;
using Places = std::vector<WindowRun>;

constexpr Index kHot = 16 << 10;        // bytes of both sides that may be under way at once: half of a small L1 cache
constexpr Index kMostMembers = 32;      // runs of a struct that are woven
constexpr Index kFewestEntries = 8;     // structs that pay for it
constexpr Index kMostPieces = 1 << 20;  // entries of lists and masks that a plan makes up

// What a piece costs in a cache, in ns, on an EPYC of 2022. Only their proportions matter: they decide between ways
// that are right in any case.
constexpr double kMaskNs = 2.4;
constexpr double kBlockNs = 0.4;
constexpr double kIrregularNs = 1.5;
constexpr double kStepNs = 15;

bool fits_32(Index offset) {
  return offset >= std::numeric_limits<std::int32_t>::min() && offset <= std::numeric_limits<std::int32_t>::max();
}

Spots spots_of(const Node& node) {
  if (node.kind == NodeKind::loop) return {.stride = node.stride};
  // Of offsets that all fit, or of their complements where they are negative, no bit is set beyond the 31st.
  Index bits = 0;
  for (const Index offset : node.offsets) bits |= offset ^ offset >> 63;
  if (!fits_32(bits)) return {.access = Access::list64, .wide = node.offsets.data()};
  Spots spots{.access = Access::list32};
  spots.narrow.resize(node.offsets.size());
  std::ranges::transform(node.offsets, spots.narrow.begin(), [](Index offset) { return static_cast<std::int32_t>(offset); });
  return spots;
}

// The kernels of blocks at some spots, of which the packed ones are `dense_stride` apart. `repeats`: all are one.
Moved moved_by(Index length, const Spots& spots, Index dense_stride, bool repeats = false) {
  const bool dense = dense_stride == length;
  const bool apart = std::abs(spots.stride) >= kLine;
  Shape pack{.from = spots.access, .length = length, .to_dense = dense, .apart = apart, .repeats = repeats};
  Shape unpack{.to = spots.access, .length = length, .from_dense = dense, .apart = apart};
  Moved moved{.length = length, .pack = kernel_for(pack), .unpack = kernel_for(unpack)};
  pack.stream = unpack.stream = true;
  moved.pack_stream = kernel_for(pack);
  moved.unpack_stream = kernel_for(unpack);
  return moved;
}

// --- runs, one by one ------------------------------------------------------------------------------------------------

// Calls visit(offset, length) for each run in order; false as soon as that says so.
template <class Visit>
bool each_run(const Node& node, Index at, Visit& visit) {
  if (node.kind == NodeKind::run) return visit(at, node.size);
  if (node.kind == NodeKind::blocks) {
    for (std::size_t i = 0; i < node.offsets.size(); ++i) {
      if (!visit(at + node.offsets[i], node.starts[i + 1] - node.starts[i])) return false;
    }
    return true;
  }
  for (Index i = 0; i < node.entries(); ++i) {
    if (!each_run(*node.child(i), at + node.offset(i), visit)) return false;
  }
  return true;
}

Places runs_of(const Node& node) {
  Places runs;
  auto add = [&](Index at, Index length) {
    runs.push_back({at, length});
    return true;
  };
  each_run(node, 0, add);
  return runs;
}

// --- entries of a few runs -------------------------------------------------------------------------------------------

// Entries at a time that leave both sides in the cache; 0 if so few that weaving does not pay.
Index woven_chunk(const Places& runs, Index size, Index entries) {
  Index low = 0;
  Index high = 0;
  for (const WindowRun& run : runs) {
    low = std::min(low, run.offset);
    high = std::max(high, run.offset + run.length);
  }
  const Index lines = std::min(high - low + kLine, std::ssize(runs) * 2 * kLine + size);
  const Index chunk = kHot / (lines + size);
  return entries < kFewestEntries || chunk < kFewestEntries ? 0 : std::min(chunk, entries);
}

std::unique_ptr<Pattern> kept(const std::optional<Pattern>& pattern) { return pattern ? std::make_unique<Pattern>(*pattern) : nullptr; }

constexpr std::size_t kFewMembers = 3;

std::optional<Step> woven(Spots spots, const Places& runs, Index entries) {
  Index size = 0;
  for (const WindowRun& run : runs) size += run.length;
  Step step{.kind = Step::Kind::woven, .count = entries, .chunk = woven_chunk(runs, size, entries)};
  if (step.chunk == 0) return std::nullopt;
  for (Index start = 0; const WindowRun& run : runs) {
    step.members.push_back({run, start, moved_by(run.length, spots, size)});
    start += run.length;
  }
  step.windows = window_kernels();
  if (step.windows != nullptr && spots.access != Access::list64) step.pattern = kept(pattern_of(runs, spots.stride, entries));
  // At the places of a list a masked store of 64 bytes to a cache takes 2 ns, three words 0.7; to memory 5 and 7.
  const bool few = step.members.size() <= kFewMembers;
  step.unpacks_windows = !few || !step.pattern || spots.access == Access::stride || step.pattern->width <= 32;
  step.spots = std::move(spots);
  return step;
}

// --- runs of various lengths -----------------------------------------------------------------------------------------

// Blocks that repeat the same few lengths and steps between them: a list of structs, whose places have no order.
std::optional<Step> struct_list(const Node& blocks) {
  const Index n = blocks.runs;
  const auto length = [&](Index i) { return blocks.starts[static_cast<std::size_t>(i) + 1] - blocks.starts[static_cast<std::size_t>(i)]; };
  for (Index period = 2; period <= std::min<Index>(8, n / kFewestEntries); ++period) {
    if (n % period != 0) continue;
    bool same = true;
    for (Index i = period; same && i < n; ++i) {
      same = length(i) == length(i - period) &&
             (i % period == 0 || blocks.offset(i) - blocks.offset(i - 1) == blocks.offset(i - period) - blocks.offset(i - period - 1));
    }
    if (!same) continue;
    Spots spots{.access = Access::list32};
    for (Index i = 0; i < n; i += period) {
      if (!fits_32(blocks.offset(i))) return std::nullopt;
      spots.narrow.push_back(static_cast<std::int32_t>(blocks.offset(i)));
    }
    Places runs;
    for (Index i = 0; i < period; ++i) runs.push_back({blocks.offset(i) - blocks.offset(0), length(i)});
    return woven(std::move(spots), runs, n / period);
  }
  return std::nullopt;
}

// All runs cut into blocks of the one length that divides them.
std::optional<Step> granules(const Node& node, Index granule) {
  Step step{.kind = Step::Kind::list, .count = node.size / granule};
  step.spots.access = Access::list32;
  step.spots.narrow.reserve(static_cast<std::size_t>(step.count));
  auto cut = [&](Index at, Index length) {
    if (!fits_32(at) || !fits_32(at + length)) return false;
    for (Index end = at + length; at < end; at += granule) step.spots.narrow.push_back(static_cast<std::int32_t>(at));
    return true;
  };
  if (!each_run(node, 0, cut)) return std::nullopt;
  step.moved = moved_by(granule, step.spots, granule);
  return step;
}

std::optional<Step> masked(const Node& node) {
  Step step{.kind = Step::Kind::masked, .windows = window_kernels()};
  if (step.windows == nullptr) return std::nullopt;
  auto add = [&](Index at, Index length) { return step.masks.add(at, length); };
  if (!each_run(node, 0, add)) return std::nullopt;
  return step;
}

// Whether the first few runs say that masks might cost less than `otherwise`: a commit is not to take longer than it
// must.
bool masks_pay(const Node& node, double otherwise) {
  constexpr Index sample = 256;
  if (node.runs <= 4 * sample) return true;
  Masks masks;
  Index seen = 0;
  auto add = [&](Index at, Index length) { return masks.add(at, length) && ++seen < sample; };
  each_run(node, 0, add);
  return static_cast<double>(masks.windows()) * kMaskNs * static_cast<double>(node.runs) < 1.25 * otherwise * static_cast<double>(sample);
}

// Short runs in whatever order, by masks or cut into equal blocks, if that costs less than `otherwise`.
std::optional<Step> short_runs(const Node& node, double otherwise) {
  if (node.runs > kMostPieces || node.size / node.runs >= 2 * kLine) return std::nullopt;
  Index granule = 0;
  auto divide = [&](Index, Index length) {
    if (granule == 0 || length % granule != 0) granule = std::gcd(granule, length);
    return granule > 1;
  };
  each_run(node, 0, divide);
  const Index pieces = node.size / granule;
  const double in_granules = static_cast<double>(pieces) * kBlockNs;
  if (std::optional<Step> step = masks_pay(node, otherwise) ? masked(node) : std::nullopt) {
    const double in_windows = static_cast<double>(step->masks.windows()) * kMaskNs;
    if (in_windows < otherwise && in_windows < in_granules) return step;
  }
  if (in_granules < otherwise && pieces <= kMostPieces) return granules(node, granule);
  return std::nullopt;
}

// What the lists and blocks of a sequence cost one by one; nothing if it has other parts.
std::optional<double> cost_of_lists(const std::vector<Step>& steps) {
  double cost = 0;
  for (const Step& step : steps) {
    cost += kStepNs;
    switch (step.kind) {
      case Step::Kind::run: break;
      case Step::Kind::list: cost += static_cast<double>(step.count) * kBlockNs; break;
      case Step::Kind::blocks: cost += static_cast<double>(step.count) * kIrregularNs; break;
      case Step::Kind::masked: cost += static_cast<double>(step.masks.windows()) * kMaskNs; break;
      default: return std::nullopt;
    }
  }
  return cost;
}

// --- each kind of node -----------------------------------------------------------------------------------------------

Step step_of(const Node& node);

// Small ones are in the L1 cache whatever the order, and soon done.
std::optional<Step> crossed_step(const Node& node) {
  constexpr Index kFewestBytes = 512;
  if (node.size < kFewestBytes) return std::nullopt;
  const std::optional<Nest> nest = packing_nest(node);
  if (!nest || !is_crossed(*nest)) return std::nullopt;
  Step step{.kind = Step::Kind::crossed};
  step.packing = std::make_unique<const NestMove>(*nest);
  step.unpacking = std::make_unique<const NestMove>(turned(*nest));
  return step;
}

// Short blocks at short strides, or backwards, of a CPU without windows: lanes of 16 bytes with a permutation each.
std::optional<Step> permuted_step(const Node& node) {
  constexpr Index kLongestBlock = 2, kFewestBytes = 512;
  if (node.size < kFewestBytes || window_kernels() != nullptr) return std::nullopt;
  const std::optional<Nest> nest = packing_nest(node);
  if (!nest || nest->block > kLongestBlock) return std::nullopt;
  auto packing = std::make_unique<const NestMove>(*nest);
  if (!packing->is_permuted()) return std::nullopt;
  Step step{.kind = Step::Kind::crossed};
  step.packing = std::move(packing);
  step.unpacking = std::make_unique<const NestMove>(turned(*nest));
  return step;
}

Step nest_step(const Node& node) {
  const bool two = node.children[0]->kind == NodeKind::loop;
  const Node& inner = two ? *node.children[0] : node;
  const Index length = inner.children[0]->size;
  Step step{.kind = Step::Kind::nest, .count = inner.count, .rows = two ? node.count : 1, .outer = two ? node.stride : 0};
  step.spots.stride = inner.stride;
  step.moved = moved_by(length, step.spots, length, inner.stride == 0);
  step.windows = window_kernels();
  if (step.windows != nullptr) {
    step.pattern = kept(pattern_of(std::vector{WindowRun{0, length}}, inner.stride, inner.count));
    if (step.pattern && step.pattern->entries < 2) step.pattern.reset();
    // To pack, blocks of 8 bytes and more are as fast one by one once their lines come from beyond the first cache; to
    // unpack, never.
    step.packs_windows = length < 8 || node.high - node.low <= 2 * kHot;
  }
  return step;
}

Step repeat_step(const Node& node) {
  Step step{.kind = Step::Kind::repeat, .count = node.entries(), .spots = spots_of(node)};
  step.children.push_back(step_of(*node.children[0]));
  return step;
}

Step loop_step(const Node& node) {
  if (std::optional<Step> step = crossed_step(node)) return std::move(*step);
  const Node& child = *node.children[0];
  const bool nest = child.kind == NodeKind::run || (child.kind == NodeKind::loop && child.children[0]->kind == NodeKind::run);
  const bool short_rows = child.kind == NodeKind::loop && child.count < kFewestEntries && child.high - child.low <= kLine;
  if (nest) {
    if (std::optional<Step> step = permuted_step(node)) return std::move(*step);
  }
  if (nest && !short_rows) return nest_step(node);
  if (child.runs <= kMostMembers) {
    if (std::optional<Step> step = woven(spots_of(node), runs_of(child), node.count)) return std::move(*step);
  }
  return nest ? nest_step(node) : repeat_step(node);
}

Step list_step(const Node& node) {
  const Node& child = *node.children[0];
  if (child.kind == NodeKind::run) {
    if (child.size < 16) {
      if (std::optional<Step> step = short_runs(node, static_cast<double>(node.runs) * kBlockNs)) return std::move(*step);
    }
    Step step{.kind = Step::Kind::list, .count = node.entries(), .spots = spots_of(node)};
    step.moved = moved_by(child.size, step.spots, child.size);
    return step;
  }
  if (child.runs <= kMostMembers) {
    if (std::optional<Step> step = woven(spots_of(node), runs_of(child), node.entries())) return std::move(*step);
  }
  return repeat_step(node);
}

Step blocks_step(const Node& node) {
  if (std::optional<Step> step = struct_list(node)) return std::move(*step);
  if (std::optional<Step> step = short_runs(node, static_cast<double>(node.runs) * kIrregularNs)) return std::move(*step);
  return {.kind = Step::Kind::blocks, .count = node.runs, .irregular = irregular_kernel()};
}

// The loop of a part that steps from struct to struct, in the nest that packs it; nothing if the part is not a field,
// or a few of one size.
std::optional<std::size_t> loop_of_structs(const Step& part, const Structs& structs) {
  if (part.kind == Step::Kind::nest && part.rows == 1 && part.count == structs.count && part.spots.stride == structs.stride) return 0;
  if (part.kind != Step::Kind::crossed) return std::nullopt;
  const Nest& nest = part.packing->nest();
  for (std::size_t i = 0; i < nest.depth; ++i) {
    if (nest.loops[i].count == structs.count && nest.loops[i].from == structs.stride) return i;
  }
  return std::nullopt;
}

CrossedFields some_fields(const Step& step, std::size_t part, std::size_t along, Index count) {
  Nest nest = step.packing->nest();
  nest.loops[along].count = count;
  return {.part = part, .along = along, .packing = NestMove(nest), .unpacking = NestMove(turned(nest))};
}

// All fields of some structs at a time: their lines are read once, not once for each field. None where they stay in a
// cache.
Structs structs_of(const std::vector<Step>& parts) {
  constexpr Index kManyBytes = 512 << 10;
  constexpr Index kAtATime = 16 << 10;
  Structs structs;
  for (const Step& part : parts) {
    if (part.kind == Step::Kind::nest) structs = {.count = part.count, .stride = part.spots.stride};
  }
  if (parts.size() < 2 || structs.count == 0 || std::abs(structs.stride) > 4 * kLine ||
      structs.count * std::abs(structs.stride) < kManyBytes)
    return {};
  const Index batch = kAtATime / std::abs(structs.stride);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::optional<std::size_t> along = loop_of_structs(parts[i], structs);
    if (!along) return {};
    if (parts[i].kind == Step::Kind::crossed) structs.crossed.push_back(some_fields(parts[i], i, *along, batch));
  }
  structs.batch = batch;
  return structs;
}

// A sorted list of short blocks comes as many lists and blocks: one is better. Only where no part is a sequence again:
// each run is looked at once, however deep a peer's layout nests.
Step sequence_step(const Node& node) {
  const auto is = [](NodeKind kind) { return [kind](const auto& child) { return child->kind == kind; }; };
  if (std::ranges::all_of(node.children, is(NodeKind::run)))
    return {.kind = Step::Kind::blocks, .count = node.runs, .irregular = irregular_kernel()};
  Step step{.kind = Step::Kind::sequence, .count = std::ssize(node.children)};
  step.children.reserve(node.children.size());
  for (const auto& child : node.children) step.children.push_back(step_of(*child));
  step.structs = structs_of(step.children);
  if (std::ranges::any_of(node.children, is(NodeKind::sequence))) return step;
  if (const std::optional<double> cost = cost_of_lists(step.children)) {
    if (std::optional<Step> one = short_runs(node, *cost)) return std::move(*one);
  }
  return step;
}

const Node& innermost(const Node& loops) {
  const Node* node = &loops;
  while (node->children[0]->kind == NodeKind::loop) node = node->children[0].get();
  return *node;
}

// Loops whose rows touch are merged in the form, which has a part for the end of each row: as loops they are one
// kernel's.
Step step_of(const Node& node) {
  if (node.loops) {
    std::optional<Step> step = crossed_step(*node.loops);
    if (!step && innermost(*node.loops).count >= kFewestEntries) step = loop_step(*node.loops);
    if (step) {
      step->node = node.loops.get();
      step->size = node.size;
      return std::move(*step);
    }
  }
  Step step;
  switch (node.kind) {
    case NodeKind::run: break;
    case NodeKind::loop: step = loop_step(node); break;
    case NodeKind::list: step = list_step(node); break;
    case NodeKind::blocks: step = blocks_step(node); break;
    case NodeKind::sequence: step = sequence_step(node); break;
  }
  step.node = &node;
  step.size = node.size;
  return step;
}

bool streams(const Step& step) {
  if (step.kind == Step::Kind::run || step.kind == Step::Kind::crossed || step.pattern) return true;
  if (step.moved.pack_stream.run != step.moved.pack.run || step.moved.unpack_stream.run != step.moved.unpack.run) return true;
  return std::ranges::any_of(step.children, streams);
}

// Whether stores may pass the caches by. A block that is cut is copied by itself, and may do so if it is long.
template <Kernel Moved::* way>
bool leaves(const Step& step) {
  const auto by = [](const Moved& moved) { return (moved.*way).streams || moved.length >= LongBlocks::kLeast; };
  return step.kind == Step::Kind::run || step.kind == Step::Kind::blocks || step.kind == Step::Kind::crossed || by(step.moved) ||
         std::ranges::any_of(step.members, by, &Member::moved) || std::ranges::any_of(step.children, leaves<way>);
}

}  // namespace

CopyPlan::CopyPlan(const layout::Layout& layout)
    : root_(step_of(*layout.form())),
      at_(layout.form_offset()),
      streams_(streams(root_)),
      packing_leaves_(leaves<&Moved::pack_stream>(root_)),
      unpacking_leaves_(leaves<&Moved::unpack_stream>(root_)) {}

std::shared_ptr<const NestMove> CopyPlan::from(const layout::Layout& src, const layout::Layout& dst) const {
  const std::scoped_lock lock(last_mutex_);
  if (last_ && last_->digest == src.digest()) return last_->move;
  try {
    const std::optional<Nest> nest = zip(*src.form(), *dst.form());
    last_ = Source{src.digest(), nest ? std::make_shared<const NestMove>(*nest) : nullptr};
    return last_->move;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

const CopyPlan& CopyPlan::make(const layout::Layout& layout) {
  return static_cast<const CopyPlan&>(*layout.keep(std::make_unique<const CopyPlan>(layout)));
}

}  // namespace lacuna::copy
