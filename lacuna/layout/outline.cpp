// Outlines. Sums over a form are exact where the form says what repeats; entries that differ are sampled.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "lacuna/layout/layout.hpp"

namespace lacuna::layout {
namespace {

constexpr std::int64_t kEntries = 16;     // of a list of lengths, and of a sequence, that are looked at
constexpr std::int64_t kWalked = 32;      // runs of both sides together that are walked all
constexpr std::int64_t kWindows = 6;      // else so many places are looked at,
constexpr std::int64_t kWindowRuns = 12;  // each until there were so many runs of both sides together

// Of the lengths of runs: how many, their sum, the sum of their squares; and how many of them are listed.
struct Moments {
  double runs = 0;
  double sum = 0;
  double squares = 0;
  double listed = 0;

  void add(const Moments& other, double times) {
    runs += other.runs * times;
    sum += other.sum * times;
    squares += other.squares * times;
    listed += other.listed * times;
  }
};

// Evenly spread over [0, count), the middle of each stretch.
std::int64_t sample(std::int64_t i, std::int64_t samples, std::int64_t count) { return (2 * i + 1) * count / (2 * samples); }

// `entries`: of each list that are looked at; fewer further down, so that nested lists cost no more.
Moments moments(const Node& node, std::int64_t entries) {
  Moments all;
  const auto runs = static_cast<double>(node.runs);
  const auto size = static_cast<double>(node.size);
  switch (node.kind) {
    case NodeKind::run: return {1, size, size * size, 0};
    case NodeKind::loop: all.add(moments(*node.children[0], entries), static_cast<double>(node.count)); return all;
    case NodeKind::list:
      all.add(moments(*node.children[0], entries), static_cast<double>(node.entries()));
      all.listed = runs;
      return all;
    case NodeKind::blocks: {
      const std::int64_t samples = std::min(entries, node.entries());
      double squares = 0;
      double sum = 0;
      for (std::int64_t i = 0; i < samples; ++i) {
        const auto at = static_cast<std::size_t>(sample(i, samples, node.entries()));
        const auto length = static_cast<double>(node.starts[at + 1] - node.starts[at]);
        sum += length;
        squares += length * length;
      }
      // The spread of the samples around the mean that is known.
      const double mean = size / runs;
      const auto n = static_cast<double>(samples);
      const double spread = std::max(0.0, squares / n - (sum / n) * (sum / n));
      return {runs, size, runs * (mean * mean + spread), runs};
    }
    case NodeKind::sequence: {
      const std::int64_t samples = std::min(entries, node.entries());
      for (std::int64_t i = 0; i < samples; ++i)
        all.add(moments(*node.child(sample(i, samples, node.entries())), std::max<std::int64_t>(1, entries / 4)), 1);
      const double scale = runs / all.runs;
      return {runs, size, all.squares * scale, all.listed * scale};
    }
  }
  return all;
}

// Boundaries between runs within some stretch of the stream, of either side, and how many the two sides have in common.
struct Boundaries {
  double ours = 0;
  double theirs = 0;
  double common = 0;
  double denser = 0;  // of the side that has more, stretch by stretch
};

// Walks both sides from `from` until there were `most` boundaries.
void count(Cursor& ours, Cursor& theirs, std::int64_t from, std::int64_t most, Boundaries& all) {
  ours.seek(from);
  theirs.seek(from);
  Boundaries here;
  std::int64_t at_ours = from + ours.next_run(kMaxBytes).length;
  std::int64_t at_theirs = from + theirs.next_run(kMaxBytes).length;
  const std::int64_t end = ours.size();
  for (std::int64_t i = 0; i < most && std::min(at_ours, at_theirs) < end; ++i) {
    const bool mine = at_ours <= at_theirs;
    const bool both = at_ours == at_theirs;
    here.common += both ? 1 : 0;
    if (mine || both) {
      here.ours += 1;
      at_ours += ours.next_run(kMaxBytes).length;
    }
    if (!mine || both) {
      here.theirs += 1;
      at_theirs += theirs.next_run(kMaxBytes).length;
    }
  }
  all.ours += here.ours;
  all.theirs += here.theirs;
  all.common += here.common;
  all.denser += std::max(here.ours, here.theirs);
}

bool even(const Outline& outline) { return outline.uneven < 1e-6 && outline.runs > 0 && outline.bytes % outline.runs == 0; }

}  // namespace

void Outline::count_units() {
  const auto units = [&](double unit) {
    const auto b = static_cast<double>(bytes);
    return std::min(static_cast<double>(span) / unit, b / unit + static_cast<double>(runs)) + (bytes > 0 ? 1 : 0);
  };
  lines = units(64);
  pages = units(4096);
}

Outline outline(const Layout& layout) {
  Outline made{.bytes = layout.size(), .runs = layout.run_count(), .span = layout.true_extent()};
  made.count_units();
  const Node* form = layout.form();
  if (form == nullptr) return made;
  const Moments found = moments(*form, kEntries);
  made.listed = found.listed / found.runs;
  const double mean = found.sum / found.runs;
  made.uneven = std::sqrt(std::max(0.0, found.squares / found.runs - mean * mean)) / mean;
  if (form->kind == NodeKind::loop && form->children[0]->kind == NodeKind::run) made.stride = form->stride;
  return made;
}

PairOutline outline(const Layout& src, const Layout& dst) {
  PairOutline made{.src = outline(src), .dst = outline(dst)};
  const std::int64_t runs = made.src.runs + made.dst.runs;
  made.pieces = made.paired = static_cast<double>(std::max(made.src.runs, made.dst.runs));
  if (made.src.contiguous() || made.dst.contiguous() || src.digest() == dst.digest()) return made;
  if (even(made.src) && even(made.dst)) {
    const std::int64_t both = std::max<std::int64_t>(1, std::lcm(made.src.bytes / made.src.runs, made.dst.bytes / made.dst.runs));
    made.pieces = static_cast<double>(runs - std::max<std::int64_t>(1, made.src.bytes / both));
    return made;
  }
  Cursor ours(src);
  Cursor theirs(dst);
  Boundaries all;
  if (runs <= kWalked) {
    count(ours, theirs, 0, runs, all);
  } else {
    for (std::int64_t i = 0; i < kWindows; ++i) count(ours, theirs, sample(i, kWindows, src.size()), kWindowRuns, all);
  }
  // As many boundaries as there are runs on a side, less one; the shares of them that were seen hold for all.
  const double seen = std::max(1.0, all.ours + all.theirs);
  const auto cuts = static_cast<double>(runs - 2);
  made.pieces = std::max(made.paired, 1 + cuts * (1 - all.common / seen));
  made.paired = std::max(made.paired, 1 + cuts * all.denser / seen);
  return made;
}

}  // namespace lacuna::layout
