// Runs of one length in loops: which way they go, and the parts that they are.
#include <bit>
#include <cstdlib>
#include <ranges>

#include "lacuna/device/compiler.hpp"

namespace lacuna::device {

using kernel::Level;
using kernel::Part;
using kernel::Way;

namespace {

// log2 of the items of a square, along what is dense where it is read, and where it is written: 16 KiB of shared
// memory.
struct SquareShape {
  int width, height;
};
SquareShape square_shape(std::int64_t item) {
  switch (item) {
    case 1: return {7, 7};
    case 2: return {7, 6};
    case 4: return {6, 6};
    case 8: return {6, 5};
    default: return {5, 5};
  }
}

Level divided_by(std::int64_t count) {
  Level level{};
  level.count = static_cast<std::uint32_t>(count);
  level.shift = static_cast<std::uint8_t>(std::bit_width(static_cast<std::uint64_t>(count) - 1));
  level.magic =
      static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << level.shift) - static_cast<std::uint64_t>(count))) /
                                     static_cast<std::uint64_t>(count) +
                                 1);
  return level;
}

// Whether all places, relative to the first byte, are within 31 bits.
bool narrow(const Nest& nest) {
  constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
  const auto reach = [](const LoopSide& side, std::int64_t count) {
    if (side.list == nullptr) return std::abs(side.stride) > most / count ? most : std::abs(side.stride) * (count - 1);
    const auto extremes = std::ranges::minmax(std::span(side.list, static_cast<std::size_t>(count)));
    return std::max(std::abs(extremes.min), std::abs(extremes.max));
  };
  std::int64_t from = nest.reach_from + nest.size;
  std::int64_t to = nest.reach_to + nest.size;
  for (const Loop& loop : nest.loops) {
    from += std::min(reach(loop.from, loop.count), most);
    to += std::min(reach(loop.to, loop.count), most);
  }
  return from <= most && to <= most;
}

// Whether short runs lie far apart: what neighbours among them share is in a cache only while they are moved at the
// same time.
bool sparse(const Nest& nest) {
  std::int64_t size = nest.size;
  for (const Loop& loop : std::views::reverse(nest.loops)) {
    if (!loop.strided()) return size < 2 * kWindow;
    const std::int64_t most = std::max(std::abs(loop.from.stride), std::abs(loop.to.stride));
    if (size < 4 * kWindow && most > 4 * size) return true;
    size = std::max(size, most) * loop.count;
  }
  return false;
}

}  // namespace

std::int64_t Compiler::word_of(const Nest& nest, std::int64_t bits) const {
  Divisor word{alignment_ | bits};
  word.add(nest.from);
  word.add(nest.to);
  for (const Loop& loop : nest.loops) {
    word.add(loop.from, loop.count);
    word.add(loop.to, loop.count);
  }
  return std::min<std::int64_t>(word.value(), 16);
}

bool Compiler::windows_for(std::int64_t run, std::int64_t word) const {
  switch (word) {
    case 1: return run >= tuning_.window_run[0];
    case 2: return run >= tuning_.window_run[1];
    case 4: return run >= tuning_.window_run[2];
    case 8: return run >= tuning_.window_run[3];
    default: return false;
  }
}

bool Compiler::runs(const Nest& nest) {
  const std::int64_t word = word_of(nest, nest.size);
  if (windows_for(nest.size, word)) return run_part(nest, word, Way::windows);
  if (tuning_.squares && nest.size == word && squares(nest)) return true;
  const auto nests = tiled(nest, tuning_.tile_bytes);
  if (std::ranges::any_of(nests, [](const Nest& n) { return n.loops.size() + 1 > kernel::kMostLevels; }))
    return run_part(nest, word, words_way(word));
  return std::ranges::all_of(nests, [&](const Nest& n) { return run_part(n, word, words_way(word)); });
}

// A transpose of items: one loop is dense where it is read, another one where it is written.
bool Compiler::squares(Nest nest) {
  const auto dense = [&](auto side) {
    return std::ranges::find_if(nest.loops, [&](const Loop& l) { return l.strided() && (l.*side).stride == nest.size; }) -
           nest.loops.begin();
  };
  const auto a = static_cast<std::size_t>(dense(&Loop::from));
  const auto b = static_cast<std::size_t>(dense(&Loop::to));
  if (a == b || a == nest.loops.size() || b == nest.loops.size()) return false;
  const Loop along_from = nest.loops[a];
  const Loop along_to = nest.loops[b];
  const auto [width, height] = square_shape(nest.size);
  if (along_from.count < (1 << width) / 4 || along_to.count < (1 << height) / 4 || std::max(along_from.count, along_to.count) >= kMostUnits)
    return false;
  nest.loops.erase(nest.loops.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
  nest.loops.erase(nest.loops.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)));

  const std::int64_t item = nest.size;
  const auto squares_of = [](std::int64_t count, int side) { return (count + (1 << side) - 1) >> side; };
  nest.loops.push_back({squares_of(along_to.count, height), {}, {}});
  nest.loops.push_back({squares_of(along_from.count, width), {}, {}});
  if (nest.loops.size() > kernel::kMostLevels) return false;
  std::int64_t units = 1;
  for (const Loop& loop : nest.loops) {
    if (!base::mul(units, loop.count, units) || units >= kMostUnits) return false;
  }
  Part part = begin(nest, item, Way::squares);
  Divisor from{alignment_ | nest.from | along_to.from.stride | along_from.count * item | item << width};
  Divisor to{alignment_ | nest.to | along_from.to.stride | along_to.count * item | item << height};
  for (std::size_t i = nest.loops.size(); i > 0; --i) {
    const Loop& loop = nest.loops[i - 1];
    from.add(loop.from, loop.count);
    to.add(loop.to, loop.count);
    part.level[part.levels++] = level_of(loop, item);
  }
  part.squares = {.from_pitch = along_to.from.stride,
                  .to_pitch = along_from.to.stride,
                  .along_from = static_cast<std::uint32_t>(along_from.count),
                  .along_to = static_cast<std::uint32_t>(along_to.count),
                  .width = static_cast<std::uint8_t>(width),
                  .height = static_cast<std::uint8_t>(height),
                  .from_word = static_cast<std::uint8_t>(from.value()),
                  .to_word = static_cast<std::uint8_t>(to.value())};
  part.units = static_cast<std::uint32_t>(units);
  parts_.push_back(part);
  return true;
}

bool Compiler::run_part(const Nest& nest, std::int64_t word, Way way) {
  const auto units_of = [&](std::int64_t run) { return way == Way::windows ? (run + 2 * kWindow - 2) / kWindow : run / word; };
  if (units_of(nest.size) >= kMostUnits) {
    Nest first = nest;
    first.size = nest.size / 2 / 4096 * 4096;
    Nest second = nest;
    second.from += first.size;
    second.to += first.size;
    second.size -= first.size;
    return run_part(first, word, way) && run_part(second, word, way);
  }
  Part part = begin(nest, word, way);
  part.run = nest.size;
  return loops(part, nest, units_of(nest.size), word);
}

Part Compiler::begin(const Nest& nest, std::int64_t word, Way way) const {
  Part part{};
  part.from = nest.from;
  part.to = nest.to;
  part.transfer = transfer_;
  part.way = way;
  part.word = static_cast<std::uint8_t>(word);
  return part;
}

// The nest's loops around `units` units; halves of them where they are too many.
bool Compiler::loops(Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t outer) {
  std::int64_t all = units;
  std::size_t inner = nest.loops.size();  // the loops from here on have fewer than the most units
  while (inner > outer && all * nest.loops[inner - 1].count < kMostUnits) all *= nest.loops[--inner].count;
  if (inner > outer) {
    const std::int64_t most = (kMostUnits - 1) / all;
    const Loop& loop = nest.loops[inner - 1];
    // What is outside of this loop is taken one by one: such a layout holds more than 2^31 units.
    for (std::int64_t first = 0; first < loop.count; first += most) {
      Nest share = nest;
      Loop& cut = share.loops[inner - 1];
      cut.count = std::min(most, loop.count - first);
      for (const bool is_from : {true, false}) {
        LoopSide& side = is_from ? cut.from : cut.to;
        if (side.list != nullptr)
          side.list += first;
        else
          (is_from ? share.from : share.to) += first * side.stride;
      }
      if (!each_outer(part, share, units, word, inner - 1)) return false;
    }
    return true;
  }
  part.units = static_cast<std::uint32_t>(all);
  part.narrow = narrow(nest);
  part.sparse = sparse(nest);
  part.level[0] = divided_by(units);
  part.levels = 1;
  for (std::size_t i = nest.loops.size(); i > outer; --i) part.level[part.levels++] = level_of(nest.loops[i - 1], word);
  parts_.push_back(part);
  return parts_.size() < kMostParts * 16;
}

// A part for each entry of the loops outside of `inner`.
bool Compiler::each_outer(Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t inner) {
  if (inner == 0) {
    part.from = nest.from;
    part.to = nest.to;
    return loops(part, nest, units, word);
  }
  const Loop& loop = nest.loops[0];
  for (std::int64_t i = 0; i < loop.count; ++i) {
    Nest entry = nest;
    entry.from += loop.from.place(i);
    entry.to += loop.to.place(i);
    entry.loops.erase(entry.loops.begin());
    if (!each_outer(part, entry, units, word, inner - 1)) return false;
  }
  return true;
}

Level Compiler::level_of(const Loop& loop, std::int64_t word) {
  Level level = divided_by(loop.count);
  std::tie(level.from_places, level.from_list, level.from) = tables_.put_side(loop.from, loop.count, word);
  std::tie(level.to_places, level.to_list, level.to) = tables_.put_side(loop.to, loop.count, word);
  return level;
}

}  // namespace lacuna::device
