// overlaps() tells exactly whether some byte occurs twice, without looking at each byte where the shape decides it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using layout::Order;
using support::Random;
using support::Sample;
using support::value;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kMega = std::int64_t{1} << 20;

Layout bytes(std::int64_t count) { return value(Layout::bytes(count)); }
bool overlaps(const Layout& layout) { return value(layout.overlaps(), layout.describe()); }

TEST(Overlap, EqualsBruteForce) {
  int both[2] = {0, 0};
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    const Sample sample = support::random_layout(seed);
    const bool expected = sample.typemap.overlaps();
    ASSERT_EQ(overlaps(sample.layout), expected) << "seed " << seed << ": " << sample.recipe << "\n" << sample.layout.describe();
    ASSERT_EQ(overlaps(sample.layout), expected) << "the second time";
    ++both[expected ? 1 : 0];
  }
  EXPECT_GT(both[0], 1000);
  EXPECT_GT(both[1], 1000);
}

// Nests of two or three loops over one block: strides and counts so small that every way of interleaving occurs.
TEST(Overlap, SmallNestsEqualBruteForce) {
  Random random(51);
  int overlapping = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t item = random.between(1, 4);
    List shape;
    List strides;
    for (std::int64_t dims = random.between(1, 3); dims > 0; --dims) {
      shape.push_back(random.between(2, 5));
      strides.push_back(random.between(-25, 25));
    }
    const bool expected = naive::strided(item, shape, strides).overlaps();
    ASSERT_EQ(overlaps(value(Layout::strided(item, shape, strides))), expected) << value(Layout::strided(item, shape, strides)).describe();
    overlapping += expected ? 1 : 0;
  }
  EXPECT_GT(overlapping, 3000);
  EXPECT_LT(overlapping, 17'000);
}

// More runs than are sorted, and neighbours that touch: the form is no loop any more, but knows the loops that it was
// made of.
TEST(Overlap, LoopsHiddenByTouchingRunsDecide) {
  const List shape{256, 16, 8, 128, 8};
  EXPECT_FALSE(overlaps(value(Layout::strided(1, shape, List{8192, 2097152, 1024, 1, 128}))));
  // The outermost steps are a byte too short.
  EXPECT_TRUE(overlaps(value(Layout::strided(1, List{3, 8, 128, 8}, List{8191, 1024, 1, 128}))));
}

TEST(Overlap, InterleavedMembersEqualBruteForce) {
  Random random(52);
  for (int i = 0; i < 5000; ++i) {
    const Sample a = support::random_layout(random, {.depth = 2, .runs = 20, .bytes = 100, .span = 200});
    const Sample b = support::random_layout(random, {.depth = 2, .runs = 20, .bytes = 100, .span = 200});
    const List ones = {1, 1};
    const List offsets = {0, random.between(-100, 100)};
    const Layout both = value(Layout::structure(ones, offsets, std::vector{a.layout, b.layout}));
    ASSERT_EQ(overlaps(both), naive::structure(ones, offsets, std::vector{a.typemap, b.typemap}).overlaps()) << both.describe();
  }
}

// Lists long enough to be marked on a map, with grains of every size, and so far apart that they are sorted: against a
// sorted copy.
TEST(Overlap, OfLongListsEqualsSorting) {
  Random random(53);
  int both[2] = {0, 0};
  for (int i = 0; i < 600; ++i) {
    const std::int64_t count = random.between(2, 300);
    const std::int64_t grain = std::int64_t{1} << random.between(0, 9);
    const bool uniform = random.one_in(2);
    const std::int64_t longest = random.between(1, 200);
    const std::int64_t room = random.one_in(4) ? std::int64_t{1} << 40 : count * (longest + random.between(0, 20)) * 2;
    List offsets;
    List lengths;
    std::vector<layout::Run> runs;
    for (std::int64_t j = 0; j < count; ++j) {
      lengths.push_back(grain * (uniform ? longest : random.between(1, longest)));
      offsets.push_back(grain * random.between(-room, room));
    }
    if (random.one_in(2)) {  // no two that meet: one behind another, in any order
      std::vector<std::int64_t> order(static_cast<std::size_t>(count));
      for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::int64_t>(j);
      random.shuffle(order);
      std::int64_t at = -grain * random.between(0, 1000);
      for (const std::int64_t j : order) {
        offsets[static_cast<std::size_t>(j)] = at;
        at += lengths[static_cast<std::size_t>(j)] + grain * random.between(0, 3);
      }
      if (random.one_in(2)) offsets[static_cast<std::size_t>(random.below(count))] += random.between(-2, 2) * grain;
    }
    for (std::size_t j = 0; j < offsets.size(); ++j) runs.push_back({offsets[j], lengths[j]});
    std::ranges::sort(runs);
    bool expected = false;
    for (std::size_t j = 1; j < runs.size(); ++j) expected = expected || runs[j].offset < runs[j - 1].offset + runs[j - 1].length;
    const Layout layout = value(Layout::blocks(offsets, lengths));
    ASSERT_EQ(overlaps(layout), expected) << layout.describe();
    ++both[expected ? 1 : 0];
  }
  EXPECT_GT(both[0], 100);
  EXPECT_GT(both[1], 100);
}

TEST(Overlap, OfATransposeIsDecidedByItsShape) {
  // FFT2's scatter at 10^12 runs: the inner loop strides over the outer one.
  const Layout column = value(Layout::resized(value(Layout::vector(kMega, 1, kMega, bytes(16))), 0, 16));
  const Layout transpose = value(Layout::contiguous(kMega, column));
  EXPECT_EQ(transpose.run_count(), kMega * kMega);
  EXPECT_FALSE(overlaps(transpose));
  const Layout too_close = value(Layout::hvector(kMega, 1, 15, column));
  EXPECT_TRUE(overlaps(too_close));
}

TEST(Overlap, OfLargeNestsIsDecidedByTheirShape) {
  const std::int64_t n = 10'000;
  // A box of an array, its dimensions in every order, forwards and backwards: n^3 runs.
  const List steps = {24, 24 * (n + 1), 24 * (n + 1) * (n + 7)};
  for (const List& order : {List{0, 1, 2}, List{0, 2, 1}, List{1, 0, 2}, List{1, 2, 0}, List{2, 0, 1}, List{2, 1, 0}}) {
    List strides;
    for (const std::int64_t dim : order) strides.push_back((dim == 1 ? -1 : 1) * steps[static_cast<std::size_t>(dim)]);
    EXPECT_FALSE(overlaps(value(Layout::strided(8, List{n, n, n}, strides))));
  }
  // Broadcast along one dimension.
  EXPECT_TRUE(overlaps(value(Layout::strided(8, List{n, n, n}, List{24, 0, 24 * n}))));
  // More bytes than there is room for.
  EXPECT_TRUE(overlaps(value(Layout::strided(8, List{n, n, n}, List{8, 16, 24}))));
}

TEST(Overlap, OfLargeStructsIsDecidedByTheirShape) {
  const Layout far = value(Layout::strided(8, List{kMega, kMega}, List{16 * kMega, 16}));
  const std::int64_t span = far.true_extent();
  EXPECT_FALSE(overlaps(value(Layout::structure(List{1, 1}, List{0, span}, std::vector{far, far}))));
  EXPECT_TRUE(overlaps(value(Layout::structure(List{1, 2}, List{0, span}, std::vector{far, value(Layout::resized(far, 0, 0))}))));
}

TEST(Overlap, OfInterleavedFieldsIsDecidedOrSaysThatItIsNot) {
  // Two fields of an array of structs, field after field, 10^12 runs each: disjoint, but their intervals are not.
  const Layout field = value(Layout::strided(4, List{kMega, kMega}, List{16 * kMega, 16}));
  const Layout fields = value(Layout::structure(List{1, 1}, List{0, 8}, std::vector{field, field}));
  const auto answer = fields.overlaps();
  if (answer.has_value()) {
    EXPECT_FALSE(*answer);
  } else {
    EXPECT_EQ(answer.error().code, base::Code::limit);
  }
}

TEST(Overlap, TouchingIsNotOverlapping) {
  EXPECT_FALSE(overlaps(Layout()));
  EXPECT_FALSE(overlaps(bytes(100)));
  EXPECT_FALSE(overlaps(value(Layout::blocks(List{8, 0, 4}, List{4, 4, 4}))));
  EXPECT_TRUE(overlaps(value(Layout::blocks(List{8, 0, 4}, List{4, 4, 5}))));
  EXPECT_TRUE(overlaps(value(Layout::blocks(List{0, 0}, List{1, 1}))));
  EXPECT_FALSE(overlaps(value(Layout::hvector(5, 1, -8, bytes(8)))));
  EXPECT_TRUE(overlaps(value(Layout::hvector(5, 1, -7, bytes(8)))));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
