#include "lacuna/device/program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include "lacuna/device/nest.hpp"

namespace lacuna::device {
namespace {

using base::Code;
using base::fail;
using kernel::Level;
using kernel::Part;
using kernel::Places;
using kernel::Way;
using layout::Node;

constexpr std::int64_t kMostUnits = std::int64_t{1} << 31;
constexpr std::size_t kMostParts = 4096;                          // of a sequence: more are a list of pieces
constexpr std::int64_t kMostPieces = std::int64_t{1} << 27;       // 3 GiB of tables
constexpr std::uint64_t kMostTables = std::uint64_t{1} << 32;     // in units of 8 bytes
constexpr std::int64_t kShortBlock = 4;                           // words; shorter blocks on average are listed word by word
constexpr std::int64_t kWindow = 16;
constexpr int kMostDepth = 8;  // of pairs within pairs

// Runs of any lengths at any places on both sides.
struct Blocks {
  std::vector<std::int64_t> from, to, lengths;
};

// The power of two, up to 16, that divides all that was added.
struct Divisor {
  std::int64_t bits = 16;
  void add(std::int64_t number) { bits |= number; }
  void add(const Side& side, std::int64_t count) {
    if (side.list == nullptr) return add(side.stride);
    for (std::int64_t i = 0; i < count; ++i) bits |= side.list[i];
  }
  [[nodiscard]] std::int64_t value() const { return bits & -bits; }
};

Way words_way(std::int64_t word) { return word >= 8 ? Way::words : Way::bytes; }

// log2 of the items of a square, along what is dense where it is read, and where it is written: 16 KiB of shared memory.
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
  level.magic = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) * ((std::uint64_t{1} << level.shift) - static_cast<std::uint64_t>(count))) /
                                               static_cast<std::uint64_t>(count) +
                                           1);
  return level;
}

class Compiler {
 public:
  Compiler(std::int64_t alignment, const Tuning& tuning) : alignment_(alignment), tuning_(tuning) {}

  base::Result<void> pair(const Pair& pair, std::size_t transfer) {
    transfer_ = static_cast<std::uint16_t>(transfer);
    if (pair.from.size() == 0) return {};
    const std::size_t before = program_.parts.size();
    if (LACUNA_TRY(add_pair(pair, {}, 0))) return {};
    program_.parts.resize(before);
    return pieces(pair);
  }

  base::Result<Program> finish() {
    if (program_.tables.size() >= kMostTables)
      return fail(Code::limit, fmt::format("the layouts need {} bytes of tables on the device; at most {} can be addressed", program_.tables.size() * 8,
                                           kMostTables * 8));
    std::vector<Part>& parts = program_.parts;
    std::ranges::stable_sort(parts, {}, &Part::way);
    std::int64_t bytes = 0;
    for (const Part& part : parts) bytes += std::int64_t{part.units} * (part.way == Way::windows ? kWindow : part.word);
    // Work for few threads of each processor is spread: a unit for each thread.
    const bool spread = bytes < std::int64_t{tuning_.processors} * 2048 * kWindow;
    for (Part& part : parts) {
      if (program_.groups.empty() || program_.groups.back().way != part.way)
        program_.groups.push_back({part.way, static_cast<std::size_t>(&part - parts.data()), 0, 0});
      Group& group = program_.groups.back();
      part.spread = part.spread || spread;
      part.first_tile = group.tiles;
      const std::int64_t tiles = (part.units + std::int64_t{kernel::tile_units(part)} - 1) / kernel::tile_units(part);
      if (group.tiles + tiles >= kMostUnits) return fail(Code::limit, fmt::format("the layouts need more than {} blocks of threads", kMostUnits - 1));
      group.tiles += static_cast<std::uint32_t>(tiles);
      ++group.count;
    }
    return std::move(program_);
  }

 private:
  // A pair within loops that both sides have around it. False if only pieces are left.
  base::Result<bool> add_pair(const Pair& pair, const std::vector<Loop>& around, int depth) {
    if (auto nest = zip(pair.from, pair.to)) {
      const std::vector<Loop> inner = std::exchange(nest->loops, around);
      for (const Loop& loop : inner) nest->add(loop);
      return add(*nest);
    }
    if (depth == kMostDepth) return false;
    const std::vector<Apart> parts = LACUNA_TRY(take_apart(pair));
    for (const Apart& part : parts) {
      kept_.push_back(part.pair);
      std::vector<Loop> loops = around;
      if (part.loop.count > 1) loops.push_back(part.loop);
      if (!LACUNA_TRY(add_pair(part.pair, loops, depth + 1))) return false;
    }
    return !parts.empty();
  }

  // False if the nest has to be taken apart into pieces.
  bool add(const Nest& nest) {
    const Node* form = nest.from_form != nullptr ? nest.from_form : nest.to_form;
    if (nest.loops.size() + 1 > kernel::kMostLevels) return false;
    if (form == nullptr) return runs(nest);
    if (form->kind == layout::Kind::blocks) return blocks(nest, *form);
    std::vector<Nest> nests;
    if (words_of(nest, *form)) return true;
    if (!spell_out(nest, kMostParts, nests)) return false;
    const std::size_t before = program_.parts.size();
    for (const Nest& member : nests) {
      if (!add(member)) {
        program_.parts.resize(before);
        return false;
      }
    }
    return true;
  }

  // --- runs of one length ---

  std::int64_t word_of(const Nest& nest, std::int64_t bits) const {
    Divisor word{alignment_ | bits};
    word.add(nest.from);
    word.add(nest.to);
    for (const Loop& loop : nest.loops) {
      word.add(loop.from, loop.count);
      word.add(loop.to, loop.count);
    }
    return std::min<std::int64_t>(word.value(), 16);
  }

  [[nodiscard]] bool windows_for(std::int64_t run, std::int64_t word) const {
    switch (word) {
      case 1: return run >= tuning_.window_run[0];
      case 2: return run >= tuning_.window_run[1];
      case 4: return run >= tuning_.window_run[2];
      case 8: return run >= tuning_.window_run[3];
      default: return false;
    }
  }

  bool runs(const Nest& nest) {
    const std::int64_t word = word_of(nest, nest.size);
    if (windows_for(nest.size, word)) return run_part(nest, word, Way::windows);
    if (tuning_.squares && nest.size == word && squares(nest)) return true;
    const auto nests = tiled(nest, tuning_.tile_bytes);
    if (std::ranges::any_of(nests, [](const Nest& n) { return n.loops.size() + 1 > kernel::kMostLevels; })) return run_part(nest, word, words_way(word));
    return std::ranges::all_of(nests, [&](const Nest& n) { return run_part(n, word, words_way(word)); });
  }

  // A transpose of items: one loop is dense where it is read, another one where it is written.
  bool squares(Nest nest) {
    const auto dense = [&](auto side) {
      return std::ranges::find_if(nest.loops, [&](const Loop& l) { return l.strided() && (l.*side).stride == nest.size; }) - nest.loops.begin();
    };
    const auto a = static_cast<std::size_t>(dense(&Loop::from));
    const auto b = static_cast<std::size_t>(dense(&Loop::to));
    if (a == b || a == nest.loops.size() || b == nest.loops.size()) return false;
    const Loop along_from = nest.loops[a];
    const Loop along_to = nest.loops[b];
    const auto [width, height] = square_shape(nest.size);
    if (along_from.count < (1 << width) / 4 || along_to.count < (1 << height) / 4 || std::max(along_from.count, along_to.count) >= kMostUnits) return false;
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
    program_.parts.push_back(part);
    return true;
  }

  bool run_part(const Nest& nest, std::int64_t word, Way way) {
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
    // Short runs that a list scatters: neighbours share lines of the memory only if they are read at the same time.
    part.spread = nest.size < 2 * kWindow && std::ranges::any_of(nest.loops, [](const Loop& loop) { return !loop.strided() && loop.count > 1024; });
    return loops(part, nest, units_of(nest.size), word);
  }

  Part begin(const Nest& nest, std::int64_t word, Way way) const {
    Part part{};
    part.from = nest.from;
    part.to = nest.to;
    part.transfer = transfer_;
    part.way = way;
    part.word = static_cast<std::uint8_t>(word);
    return part;
  }

  // The nest's loops around `units` units; halves of them where they are too many.
  bool loops(Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t outer = 0) {
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
          Side& side = is_from ? cut.from : cut.to;
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
    program_.parts.push_back(part);
    return program_.parts.size() < kMostParts * 16;
  }

  // Whether all places, relative to the first byte, are within 31 bits.
  static bool narrow(const Nest& nest) {
    constexpr std::int64_t most = (std::int64_t{1} << 31) - 1;
    const auto reach = [](const Side& side, std::int64_t count) {
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

  // Whether a side has much more gaps than data.
  static bool sparse(const Nest& nest) {
    std::int64_t size = nest.size;
    for (const Loop& loop : nest.loops) {
      if (!loop.strided()) return false;
      const std::int64_t most = std::max(std::abs(loop.from.stride), std::abs(loop.to.stride));
      if (size < 4 * kWindow && most > 4 * size) return true;
      size = std::max(size, most) * loop.count;
    }
    return false;
  }

  // A part for each entry of the loops outside of `inner`.
  bool each_outer(Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t inner) {
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

  Level level_of(const Loop& loop, std::int64_t word) {
    Level level = divided_by(loop.count);
    std::tie(level.from_places, level.from_list, level.from) = places_of(loop.from, loop.count, word);
    std::tie(level.to_places, level.to_list, level.to) = places_of(loop.to, loop.count, word);
    return level;
  }

  std::tuple<Places, std::uint32_t, std::int64_t> places_of(const Side& side, std::int64_t count, std::int64_t word) {
    if (side.list == nullptr) return {Places::stride, 0, side.stride};
    auto [known, is_new] = lists_.try_emplace({side.list, count, word});
    if (is_new) {
      const std::span list(side.list, static_cast<std::size_t>(count));
      const bool narrow = std::ranges::all_of(list, [&](std::int64_t at) { return at / word == static_cast<std::int32_t>(at / word); });
      known->second.first = narrow ? Places::list32 : Places::list64;
      known->second.second = narrow ? put<std::int32_t>(list, word) : put<std::int64_t>(list, 1);
    }
    return {known->second.first, known->second.second, word};
  }

  // --- runs of many lengths ---

  bool blocks(const Nest& nest, const Node& form) {
    Blocks blocks;
    const std::size_t n = form.offsets.size();
    blocks.lengths.reserve(n);
    for (std::size_t i = 0; i < n; ++i) blocks.lengths.push_back(form.starts[i + 1] - form.starts[i]);
    blocks.from = nest.from_form != nullptr ? form.offsets : std::vector(form.starts.begin(), form.starts.end() - 1);
    blocks.to = nest.from_form != nullptr ? std::vector(form.starts.begin(), form.starts.end() - 1) : form.offsets;
    return blocks_part(nest, blocks);
  }

  bool blocks_part(const Nest& nest, const Blocks& blocks) {
    const std::size_t n = blocks.from.size();
    Divisor divisor{alignment_};
    for (std::size_t i = 0; i < n; ++i) divisor.add(blocks.from[i] | blocks.to[i] | blocks.lengths[i]);
    const std::int64_t word = word_of(nest, divisor.bits);
    const std::int64_t mean = nest.size / static_cast<std::int64_t>(n);
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
    part.blocks.marks = put_marks(starts);
    if (windows) {
      part.blocks.from = put<std::int64_t>(std::span(blocks.from), 1);
      part.blocks.to = put<std::int64_t>(std::span(blocks.to), 1);
      part.blocks.starts = put<std::uint32_t>(std::span(starts), 1);
      part.blocks.lengths = put<std::int64_t>(std::span(blocks.lengths), 1);
    } else {
      std::tie(part.blocks.from_places, part.blocks.from) = put_places(blocks.from, starts, word);
      std::tie(part.blocks.to_places, part.blocks.to) = put_places(blocks.to, starts, word);
    }
    Nest reaching = nest;
    reaching.reach_from = reach_of(blocks.from);
    reaching.reach_to = reach_of(blocks.to);
    return loops(part, reaching, units, word);
  }

  static std::int64_t reach_of(const std::vector<std::int64_t>& places) {
    std::int64_t reach = 0;
    for (const std::int64_t place : places) reach = std::max(reach, std::abs(place));
    return reach;
  }

  // For each 32 units: the block of the first one, less the blocks that its own bit counts, and where blocks begin.
  std::uint32_t put_marks(const std::vector<std::int64_t>& starts) {
    std::vector<std::int64_t> marks(static_cast<std::size_t>((starts.back() + 31) / 32));
    for (std::size_t i = 0; i + 1 < starts.size(); ++i)
      marks[static_cast<std::size_t>(starts[i] / 32)] |= static_cast<std::int64_t>(std::uint64_t{1} << (32 + starts[i] % 32));
    std::uint32_t begun = 0;
    for (std::int64_t& mark : marks) {
      const auto bits = static_cast<std::uint64_t>(mark);
      mark = static_cast<std::int64_t>(bits | static_cast<std::uint32_t>(begun - 1));
      begun += static_cast<std::uint32_t>(std::popcount(bits));
    }
    return put<std::int64_t>(std::span(marks), 1);
  }

  // Where unit 0 would be if all units were one run with each block's.
  std::pair<Places, std::uint32_t> put_places(const std::vector<std::int64_t>& places, const std::vector<std::int64_t>& starts, std::int64_t word) {
    std::vector<std::int64_t> zeros(places.size());
    for (std::size_t i = 0; i < places.size(); ++i) zeros[i] = places[i] - starts[i] * word;
    if (std::ranges::all_of(zeros, [](std::int64_t at) { return at == 0; })) return {Places::stride, 0};
    const bool is_narrow = std::ranges::all_of(zeros, [&](std::int64_t at) { return at / word == static_cast<std::int32_t>(at / word); });
    if (is_narrow) return {Places::list32, put<std::int32_t>(std::span(zeros), word)};
    return {Places::list64, put<std::int64_t>(std::span(zeros), 1)};
  }

  bool halves(const Nest& nest, const Blocks& blocks) {
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
  bool words_part(const Nest& nest, const Blocks& blocks, std::int64_t word) {
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
    lists_.erase({from.data(), loop.count, word});
    lists_.erase({to.data(), loop.count, word});
    return done;
  }

  // An array of small structs: their words, one by one.
  bool words_of(const Nest& nest, const Node& form) {
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

  static void spell_runs(const Node& node, std::int64_t at, std::vector<std::int64_t>& lengths, std::vector<std::int64_t>& places) {
    if (node.kind == layout::Kind::run) {
      lengths.push_back(node.size);
      places.push_back(at);
      return;
    }
    for (std::int64_t i = 0; i < node.entries(); ++i) {
      if (node.kind == layout::Kind::blocks) {
        lengths.push_back(node.starts[static_cast<std::size_t>(i) + 1] - node.starts[static_cast<std::size_t>(i)]);
        places.push_back(at + node.offset(i));
      } else {
        spell_runs(*node.child(i), at + node.offset(i), lengths, places);
      }
    }
  }

  // What no nest describes: every piece that is contiguous on both sides.
  base::Result<void> pieces(const Pair& pair) {
    auto walk = LACUNA_TRY(layout::Intersection::of(pair.from, pair.to));
    Blocks blocks;
    bool even = true;
    while (!walk.done()) {
      const layout::Piece piece = walk.next();
      if (static_cast<std::int64_t>(blocks.from.size()) == kMostPieces)
        return fail(Code::limit, fmt::format("the two layouts meet in more than {} pieces, and no loops describe them", kMostPieces));
      blocks.from.push_back(piece.src);
      blocks.to.push_back(piece.dst);
      blocks.lengths.push_back(piece.length);
      even = even && piece.length == blocks.lengths[0];
    }
    Nest nest{.from = 0, .to = 0, .loops = {}, .size = pair.from.size()};
    bool done = false;
    if (even) {
      nest.size = blocks.lengths[0];
      const auto count = static_cast<std::int64_t>(blocks.from.size());
      nest.loops.push_back({count, {.list = blocks.from.data()}, {.list = blocks.to.data()}});
      done = runs(nest);
      lists_.clear();
    } else {
      done = blocks_part(nest, blocks);
    }
    if (!done) return fail(Code::limit, "the two layouts need more parts than a launch can have");
    return {};
  }

  template <class T>
  std::uint32_t put(std::span<const std::int64_t> numbers, std::int64_t divisor) {
    std::vector<std::uint64_t>& tables = program_.tables;
    const std::size_t at = tables.size();
    tables.resize(at + (numbers.size() * sizeof(T) + 7) / 8);
    auto* items = reinterpret_cast<std::byte*>(tables.data() + at);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const T item = static_cast<T>(numbers[i] / divisor);
      std::memcpy(items + i * sizeof(T), &item, sizeof item);
    }
    return static_cast<std::uint32_t>(at);
  }

  std::int64_t alignment_;
  const Tuning& tuning_;
  std::uint16_t transfer_ = 0;
  Program program_;
  std::map<std::tuple<const std::int64_t*, std::int64_t, std::int64_t>, std::pair<Places, std::uint32_t>> lists_;
  std::vector<Pair> kept_;  // whose lists are keys
};

}  // namespace

base::Result<Program> compile(std::span<const Pair> pairs, std::int64_t alignment, const Tuning& tuning) {
  Compiler compiler(alignment, tuning);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    LACUNA_TRY(layout::check_sizes(pairs[i].from, pairs[i].to));
    LACUNA_TRY(compiler.pair(pairs[i], i));
  }
  return compiler.finish();
}

std::string describe(const Part& part) {
  constexpr const char* names[kernel::kWays] = {"words", "words", "windows", "squares"};
  std::string text = fmt::format("{} of {} B: {} units", names[static_cast<int>(part.way)], int{part.word}, part.units);
  const auto side = [](Places places, std::int64_t stride) { return places == Places::stride ? fmt::format("{:+}", stride) : std::string("list"); };
  for (int l = part.levels - 1; l >= (part.way == Way::squares ? 2 : 1); --l) {
    const Level& level = part.level[l];
    text += fmt::format(", {} x ({} -> {})", level.count, side(level.from_places, level.from), side(level.to_places, level.to));
  }
  if (part.has_blocks) return text + ", blocks";
  if (part.way == Way::squares) return text + fmt::format(", {} x {} items of {} B", part.squares.along_to, part.squares.along_from, int{part.word});
  return text + fmt::format(", {} B", part.run);
}

}  // namespace lacuna::device
