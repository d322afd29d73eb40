// Layouts that know how they were made: each constructor writes its call beside the layout, for failure messages.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::copy_test {

using layout::Layout;
using List = std::vector<std::int64_t>;

struct Recipe {
  Layout layout;
  std::string text;

  [[nodiscard]] std::int64_t size() const { return layout.size(); }
  [[nodiscard]] std::int64_t low() const { return layout.true_lower_bound(); }
  [[nodiscard]] std::int64_t high() const { return low() + span(); }
  [[nodiscard]] std::int64_t span() const { return layout.true_extent(); }
  /// No byte occurs twice: one may receive into it.
  [[nodiscard]] bool receives() const;
};

Recipe bytes(std::int64_t count);
Recipe hvector(std::int64_t count, std::int64_t stride, const Recipe& old);
Recipe hindexed_block(const List& offsets, const Recipe& old);
Recipe structure(const List& offsets, const std::vector<Recipe>& members);
Recipe blocks(const List& offsets, const List& lengths);
Recipe strided(std::int64_t item, const List& shape, const List& strides);

}  // namespace lacuna::copy_test
