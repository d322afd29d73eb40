// A slice has the bytes of its stretch, in order, in the form that they have by any other name.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using support::Random;
using support::Sample;
using support::value;

TEST(Slice, HasTheBytesOfItsStretch) {
  Random random(5);
  for (int round = 0; round < 3000; ++round) {
    const Sample sample = support::random_layout(random, {.runs = 400, .bytes = 8 << 10});
    const std::int64_t size = sample.layout.size();
    const std::int64_t from = random.between(0, size);
    const std::int64_t length = random.between(0, size - from);
    const Layout slice = value(sample.layout.slice(from, length), sample.recipe);
    ASSERT_EQ(slice.size(), length) << sample.recipe;
    std::vector<std::int64_t> bytes;
    std::vector<std::int64_t> offsets;
    std::vector<std::int64_t> lengths;
    for (const layout::Run run : support::runs_of(slice)) {
      for (std::int64_t i = 0; i < run.length; ++i) bytes.push_back(run.offset + i);
      offsets.push_back(run.offset);
      lengths.push_back(run.length);
    }
    const std::vector<std::int64_t> all = sample.typemap.addresses();
    ASSERT_TRUE(std::equal(bytes.begin(), bytes.end(), all.begin() + from, all.begin() + from + length))
        << sample.recipe << " from " << from << " on, " << length;
    if (slice.run_count() <= 64)
      if (slice.run_count() <= 64) {
        EXPECT_TRUE(slice.same_runs(value(Layout::blocks(offsets, lengths)))) << slice.describe() << " <- " << sample.recipe;
      }
    if (length == 0) continue;
    EXPECT_EQ(slice.true_lower_bound(), *std::ranges::min_element(bytes));
    EXPECT_EQ(slice.lower_bound(), slice.true_lower_bound());
    EXPECT_EQ(slice.extent(), *std::ranges::max_element(bytes) + 1 - slice.true_lower_bound());
  }
}

TEST(Slice, OfAllIsTheSame) {
  Random random(6);
  for (int round = 0; round < 500; ++round) {
    const Sample sample = support::random_layout(random);
    EXPECT_TRUE(value(sample.layout.slice(0, sample.layout.size())).same_runs(sample.layout)) << sample.recipe;
  }
}

// A part of a large loop is a loop: nothing is spelled out.
TEST(Slice, OfALoopIsALoop) {
  const Layout row = value(Layout::vector(1000, 1, 2, value(Layout::bytes(8))));
  const Layout nest = value(Layout::hvector(std::int64_t{1} << 40, 1, 100'000, row));
  const Layout slice = value(nest.slice(8000 * 5 + 12, 8000 * ((std::int64_t{1} << 39) + 1)));
  EXPECT_EQ(slice.size(), 8000 * ((std::int64_t{1} << 39) + 1));
  EXPECT_LE(slice.depth(), nest.depth() + 2);
  EXPECT_EQ(value(nest.slice(8000 * 5, 8000 * 77)).describe(), "at 500000: " + value(Layout::hvector(77, 1, 100'000, row)).describe());
  EXPECT_EQ(value(nest.slice(8000 * 5, 8000 * 77)).true_lower_bound(), 500'000);
}

TEST(Slice, OutsideOfTheStreamIsRefused) {
  const Layout ten = value(Layout::bytes(10));
  for (const auto& [from, length] : {std::pair{-1, 2}, {0, 11}, {10, 1}, {3, -1}, {11, 0}})
    EXPECT_EQ(ten.slice(from, length).error().code, base::Code::invalid_argument) << from << ' ' << length;
  EXPECT_EQ(value(ten.slice(10, 0)).size(), 0);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
