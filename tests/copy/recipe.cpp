#include "tests/copy/recipe.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tests/support/random_layout.hpp"

namespace lacuna::copy_test {
namespace {

using support::value;

// Long lists are cut: the seed beside them gives the rest.
std::string text_of(const List& list) {
  constexpr std::size_t shown = 48;
  std::string out = "[";
  for (std::size_t i = 0; i < std::min(shown, list.size()); ++i) out += fmt::format("{}{}", i == 0 ? "" : ",", list[i]);
  if (list.size() > shown) out += fmt::format(",... {} in all", list.size());
  return out + "]";
}

}  // namespace

bool Recipe::receives() const {
  const auto overlaps = layout.overlaps();
  return overlaps && !*overlaps;
}

Recipe bytes(std::int64_t count) { return {value(Layout::bytes(count)), fmt::format("bytes({})", count)}; }

Recipe hvector(std::int64_t count, std::int64_t stride, const Recipe& old) {
  std::string text = fmt::format("hvector({}, 1, {}, {})", count, stride, old.text);
  return {value(Layout::hvector(count, 1, stride, old.layout), text), text};
}

Recipe hindexed_block(const List& offsets, const Recipe& old) {
  std::string text = fmt::format("hindexed_block(1, {}, {})", text_of(offsets), old.text);
  return {value(Layout::hindexed_block(1, offsets, old.layout), text), text};
}

Recipe structure(const List& offsets, const std::vector<Recipe>& members) {
  std::vector<Layout> layouts;
  std::string recipes;
  for (const Recipe& member : members) {
    layouts.push_back(member.layout);
    recipes += (recipes.empty() ? "" : "; ") + member.text;
  }
  std::string text = fmt::format("structure(1, {}, {{{}}})", text_of(offsets), recipes);
  return {value(Layout::structure(List(members.size(), 1), offsets, layouts), text), text};
}

Recipe blocks(const List& offsets, const List& lengths) {
  std::string text = fmt::format("blocks({}, {})", text_of(offsets), text_of(lengths));
  return {value(Layout::blocks(offsets, lengths), text), text};
}

Recipe strided(std::int64_t item, const List& shape, const List& strides) {
  std::string text = fmt::format("strided({}, {}, {})", item, text_of(shape), text_of(strides));
  return {value(Layout::strided(item, shape, strides), text), text};
}

}  // namespace lacuna::copy_test
