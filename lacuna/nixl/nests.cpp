#include "lacuna/nixl/nests.hpp"

#include <algorithm>
#include <vector>

namespace lacuna::nixl {
namespace {

// Neighbours in a list that are all as far from one another.
struct Stretch {
  std::int64_t at = 0;
  std::int64_t count = 1;
  std::int64_t stride = 0;
};

// A list of stretches that has less than a quarter of the list's entries is shorter, and quicker to work on; of
// others the layout's constructor makes more than a further pass would.
constexpr std::size_t kWorthIt = 4;

// The stretches of a list; none as soon as there are too many of them.
std::vector<Stretch> stretches_of(std::span<const std::int64_t> offsets) {
  std::vector<Stretch> found;
  for (std::size_t i = 0; i < offsets.size();) {
    if ((found.size() + 1) * kWorthIt > i + kWorthIt * kWorthIt) return {};
    Stretch next{.at = offsets[i]};
    if (i + 1 < offsets.size()) next.stride = offsets[i + 1] - offsets[i];
    std::size_t end = i + 1;
    while (end < offsets.size() && offsets[end] - offsets[end - 1] == next.stride) ++end;
    next.count = static_cast<std::int64_t>(end - i);
    found.push_back(next);
    i = end;
  }
  return found;
}

// Of stretches that are not alike.
Result<Layout> layout_of_stretches(std::span<const Stretch> stretches, const Layout& shape) {
  std::vector<std::int64_t> ones(stretches.size(), 1), places;
  std::vector<Layout> shapes;
  for (const Stretch& one : stretches) {
    places.push_back(one.at);
    shapes.push_back(LACUNA_TRY(Layout::hvector(one.count, 1, one.stride, shape)));
  }
  return Layout::structure(ones, places, shapes);
}

}  // namespace

Result<Layout> layout_of_pieces(std::int64_t length, std::span<const std::int64_t> offsets) {
  Layout shape = LACUNA_TRY(Layout::bytes(length));
  std::vector<std::int64_t> places;
  for (std::span<const std::int64_t> left = offsets;;) {
    const std::vector<Stretch> stretches = stretches_of(left);
    if (stretches.empty()) return Layout::hindexed_block(1, left, shape);
    const bool alike = std::ranges::all_of(
        stretches, [&](const Stretch& one) { return one.count == stretches[0].count && one.stride == stretches[0].stride; });
    if (!alike) return layout_of_stretches(stretches, shape);
    shape = LACUNA_TRY(Layout::hvector(stretches[0].count, 1, stretches[0].stride, shape));
    if (stretches.size() == 1) return shape;
    std::vector<std::int64_t> next;
    next.reserve(stretches.size());
    for (const Stretch& one : stretches) next.push_back(one.at);
    places = std::move(next);
    left = places;
  }
}

}  // namespace lacuna::nixl
