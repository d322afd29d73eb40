// The two constructors of canonical forms: repeat() and join(). Lists of runs have a file of their own, join_runs.cpp.
#include "lacuna/layout/canonical.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "lacuna/base/base.hpp"

namespace lacuna::layout {
namespace {

using Items = std::vector<Item>;
using Index = std::ptrdiff_t;

std::unexpected<base::Error> too_large(const char* what) {
  return base::fail(base::Code::overflow, std::string(what) + " of the layout is beyond 2^60 bytes");
}
std::unexpected<base::Error> too_large(const char* what, const Item& item, std::int64_t count, std::int64_t stride) {
  return base::fail(base::Code::overflow,
                    fmt::format("{} of {} times {} bytes, {} bytes apart, is beyond 2^60 bytes", what, count, item.length, stride));
}

bool within(std::int64_t offset) { return offset >= -kMaxBytes && offset <= kMaxBytes; }

Item in_place(std::int64_t at, NodePtr node) { return {at, node->size, std::move(node)}; }

bool same_shape(const Item& a, const Item& b) {
  if (a.length != b.length) return false;
  if (a.node == b.node) return true;
  return a.node && b.node && a.node->digest == b.node->digest;
}

// Appends a run, merged with the last one where they touch.
void append_run(Items& items, std::int64_t at, std::int64_t length) {
  if (!items.empty() && !items.back().node && items.back().tail() == at) {
    items.back().length += length;
  } else {
    items.push_back({at, length, nullptr});
  }
}

// Appends an item; a loop that goes on where the last one ends lengthens it (a cyclic darray's remainder does).
void append(Items& items, const Item& item) {
  if (!item.node || item.node->kind == NodeKind::run) return append_run(items, item.at, item.length);
  if (!items.empty() && items.back().node && item.node->kind == NodeKind::loop && items.back().node->kind == NodeKind::loop) {
    const Node& last = *items.back().node;
    if (last.stride == item.node->stride && last.children[0]->digest == item.node->children[0]->digest &&
        items.back().at + last.count * last.stride == item.at) {
      const Item inner{items.back().at, last.children[0]->size, last.children[0]};
      items.back() = in_place(inner.at, make_loop(inner, last.count + item.node->count, last.stride));
      return;
    }
  }
  items.push_back(item);
}

void flatten(const Node& node, std::int64_t at, Items& runs) {
  if (node.kind == NodeKind::run) return append_run(runs, at, node.size);
  if (node.kind == NodeKind::blocks) {
    for (std::size_t i = 0; i < node.offsets.size(); ++i) append_run(runs, at + node.offsets[i], node.starts[i + 1] - node.starts[i]);
    return;
  }
  for (std::int64_t i = 0; i < node.entries(); ++i) flatten(*node.child(i), at + node.offset(i), runs);
}

void flatten(const Item& item, Items& runs) {
  if (item.node) return flatten(*item.node, item.at, runs);
  append_run(runs, item.at, item.length);
}

// Whether two items look alike and are as far from their successors.
bool same_step(const Items& w, Index i, Index j) { return w[i + 1].at - w[i].at == w[j + 1].at - w[j].at && same_shape(w[i], w[j]); }

// A number for each item but the last, from its shape and its step to the next: equal where those are, and elsewhere
// mostly not. Items are 32 bytes and comparing them takes a look at nodes, so whatever compares many looks at these
// first.
using Symbol = std::uint16_t;
std::uint64_t mixed(std::uint64_t value) { return (value ^ value >> 29) * 0x9e37'79b9'7f4a'7c15; }
std::uint64_t shape_of(const Item& item) {
  return static_cast<std::uint64_t>(item.length) * 2 + (item.node ? mixed(item.node->digest.low) | 1 : 0);
}
std::vector<Symbol> symbols_of(const Items& w) {
  std::vector<Symbol> symbols(w.size() - 1);
  for (std::size_t i = 0; i < symbols.size(); ++i)
    symbols[i] = static_cast<Symbol>(mixed(mixed(shape_of(w[i])) + static_cast<std::uint64_t>(w[i + 1].at - w[i].at)) >> 48);
  return symbols;
}

// The shortest p that divides |w| such that w is its first p items repeated at a constant stride; |w| if there is none.
// Knuth, Morris and Pratt's failure function over (shape, step to the next): its borders are the periods.
Index shortest_root(const Items& w) {
  const Index n = std::ssize(w);
  const std::vector<Symbol> symbols = symbols_of(w);
  const auto alike = [&](Index i, Index j) { return symbols[i] == symbols[j] && same_step(w, i, j); };
  std::vector<Index> border(static_cast<std::size_t>(n));  // border[i]: of the first i symbols; n - 1 symbols in all
  for (Index i = 1, b = 0; i < n - 1; ++i) {
    while (b > 0 && !alike(i, b)) b = border[b];
    if (alike(i, b)) ++b;
    border[i + 1] = b;
  }
  for (Index b = n - 1; b > 0;) {
    b = border[b];
    const Index p = n - 1 - b;
    if (p > 0 && n % p == 0 && same_shape(w[n - 1], w[n - 1 - p])) return p;
  }
  return n;
}

// Of each item the periods with which a stretch may begin there, as bits: others do not.
//
// A stretch of runs has max(2, 32 / p) periods or more, and all its items but the last p look like the one p further
// on. So that many symbols in a row, less one, are like those p further on. A stretch with a node has one among its
// first p items, and that has a like p further on.
using Periods = std::uint16_t;
static_assert(kShortestLoop == 32 && kLongestPeriod == 16);
std::vector<Periods> beginnings(const Items& w) {
  constexpr Index block = 1024, spare = kShortestLoop;
  const Index n = std::ssize(w);
  if (n < 4 * kShortestLoop) return std::vector<Periods>(static_cast<std::size_t>(n), 0xffff);
  const std::vector<Symbol> symbols = symbols_of(w);
  std::vector<Periods> begins(static_cast<std::size_t>(n));
  Periods alike[block + spare];  // whether so many in a row are, from each on
  for (Index from = 0; from < n - 1; from += block) {
    const Index own = std::min(block, n - 1 - from);
    for (Index p = 1; p <= kLongestPeriod; ++p) {
      const Index pairs = std::clamp<Index>(n - 1 - p - from, 0, block + spare);
      const Symbol* const here = symbols.data() + from;
      for (Index j = 0; j < pairs; ++j) alike[j] = here[j] == here[j + p] ? 1 : 0;
      std::fill(alike + pairs, alike + block + spare, 0);
      const Index fewest = p * (std::max<Index>(2, (kShortestLoop + p - 1) / p) - 1) - 1;  // 15 to 30
      for (Index sure = 1; sure < fewest;) {
        const Index further = std::min(sure, fewest - sure);
        for (Index j = 0; j < block + spare - further; ++j) alike[j] &= alike[j + further];
        sure += further;
      }
      for (Index j = 0; j < own; ++j) begins[from + j] |= static_cast<Periods>(alike[j] << (p - 1));
    }
  }
  for (Index k = 0; k < n; ++k) {
    for (Index p = 1; w[k].node && p <= kLongestPeriod && k + p < n; ++p) {
      if (!w[k + p].node || shape_of(w[k]) != shape_of(w[k + p])) continue;
      for (Index i = std::max<Index>(0, k - p + 1); i <= k; ++i) begins[i] |= static_cast<Periods>(1 << (p - 1));
    }
  }
  return begins;
}

struct Stretch {
  Index period = 0;
  Index repetitions = 0;
  std::int64_t runs = 0;
};

// The longest stretch from item i on that repeats with one of some short periods. `follows`: the item before it, which
// is in no stretch, has the shape of item i.
Stretch longest_stretch(const Items& w, Index i, Periods periods, bool follows) {
  Stretch best;
  const Index left = std::ssize(w) - i;
  for (Index p = 1; periods >> (p - 1) != 0 && p <= left / 2; ++p) {
    if ((periods >> (p - 1) & 1) == 0 || !same_shape(w[i], w[i + p])) continue;
    Index alike = 1;  // w[i + j] and w[i + p + j] are alike for j < alike
    while (i + p + alike < std::ssize(w) && w[i + alike].at - w[i + alike - 1].at == w[i + p + alike].at - w[i + p + alike - 1].at &&
           same_shape(w[i + alike], w[i + p + alike])) {
      ++alike;
    }
    const Index repetitions = 1 + alike / p;
    if (repetitions < 2) continue;
    // Any two of a list have some distance. So two are no loop where one more of their shape is beside them.
    if (repetitions == 2 && w[i].node && (follows || (i + 2 * p < std::ssize(w) && same_shape(w[i], w[i + 2 * p])))) continue;
    std::int64_t runs = 0;
    for (Index j = i; j < i + p; ++j) runs += w[j].runs();
    runs *= repetitions;
    if (runs >= kShortestLoop && runs > best.runs) best = {p, repetitions, runs};
  }
  return best;
}

Item compressed(Items w);

// The loops over one run that a form stands for: itself, or what merged neighbours hide. Null for any other form.
NodePtr loops_of(const NodePtr& form) {
  if (form->loops) return form->loops;
  const Node* node = form.get();
  while (node->kind == NodeKind::loop) node = node->children[0].get();
  return node->kind == NodeKind::run ? form : nullptr;
}

Item with_loops(Item item, NodePtr loops) {
  Node node = *item.node;
  node.loops = std::move(loops);
  item.node = std::make_shared<const Node>(std::move(node));
  return item;
}

Item longer_or_outer_loop(const Item& item, std::int64_t count, std::int64_t stride) {
  if (count == 1) return item;
  if (item.node && item.node->kind == NodeKind::loop && item.node->count * item.node->stride == stride) {
    const Item inner{item.at, item.node->children[0]->size, item.node->children[0]};
    return in_place(item.at, make_loop(inner, item.node->count * count, item.node->stride));
  }
  return in_place(item.at, make_loop(item, count, stride));
}

Item loop_of(const Item& item, std::int64_t count, std::int64_t stride) {
  Item loop = longer_or_outer_loop(item, count, stride);
  if (!item.node || !item.node->loops) return loop;
  return with_loops(std::move(loop), longer_or_outer_loop({item.at, item.length, item.node->loops}, count, stride).node);
}

// One pass from the left; true if something became a loop.
bool find_loops(Items& w) {
  const std::vector<Periods> begins = beginnings(w);
  Items found;
  found.reserve(w.size());
  for (Index i = 0; i < std::ssize(w);) {
    const bool follows = !found.empty() && w[i].node && same_shape(found.back(), w[i]);
    const Stretch stretch = longest_stretch(w, i, begins[i], follows);
    if (stretch.repetitions == 0) {
      found.push_back(std::move(w[i++]));
      continue;
    }
    const std::int64_t stride = w[i + stretch.period].at - w[i].at;
    found.push_back(loop_of(compressed(Items(w.begin() + i, w.begin() + i + stretch.period)), stretch.repetitions, stride));
    i += stretch.period * stretch.repetitions;
  }
  const bool changed = found.size() < w.size();
  w = std::move(found);
  return changed;
}

// Items of one shape as a list, runs as blocks.
Item irregular(const Items& w, Index from, Index to) {
  const std::int64_t origin = w[from].at;
  if (to - from == 1) return w[from];
  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(to - from));
  bool uniform = true;
  for (Index i = from; i < to; ++i) {
    offsets.push_back(w[i].at - origin);
    uniform = uniform && same_shape(w[i], w[from]);
  }
  if (uniform) return in_place(origin, make_list(std::move(offsets), w[from]));
  std::vector<std::int64_t> starts{0};
  starts.reserve(offsets.size() + 1);
  for (Index i = from; i < to; ++i) starts.push_back(starts.back() + w[i].length);
  return in_place(origin, make_blocks(std::move(offsets), std::move(starts)));
}

// Long stretches of one shape become lists, mixtures of runs between them blocks; what remains is a sequence.
Item group(const Items& w) {
  const Index n = std::ssize(w);
  Items groups;
  Index pending = 0;  // first run that is in no group yet
  const auto flush = [&](Index to) {
    if (pending < to) groups.push_back(irregular(w, pending, to));
  };
  for (Index i = 0; i < n;) {
    Index j = i + 1;
    while (j < n && same_shape(w[i], w[j])) ++j;
    if (w[i].node || j - i >= kShortestLoop || j - i == n) {
      flush(i);
      groups.push_back(irregular(w, i, j));
      pending = j;
    }
    i = j;
  }
  flush(n);
  return groups.size() == 1 ? groups.front() : in_place(groups.front().at, make_sequence(groups));
}

Item compressed(Items w) {
  if (w.size() == 1) return w.front();
  if (const Index p = shortest_root(w); p < std::ssize(w)) {
    const std::int64_t count = std::ssize(w) / p;
    const std::int64_t stride = w[p].at - w[0].at;
    w.resize(static_cast<std::size_t>(p));
    return loop_of(compressed(std::move(w)), count, stride);
  }
  while (find_loops(w)) {
  }
  return w.size() == 1 ? w.front() : group(w);
}

// A power whose last run touches the next copy's first: they are one run, so the copies overlap in the form. Spelled
// out where that is short; else the first run, a loop of what follows up to the next copy's first run, and the last
// copy's rest.
Item repeat_touching(const Item& item, std::int64_t count, std::int64_t stride) {
  Items one;
  flatten(item, one);
  if (item.runs() * count <= kFlattenLimit) {
    Items all;
    all.reserve(one.size() * static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
      for (const Item& run : one) append_run(all, run.at + i * stride, run.length);
    }
    return compressed(std::move(all));
  }
  Items middle(one.begin() + 1, one.end());
  middle.back().length += one.front().length;
  Items parts{one.front(), loop_of(compressed(std::move(middle)), count - 1, stride)};
  for (auto rest = one.begin() + 1; rest != one.end(); ++rest) parts.push_back({rest->at + (count - 1) * stride, rest->length, nullptr});
  return compressed(std::move(parts));
}

}  // namespace

Item compress(Items items) { return compressed(std::move(items)); }

Result<Item> repeat(const Item& item, std::int64_t count, std::int64_t stride) {
  if (count == 1) return item;
  std::int64_t size = 0;
  std::int64_t last = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
  if (!base::mul(item.length, count, size) || size > kMaxBytes) return too_large("the size", item, count, stride);
  if (!base::mul(stride, count - 1, last) || !base::add(item.low(), last, low) || !base::add(item.high(), last, high) || !within(low) ||
      !within(high)) {
    return too_large("an offset", item, count, stride);
  }
  if (item.tail() == item.at + stride) {
    if (!item.node) return Item{item.at, size, nullptr};
    if (item.runs() <= kFlattenLimit) {
      Item merged = repeat_touching(item, count, stride);
      NodePtr loops = loops_of(item.node);
      if (!loops || !merged.node) return merged;
      return with_loops(std::move(merged), longer_or_outer_loop({item.at, item.length, std::move(loops)}, count, stride).node);
    }
  }
  return loop_of(item, count, stride);
}

Item spelled_out(const Item& item) {
  Items runs;
  flatten(item, runs);
  return compressed(std::move(runs));
}

Result<Item> join(Items items, std::int64_t limit) {
  std::int64_t size = 0;
  std::int64_t runs = 0;
  bool plain = true;
  for (const Item& item : items) {
    if (!base::add(size, item.length, size) || size > kMaxBytes) return too_large("the size");
    if (!within(item.low()) || !within(item.high())) return too_large("an offset");
    runs += item.runs();
    plain = plain && !item.node;
  }
  if (items.size() == 1) return items.front();
  if (plain || runs <= limit) {
    Items flat;
    flat.reserve(static_cast<std::size_t>(runs));
    for (const Item& item : items) flatten(item, flat);
    return compressed(std::move(flat));
  }
  // Too long to spell out. Sequences within are opened all the same, so that depth grows only where runs multiply.
  Items opened;
  for (const Item& item : items) {
    if (!item.node || item.node->kind != NodeKind::sequence) {
      append(opened, item);
      continue;
    }
    for (std::int64_t i = 0; i < item.node->entries(); ++i) append(opened, in_place(item.at + item.node->offset(i), item.node->child(i)));
  }
  return compressed(std::move(opened));
}

}  // namespace lacuna::layout
