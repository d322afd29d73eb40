#include "lacuna/device/program.hpp"

#include <fmt/format.h>

#include "lacuna/device/compiler.hpp"

namespace lacuna::device {

using base::Code;
using base::fail;
using kernel::Level;
using kernel::Part;
using kernel::Places;
using kernel::Way;
using layout::Node;

namespace {

constexpr std::int64_t kMostPieces = std::int64_t{1} << 27;    // 8 GiB of tables at most
constexpr std::uint64_t kMostTables = std::uint64_t{1} << 32;  // in units of 8 bytes
constexpr int kMostDepth = 8;                                  // of pairs within pairs

}  // namespace

base::Result<void> Compiler::pair(const Pair& pair, std::size_t transfer) {
  transfer_ = static_cast<std::uint16_t>(transfer);
  if (pair.from.size() == 0) return {};
  const std::size_t before = parts_.size();
  if (LACUNA_TRY(add_pair(pair, {}, 0))) return {};
  parts_.resize(before);
  return pieces(pair);
}

// A pair within loops that both sides have around it. False if only pieces are left.
base::Result<bool> Compiler::add_pair(const Pair& pair, const std::vector<Loop>& around, int depth) {
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
bool Compiler::add(const Nest& nest) {
  const Node* form = nest.from_form != nullptr ? nest.from_form : nest.to_form;
  if (nest.loops.size() + 1 > kernel::kMostLevels) return false;
  if (form == nullptr) return runs(nest);
  if (form->kind == layout::NodeKind::blocks) return blocks(nest, *form);
  std::vector<Nest> nests;
  if (words_of(nest, *form)) return true;
  if (!spell_out(nest, kMostParts, nests)) return false;
  const std::size_t before = parts_.size();
  for (const Nest& member : nests) {
    if (!add(member)) {
      parts_.resize(before);
      return false;
    }
  }
  return true;
}

// What no nest describes: every piece that is contiguous on both sides.
base::Result<void> Compiler::pieces(const Pair& pair) {
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
    tables_.forget();
  } else {
    done = blocks_part(nest, blocks);
  }
  if (!done) return fail(Code::limit, "the two layouts need more parts than a launch can have");
  return {};
}

base::Result<Program> Compiler::finish() {
  if (tables_.words.size() >= kMostTables)
    return fail(Code::limit, fmt::format("the layouts need {} bytes of tables on the device; at most {} can be addressed",
                                         tables_.words.size() * 8, kMostTables * 8));
  Program program{.parts = std::move(parts_), .groups = {}, .tables = std::move(tables_.words)};
  std::vector<Part>& parts = program.parts;
  std::ranges::sort(parts, {}, &Part::way);  // the order of parts of one way tells nothing
  std::int64_t bytes = 0;
  for (const Part& part : parts) bytes += std::int64_t{part.units} * (part.way == Way::windows ? kWindow : part.word);
  // Work for few threads of each processor is spread: a unit for each thread.
  const bool spread = bytes < std::int64_t{tuning_.processors} * 2048 * kWindow;
  for (Part& part : parts) {
    if (program.groups.empty() || program.groups.back().way != part.way)
      program.groups.push_back({part.way, static_cast<std::size_t>(&part - parts.data()), 0, 0});
    Group& group = program.groups.back();
    part.spread = spread;
    part.first_tile = group.tiles;
    const std::int64_t tiles = (part.units + std::int64_t{kernel::tile_units(part)} - 1) / kernel::tile_units(part);
    if (group.tiles + tiles >= kMostUnits)
      return fail(Code::limit, fmt::format("the layouts need more than {} blocks of threads", kMostUnits - 1));
    group.tiles += static_cast<std::uint32_t>(tiles);
    ++group.count;
  }
  return program;
}

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
  const auto side = [](Places places, std::int64_t stride) {
    return places == Places::stride ? fmt::format("{:+}", stride) : std::string("list");
  };
  for (int l = part.levels - 1; l >= (part.way == Way::squares ? 2 : 1); --l) {
    const Level& level = part.level[l];
    text += fmt::format(", {} x ({} -> {})", level.count, side(level.from_places, level.from), side(level.to_places, level.to));
  }
  if (part.has_blocks) return text + ", blocks";
  if (part.way == Way::squares)
    return text + fmt::format(", {} x {} items of {} B", part.squares.along_to, part.squares.along_from, int{part.word});
  return text + fmt::format(", {} B", part.run);
}

}  // namespace lacuna::device
