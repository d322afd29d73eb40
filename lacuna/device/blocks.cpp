// Runs of many lengths: blocks, whose units are counted, or, if they are short, their words one by one.
#include <cstdlib>

#include "lacuna/device/compiler.hpp"

namespace lacuna::device {

using kernel::Part;
using kernel::Way;
using layout::Node;

namespace {

constexpr std::int64_t kShortBlock = 4;  // words; shorter blocks on average are listed word by word

std::int64_t reach_of(const std::vector<std::int64_t>& places) {
  std::int64_t reach = 0;
  for (const std::int64_t place : places) reach = std::max(reach, std::abs(place));
  return reach;
}

void spell_runs(const Node& node, std::int64_t at, std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& places) {
  if (node.kind == layout::NodeKind::run) {
    lengths.push_back(node.size);
    places.push_back(at);
    return;
  }
  for (std::int64_t i = 0; i < node.entries(); ++i) {
    if (node.kind == layout::NodeKind::blocks) {
      lengths.push_back(node.starts[static_cast<std::size_t>(i) + 1] - node.starts[static_cast<std::size_t>(i)]);
      places.push_back(at + node.offset(i));
    } else {
      spell_runs(*node.child(i), at + node.offset(i), lengths, places);
    }
  }
}

}  // namespace

bool Compiler::blocks(const Nest& nest, const Node& form) {
  Blocks blocks;
  const std::size_t n = form.offsets.size();
  blocks.lengths.reserve(n);
  for (std::size_t i = 0; i < n; ++i) blocks.lengths.push_back(form.starts[i + 1] - form.starts[i]);
  blocks.from = nest.from_form != nullptr ? form.offsets : std::vector(form.starts.begin(), form.starts.end() - 1);
  blocks.to = nest.from_form != nullptr ? std::vector(form.starts.begin(), form.starts.end() - 1) : form.offsets;
  return blocks_part(nest, blocks);
}

bool Compiler::blocks_part(const Nest& nest, const Blocks& blocks) {
  const std::size_t n = blocks.from.size();
  Divisor divisor{alignment_};
  for (std::size_t i = 0; i < n; ++i) divisor.add(blocks.from[i] | blocks.to[i] | blocks.lengths[i]);
  const std::int64_t word = word_of(nest, divisor.bits);
  const std::int64_t mean = nest.size / std::max<std::int64_t>(static_cast<std::int64_t>(n), 1);
  if (mean <= kShortBlock * word && nest.loops.size() + 2 <= kernel::kMostLevels) return words_part(nest, blocks, word);
  const bool windows = windows_for(mean, word);

  std::vector<std::int64_t> starts{0};
  starts.reserve(n + 1);
  for (const std::int64_t length : blocks.lengths)
    starts.push_back(starts.back() + (windows ? (length + 2 * kWindow - 2) / kWindow : length / word));
  const std::int64_t units = starts.back();
  if (units >= kMostUnits) return halves(nest, blocks);

  Part part = begin(nest, word, windows ? Way::windows : words_way(word));
  part.has_blocks = true;
  part.blocks.marks = tables_.put_marks(starts);
  if (windows) {
    part.blocks.from = tables_.put<std::int64_t>(std::span(blocks.from), 1);
    part.blocks.to = tables_.put<std::int64_t>(std::span(blocks.to), 1);
    part.blocks.starts = tables_.put<std::uint32_t>(std::span(starts), 1);
    part.blocks.lengths = tables_.put<std::int64_t>(std::span(blocks.lengths), 1);
  } else {
    std::tie(part.blocks.from_places, part.blocks.from) = tables_.put_places(blocks.from, starts, word);
    std::tie(part.blocks.to_places, part.blocks.to) = tables_.put_places(blocks.to, starts, word);
  }
  Nest reaching = nest;
  reaching.reach_from = reach_of(blocks.from);
  reaching.reach_to = reach_of(blocks.to);
  return loops(part, reaching, units, word);
}

bool Compiler::halves(const Nest& nest, const Blocks& blocks) {
  const auto n = static_cast<std::ptrdiff_t>(blocks.from.size());
  if (n == 1) {
    Nest one = nest;
    one.from_form = one.to_form = nullptr;
    one.from += blocks.from[0];
    one.to += blocks.to[0];
    one.size = blocks.lengths[0];
    return runs(one);
  }
  const auto share = [&](std::ptrdiff_t first, std::ptrdiff_t last) {
    Blocks some;
    some.from.assign(blocks.from.begin() + first, blocks.from.begin() + last);
    some.to.assign(blocks.to.begin() + first, blocks.to.begin() + last);
    some.lengths.assign(blocks.lengths.begin() + first, blocks.lengths.begin() + last);
    Nest nest_of_some = nest;
    nest_of_some.size = 0;
    for (const std::int64_t length : some.lengths) nest_of_some.size += length;
    return blocks_part(nest_of_some, some);
  };
  return share(0, n / 2) && share(n / 2, n);
}

// A list of the places of all words, as the innermost loop: of short blocks.
bool Compiler::words_part(const Nest& nest, const Blocks& blocks, std::int64_t word) {
  std::vector<std::int64_t> from;
  std::vector<std::int64_t> to;
  for (std::size_t i = 0; i < blocks.from.size(); ++i) {
    for (std::int64_t at = 0; at < blocks.lengths[i]; at += word) {
      from.push_back(blocks.from[i] + at);
      to.push_back(blocks.to[i] + at);
    }
  }
  const auto dense = [&](const std::vector<std::int64_t>& places) {
    for (std::size_t i = 0; i < places.size(); ++i) {
      if (places[i] != places[0] + static_cast<std::int64_t>(i) * word) return false;
    }
    return true;
  };
  Nest words = nest;
  words.from_form = words.to_form = nullptr;
  words.size = word;
  Loop loop{.count = static_cast<std::int64_t>(from.size()), .from = {.stride = word}, .to = {.stride = word}};
  if (dense(from))
    words.from += from[0];
  else
    loop.from.list = from.data();
  if (dense(to))
    words.to += to[0];
  else
    loop.to.list = to.data();
  words.loops.push_back(loop);
  const bool done = run_part(words, word, words_way(word));
  tables_.forget();
  return done;
}

// An array of small structs: their words, one by one.
bool Compiler::words_of(const Nest& nest, const Node& form) {
  constexpr std::int64_t small = 16 << 10;
  if (nest.loops.empty() || form.size > small || form.size / form.runs >= 64) return false;
  Blocks blocks;
  spell_runs(form, 0, blocks.lengths, nest.from_form != nullptr ? blocks.from : blocks.to);
  std::int64_t at = 0;
  for (const std::int64_t length : blocks.lengths) {
    (nest.from_form != nullptr ? blocks.to : blocks.from).push_back(at);
    at += length;
  }
  Divisor divisor{alignment_};
  for (std::size_t i = 0; i < blocks.lengths.size(); ++i) divisor.add(blocks.from[i] | blocks.to[i] | blocks.lengths[i]);
  return nest.loops.size() + 2 <= kernel::kMostLevels && words_part(nest, blocks, word_of(nest, divisor.bits));
}

}  // namespace lacuna::device
