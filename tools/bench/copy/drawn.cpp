#include "tools/bench/copy/drawn.hpp"

#include <nlohmann/json.hpp>

#include <array>
#include <stdexcept>

namespace lacuna::bench {
namespace {

using layout::Layout;
using nlohmann::json;

constexpr std::size_t kLoops = 5;

Layout listed(const DrawnNest& nest) {
  const Layout element = Layout::bytes(nest.element).value();
  const std::vector<std::int64_t> places(nest.list.begin(), nest.list.end());
  if (nest.lengths.size() == 1) return Layout::indexed_block(nest.lengths[0], places, element).value();
  const std::vector<std::int64_t> lengths(nest.lengths.begin(), nest.lengths.end());
  return Layout::indexed(lengths, places, element).value();
}

Layout looped(const DrawnNest& nest) {
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> strides;
  for (const DrawnNest::Loop& loop : nest.loops) {
    counts.push_back(loop.count);
    strides.push_back(loop.stride);
  }
  return Layout::strided(nest.element, counts, strides).value();
}

DrawnNest nest_of(const json& description) {
  DrawnNest nest;
  nest.element = description.at("element").get<std::int64_t>();
  nest.offset = description.at("offset").get<std::int64_t>();
  if (description.contains("list")) {
    nest.list = description.at("list").get<std::vector<std::int32_t>>();
    nest.lengths = description.at("lengths").get<std::vector<std::int32_t>>();
    return nest;
  }
  for (const auto& [count, stride] : description.at("loops").get<std::vector<std::array<std::int64_t, 2>>>())
    nest.loops.push_back({count, stride});
  if (nest.loops.size() > kLoops) throw std::invalid_argument("a nest of more than five loops");
  return nest;
}

// Loops of which the inner one takes up where the outer one goes on are one loop: a programmer sees that.
void merge(std::vector<DrawnNest::Loop>& loops, std::int64_t element) {
  for (std::size_t i = loops.size(); i-- > 1;) {
    DrawnNest::Loop& outer = loops[i - 1];
    const DrawnNest::Loop& inner = loops[i];
    if (inner.stride != element || outer.stride != inner.count * element) continue;
    outer = {outer.count * inner.count, element};
    loops.erase(loops.begin() + static_cast<std::ptrdiff_t>(i));
  }
  loops.insert(loops.begin(), kLoops - loops.size(), {1, 0});
}

}  // namespace

DrawnSide drawn_side(const json& description) {
  DrawnSide side;
  side.span = description.at("span").get<std::int64_t>();
  side.base = description.at("base").get<std::int64_t>();
  std::vector<std::int64_t> places;
  std::vector<Layout> members;
  for (const json& one : description.at("nests")) {
    DrawnNest nest = nest_of(one);
    places.push_back(nest.offset);
    members.push_back(nest.list.empty() ? looped(nest) : listed(nest));
    if (nest.list.empty()) merge(nest.loops, nest.element);
    side.nests.push_back(std::move(nest));
  }
  side.layout = Layout::structure(std::vector<std::int64_t>(members.size(), 1), places, members).value();
  if (side.base + side.layout.true_lower_bound() < 0 || side.base + side.layout.true_lower_bound() + side.layout.true_extent() > side.span)
    throw std::invalid_argument("a layout that reaches beyond its memory");
  return side;
}

bool has_blocks(const std::vector<DrawnNest>& nests) {
  for (const DrawnNest& nest : nests) {
    const bool unit = !nest.list.empty() ? nest.lengths.size() > 1 || nest.lengths[0] > 1 : nest.loops[kLoops - 1].stride == nest.element;
    if (unit) return true;
  }
  return false;
}

}  // namespace lacuna::bench
