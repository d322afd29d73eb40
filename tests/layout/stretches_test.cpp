// A list in which a stretch just long enough repeats gets the form that every other constructor gives it: the short cut
// for lists of runs must not overlook it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using support::value;
using List = std::vector<std::int64_t>;

// Chance, a stretch of `repetitions` of `period` steps, chance. All steps of chance differ.
List offsets_with_stretch(std::int64_t period, std::int64_t repetitions, support::Random& random) {
  List offsets{0};
  std::int64_t unique = 1000;
  const auto chance = [&](int count) {
    for (int i = 0; i < count; ++i) offsets.push_back(offsets.back() + 8 * ++unique);
  };
  chance(40);
  List steps;
  for (std::int64_t i = 0; i < period; ++i) steps.push_back(8 * random.between(2, 900));
  for (std::int64_t i = 0; i < period * repetitions - 1; ++i)
    offsets.push_back(offsets.back() + steps[static_cast<std::size_t>(i % period)]);
  chance(40);
  return offsets;
}

TEST(Stretches, TheShortestLoopIsFoundWhicheverConstructorWroteIt) {
  support::Random random(8);
  for (std::int64_t period = 1; period <= 16; ++period) {
    for (const std::int64_t more : {-1, 0, 1}) {
      const std::int64_t repetitions = std::max<std::int64_t>(2, (16 + period - 1) / period) + more;
      if (repetitions < 1) continue;
      const List offsets = offsets_with_stretch(period, repetitions, random);
      const List ones(offsets.size(), 1);
      const List lengths(offsets.size(), 4);
      const Layout run = value(Layout::bytes(4));
      const Layout list = value(Layout::blocks(offsets, lengths));
      const Layout members = value(Layout::structure(ones, offsets, std::vector<Layout>(offsets.size(), run)));
      const Layout decoded = value(layout::decode(layout::encode(list)));
      EXPECT_EQ(list.describe(), members.describe()) << "period " << period << ", " << repetitions << " times";
      EXPECT_EQ(list.digest(), members.digest());
      EXPECT_EQ(list.digest(), decoded.digest());
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
