// Canonical forms of lists of runs: join() without an item for each run, since lists have a hundred thousand of them.
// Nothing here takes more memory than a few times what was given, or less where all runs are of one length.
#include <algorithm>
#include <utility>

#include "lacuna/layout/canonical.hpp"

namespace lacuna::layout {
namespace {

using Index = std::ptrdiff_t;
using Numbers = std::vector<std::int64_t>;

std::unexpected<base::Error> too_large() { return base::fail(base::Code::overflow, "the size of the layout is beyond 2^60 bytes"); }

Item in_place(std::int64_t at, NodePtr node) { return {at, node->size, std::move(node)}; }

// Neighbours that touch become one run, in place. No branch depends on which do: of a sorted table of half of all pages
// every second one does, and a branch would be mispredicted as often.
RunFacts merge_runs(Numbers& offsets, Numbers& lengths) {
  std::size_t runs = 0;
  std::int64_t position = 0;               // in the stream
  std::int64_t end = offsets.front() - 1;  // of the run before; the first one begins elsewhere
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::int64_t at = offsets[i], length = lengths[i];
    offsets[runs] = at;  // overwritten, unless a run begins here
    lengths[runs] = position;
    runs += at == end ? 0 : 1;
    end = at + length;
    position += length;
  }
  RunFacts facts;
  std::int64_t alike = 0, before = 0;
  for (std::size_t i = 0; i < runs; ++i) {
    const std::int64_t length = (i + 1 < runs ? lengths[i + 1] : position) - lengths[i];
    lengths[i] = length;
    alike = length == before ? alike + 1 : 1;
    facts.most_alike = std::max(facts.most_alike, alike);
    before = length;
  }
  offsets.resize(runs);
  lengths.resize(runs);
  return facts;
}

// Whether any stretch of runs can repeat at all. A loop of period p has max(2 p, kShortestLoop) runs or more, of which
// all but the first p look like the one p before them, and so do the steps between these: 15 equal steps in a row at
// least (p = 16, twice). Among 15 in a row there is one whose number 15 divides, so only those are looked at, and their
// neighbours only where they have a like. `lengths` is empty if all are alike.
//
// Copies of a nested block are asked for more equal steps, since no other spelling has to end in the same form: a
// sorted table of pages has 15 by chance, and not 63.
constexpr Index kLikeSteps = 15;
constexpr Index kLikeStepsOfCopies = 63;
static_assert(kShortestLoop == 32 && kLongestPeriod == 16);
bool may_repeat(const Numbers& offsets, const Numbers& lengths, Index fewest = kLikeSteps) {
  const auto n = static_cast<Index>(offsets.size());
  if (n < 4 * kShortestLoop) return true;
  const Index steps = n - 1;
  const std::int64_t* at = offsets.data();
  const auto step = [&](Index i) { return at[i + 1] - at[i]; };
  const auto alike = [&](Index i, Index j) { return step(i) == step(j) && (lengths.empty() || lengths[i] == lengths[j]); };
  for (Index i = 0; i + kLongestPeriod < steps; i += fewest) {
    // The low halves of the steps: four of them to a comparison on any CPU.
    std::uint32_t seen = 0;
    const auto own = static_cast<std::uint32_t>(step(i));
    for (Index p = 1; p <= kLongestPeriod; ++p) {
      const auto other = static_cast<std::uint32_t>(step(i + p));
      seen |= own == other ? 1 : 0;
    }
    if (seen == 0) continue;
    for (Index p = 1; p <= kLongestPeriod; ++p) {
      if (!alike(i, i + p)) continue;
      Index from = i;
      while (from > 0 && i - from < fewest && alike(from - 1, from - 1 + p)) --from;
      Index to = i + 1;
      while (to + p < steps && to - from < fewest && alike(to, to + p)) ++to;
      if (to - from >= fewest) return true;
    }
  }
  for (Index i = std::max<Index>(0, steps - fewest - 3 * kLongestPeriod); i < steps; ++i) {  // what is left at the end
    for (Index p = 1; p <= kLongestPeriod; ++p) {
      Index to = i;
      while (to + p < steps && to - i < fewest && alike(to, to + p)) ++to;
      if (to - i >= fewest) return true;
    }
  }
  // A longer period repeats the whole.
  const auto repeats = [&](Index p) {
    Index i = 0;
    while (i + p < steps && alike(i, i + p)) ++i;
    return p > kLongestPeriod && i + p == steps;
  };
  for (Index p = 2; p * p <= n; ++p) {
    if (n % p == 0 && (repeats(p) || repeats(n / p))) return true;
  }
  return false;
}

// Runs [from, to), which are in no loop: a run, a list if they are of one length, else blocks.
Item part(const Numbers& offsets, const Numbers& lengths, Index from, Index to) {
  const std::int64_t origin = offsets[from];
  if (to - from == 1) return {origin, lengths[from], nullptr};
  Numbers places(static_cast<std::size_t>(to - from));
  bool uniform = true;
  for (Index i = from; i < to; ++i) {
    places[i - from] = offsets[i] - origin;
    uniform = uniform && lengths[i] == lengths[from];
  }
  if (uniform) return in_place(origin, make_list(std::move(places), {0, lengths[from], nullptr}));
  Numbers starts(places.size() + 1);
  for (Index i = from; i < to; ++i) starts[i - from + 1] = starts[i - from] + lengths[i];
  return in_place(origin, make_blocks(std::move(places), std::move(starts)));
}

// All runs, which are in no loop: part() in the memory that is here. Fresh memory costs more than all work on a list.
Item one_group(Numbers offsets, Numbers lengths, bool of_one_length) {
  for (Numbers* numbers : {&offsets, &lengths}) {
    if (numbers->capacity() / 2 > numbers->size()) numbers->shrink_to_fit();  // many runs became few
  }
  const std::int64_t origin = offsets[0];
  for (std::int64_t& offset : offsets) offset -= origin;
  if (of_one_length) return in_place(origin, make_list(std::move(offsets), {0, lengths[0], nullptr}));
  std::int64_t position = 0;
  for (std::int64_t& length : lengths) position += std::exchange(length, position);
  lengths.push_back(position);
  return in_place(origin, make_blocks(std::move(offsets), std::move(lengths)));
}

// Long stretches of one length become lists, what is between them blocks: group() of canonical.cpp.
Item group_runs(Numbers offsets, Numbers lengths, std::int64_t most_alike) {
  const bool of_one_length = most_alike == std::ssize(lengths);
  if (of_one_length || most_alike < kShortestLoop) return one_group(std::move(offsets), std::move(lengths), of_one_length);
  const Index n = std::ssize(offsets);
  std::vector<Item> groups;
  Index pending = 0;  // first run that is in no group yet
  for (Index i = 0, j = 0; i < n; i = j) {
    for (j = i + 1; j < n && lengths[j] == lengths[i];) ++j;
    if (j - i < kShortestLoop && j - i < n) continue;
    if (pending < i) groups.push_back(part(offsets, lengths, pending, i));
    groups.push_back(part(offsets, lengths, i, j));
    pending = j;
  }
  if (pending < n) groups.push_back(part(offsets, lengths, pending, n));
  return groups.size() == 1 ? groups.front() : in_place(groups.front().at, make_sequence(groups));
}

Item with_loops(const Numbers& offsets, const Numbers& lengths, std::int64_t length) {
  std::vector<Item> items(offsets.size());
  for (std::size_t i = 0; i < items.size(); ++i) items[i] = {offsets[i], lengths.empty() ? length : lengths[i], nullptr};
  return compress(std::move(items));
}

}  // namespace

namespace {

Item merged(Numbers offsets, Numbers lengths, RunFacts facts) {
  if (facts.touching) facts = merge_runs(offsets, lengths);
  if (offsets.size() == 1) return {offsets[0], lengths[0], nullptr};
  if (may_repeat(offsets, lengths)) return with_loops(offsets, lengths, 0);
  return group_runs(std::move(offsets), std::move(lengths), facts.most_alike);
}

}  // namespace

Result<Item> join_runs(Numbers offsets, Numbers lengths, const RunFacts& facts) {
  // In parts whose sum fits, since each length is at most 2^60.
  std::int64_t size = 0;
  for (std::size_t i = 0; i < lengths.size();) {
    const std::size_t end = std::min(lengths.size(), i + 4);
    for (; i < end; ++i) size += lengths[i];
    if (size > kMaxBytes) return too_large();
  }
  return merged(std::move(offsets), std::move(lengths), facts);
}

Result<Item> join_blocks(Numbers offsets, std::int64_t length, bool touching) {
  std::int64_t size = 0;
  if (!base::mul(length, std::ssize(offsets), size) || size > kMaxBytes) return too_large();
  if (touching) {
    Numbers lengths;
    lengths.reserve(offsets.size() + 1);
    lengths.resize(offsets.size(), length);
    return merged(std::move(offsets), std::move(lengths), {.touching = true, .most_alike = 0});
  }
  if (offsets.size() == 1) return Item{offsets[0], length, nullptr};
  if (may_repeat(offsets, {})) return with_loops(offsets, {}, length);
  const std::int64_t origin = offsets[0];
  for (std::int64_t& offset : offsets) offset -= origin;
  return in_place(origin, make_list(std::move(offsets), {0, length, nullptr}));
}

namespace {

// A form of runs, with `block` in the place of each run.
Result<Item> with_blocks(const Item& form, const Item& block) {
  if (!form.node || form.node->kind == NodeKind::run) return Item{form.at, block.length, block.node};
  const Node& node = *form.node;
  if (node.kind == NodeKind::sequence) {
    std::vector<Item> members;
    members.reserve(static_cast<std::size_t>(node.entries()));
    for (std::int64_t i = 0; i < node.entries(); ++i)
      members.push_back(LACUNA_TRY(with_blocks({form.at + node.offset(i), node.child(i)->size, node.child(i)}, block)));
    return in_place(form.at, make_sequence(members));
  }
  const Item inner = LACUNA_TRY(with_blocks({form.at, node.children[0]->size, node.children[0]}, block));
  if (node.kind == NodeKind::loop) return repeat(inner, node.count, node.stride);
  return in_place(form.at, make_list(node.offsets, inner));
}

}  // namespace

Result<Item> join_copies(Numbers offsets, const Item& block) {
  std::int64_t size = 0;
  if (!base::mul(block.length, std::ssize(offsets), size) || size > kMaxBytes) return too_large();
  for (std::int64_t& offset : offsets) offset += block.at;
  if (offsets.size() == 1) return Item{offsets[0], block.length, block.node};
  if (may_repeat(offsets, {}, kLikeStepsOfCopies)) return with_blocks(with_loops(offsets, {}, block.length), block);
  const std::int64_t origin = offsets[0];
  for (std::int64_t& offset : offsets) offset -= origin;
  return in_place(origin, make_list(std::move(offsets), {0, block.length, block.node}));
}

}  // namespace lacuna::layout
