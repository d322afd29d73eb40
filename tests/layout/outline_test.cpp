// Outlines: exact where they say so, near the truth where they sample, and never a walk over all runs.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "tests/support/cpu_time.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Intersection;
using layout::Layout;
using layout::outline;
using layout::Outline;
using layout::PairOutline;
using support::Random;
using support::value;

Layout bytes(std::int64_t n) { return value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t block, std::int64_t stride) {
  return value(Layout::hvector(count, 1, stride, bytes(block)));
}

// Blocks of `least` to `most` bytes, a gap of 1 to 9 bytes behind each.
Layout irregular(Random& random, std::int64_t total, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> lengths;
  for (std::int64_t at = 0, left = total; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, random.between(least, most)));
    offsets.push_back(at);
    at += lengths.back() + random.between(1, 9);
  }
  return value(Layout::blocks(offsets, lengths));
}

double pieces_of(const Layout& src, const Layout& dst) {
  Intersection all = value(Intersection::of(src, dst));
  double pieces = 0;
  while (all.next().length > 0) ++pieces;
  return pieces;
}

// --- one layout ------------------------------------------------------------------------------------------------------

TEST(Outline, OfNothing) {
  for (const Layout& empty : {Layout(), bytes(0), vector(5, 0, 10)}) {
    const Outline o = outline(empty);
    EXPECT_EQ(o.bytes, 0);
    EXPECT_EQ(o.runs, 0);
    EXPECT_EQ(o.span, 0);
    EXPECT_EQ(o.lines, 0);
    EXPECT_EQ(o.pages, 0);
    EXPECT_EQ(o.listed, 0);
    EXPECT_EQ(o.uneven, 0);
    EXPECT_TRUE(o.contiguous());
  }
}

TEST(Outline, OfARun) {
  const Outline o = outline(bytes(6400));
  EXPECT_EQ(o.bytes, 6400);
  EXPECT_EQ(o.runs, 1);
  EXPECT_EQ(o.span, 6400);
  EXPECT_EQ(o.stride, 0);
  EXPECT_EQ(o.listed, 0);
  EXPECT_EQ(o.uneven, 0);
  EXPECT_EQ(o.lines, 101);  // it may begin anywhere in a line
  EXPECT_TRUE(o.contiguous());
}

TEST(Outline, OfALoop) {
  const Outline o = outline(vector(100, 200, 6000));
  EXPECT_EQ(o.bytes, 20'000);
  EXPECT_EQ(o.runs, 100);
  EXPECT_EQ(o.span, 99 * 6000 + 200);
  EXPECT_EQ(o.stride, 6000);
  EXPECT_EQ(o.listed, 0);
  EXPECT_NEAR(o.uneven, 0, 1e-6);
  EXPECT_DOUBLE_EQ(o.lines, 20'000 / 64.0 + 100 + 1);
  EXPECT_DOUBLE_EQ(o.pages, 20'000 / 4096.0 + 100 + 1);
  EXPECT_FALSE(o.contiguous());
  EXPECT_EQ(outline(vector(100, 200, -6000)).stride, -6000);
}

// Runs that lie close share their lines: there are no more of them than the span has.
TEST(Outline, LinesEndWhereTheSpanDoes) {
  const Outline o = outline(vector(1000, 1, 2));
  EXPECT_DOUBLE_EQ(o.lines, 1999 / 64.0 + 1);
  EXPECT_DOUBLE_EQ(o.pages, 1999 / 4096.0 + 1);
}

TEST(Outline, OfBlocks) {
  const std::int64_t offsets[] = {0, 20, 50};
  const std::int64_t lengths[] = {10, 10, 40};
  const Outline o = outline(value(Layout::blocks(offsets, lengths)));
  EXPECT_EQ(o.bytes, 60);
  EXPECT_EQ(o.runs, 3);
  EXPECT_EQ(o.span, 90);
  EXPECT_EQ(o.stride, 0);
  EXPECT_EQ(o.listed, 1);
  EXPECT_NEAR(o.uneven, std::sqrt(200.0) / 20, 1e-12);  // 10, 10, 40: mean 20, variance (100 + 100 + 400) / 3
}

TEST(Outline, OfEqualBlocksAtListedPlaces) {
  const std::int64_t pages[] = {3, 9, 4, 17};
  const Outline o = outline(value(Layout::paged(64, pages)));
  EXPECT_EQ(o.runs, 4);
  EXPECT_EQ(o.listed, 1);
  EXPECT_NEAR(o.uneven, 0, 1e-6);
}

// Three runs of 4 bytes from a loop, one of 12 behind them: half a loop, so to speak.
TEST(Outline, OfAStruct) {
  const std::int64_t lengths[] = {1, 1};
  const std::int64_t places[] = {0, 1000};
  const Layout members[] = {vector(9, 4, 10), vector(3, 12, 100)};
  const Outline o = outline(value(Layout::structure(lengths, places, members)));
  EXPECT_EQ(o.bytes, 72);
  EXPECT_EQ(o.runs, 12);
  EXPECT_EQ(o.stride, 0);
  EXPECT_NEAR(o.uneven, std::sqrt(12.0) / 6, 1e-12);  // mean 6, variance (9 * 4 + 3 * 36) / 12
}

TEST(Outline, BytesRunsAndSpanAreExact) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const support::Sample sample = support::random_layout(seed);
    const Outline o = outline(sample.layout);
    SCOPED_TRACE(sample.recipe);
    ASSERT_EQ(o.bytes, sample.layout.size());
    ASSERT_EQ(o.runs, sample.layout.run_count());
    ASSERT_EQ(o.span, sample.layout.true_extent());
    ASSERT_GE(o.listed, 0);
    ASSERT_LE(o.listed, 1 + 1e-9);
    ASSERT_GE(o.uneven, 0);
    ASSERT_TRUE(std::isfinite(o.uneven));
    if (o.runs <= 1) {
      ASSERT_NEAR(o.uneven, 0, 1e-6);
    }
  }
}

// --- pairs -----------------------------------------------------------------------------------------------------------

TEST(PairOutline, OfLoopsIsExact) {
  for (const auto& [ours, theirs] : {std::pair{24, 24}, {24, 12}, {24, 36}, {1, 1000}, {7, 11}, {1000, 1001}}) {
    const std::int64_t total = std::int64_t{24} * 36 * 1000 * 1001;  // a multiple of each pair's common multiple
    const Layout src = vector(total / ours, ours, ours + 5);
    const Layout dst = vector(total / theirs, theirs, theirs + 3);
    const PairOutline pair = outline(src, dst);
    const double common = static_cast<double>(total / std::lcm(ours, theirs));
    EXPECT_EQ(pair.pieces, static_cast<double>(src.run_count() + dst.run_count()) - common) << ours << " to " << theirs;
    EXPECT_EQ(pair.paired, static_cast<double>(std::max(src.run_count(), dst.run_count())));
  }
}

TEST(PairOutline, OfFewRunsIsExact) {
  int looked_at = 0;
  for (std::uint64_t seed = 0; looked_at < 2000; ++seed) {
    Random random(seed);
    const support::Sample src = support::random_layout(random, {.runs = 20, .bytes = 600});
    const support::Sample dst = support::random_layout_of_size(random, src.layout.size(), {.runs = 20, .bytes = 600});
    if (src.layout.run_count() + dst.layout.run_count() > 32 || src.layout.size() == 0) continue;
    ++looked_at;
    const PairOutline pair = outline(src.layout, dst.layout);
    ASSERT_NEAR(pair.pieces, pieces_of(src.layout, dst.layout), 1e-9) << src.recipe << "\n" << dst.recipe;
    ASSERT_NEAR(pair.paired, static_cast<double>(std::max(src.layout.run_count(), dst.layout.run_count())), 1e-9);
  }
}

// As many pieces as the finer side has runs at least, as all boundaries of both make at most; the same either way
// round.
TEST(PairOutline, IsBoundedAndSymmetric) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    const support::Sample src = support::random_layout(random);
    const support::Sample dst = support::random_layout_of_size(random, src.layout.size());
    const PairOutline there = outline(src.layout, dst.layout);
    const PairOutline back = outline(dst.layout, src.layout);
    SCOPED_TRACE(src.recipe + "\n" + dst.recipe);
    const auto runs = static_cast<double>(there.src.runs + there.dst.runs);
    const auto finer = static_cast<double>(std::max(there.src.runs, there.dst.runs));
    ASSERT_GE(there.pieces, finer);
    ASSERT_GE(there.paired, finer);
    ASSERT_LE(there.pieces, std::max(0.0, runs - 1) + 1e-9);
    ASSERT_LE(there.paired, std::max(0.0, runs - 1) + 1e-9);
    ASSERT_NEAR(there.pieces, back.pieces, 1e-9 * runs);
    ASSERT_NEAR(there.paired, back.paired, 1e-9 * runs);
  }
}

// Lists too long to walk: six windows of a dozen runs tell within a fifth where boundaries meet now and then, as they
// do by chance.
TEST(PairOutline, OfLongIrregularListsIsNear) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    const std::int64_t most = random.between(4, 200);
    const Layout src = irregular(random, 100'000, 1, most);
    const Layout dst = irregular(random, 100'000, 1, random.between(4, 200));
    const double exact = pieces_of(src, dst);
    EXPECT_NEAR(outline(src, dst).pieces, exact, 0.2 * exact) << "seed " << seed;
  }
}

TEST(PairOutline, OfOneLayoutHasItsRuns) {
  Random random(1);
  const Layout list = irregular(random, 100'000, 1, 50);
  const Layout moved = value(Layout::resized(list, 0, list.extent() + 100));
  EXPECT_EQ(outline(list, moved).pieces, static_cast<double>(list.run_count()));
}

TEST(PairOutline, OfAContiguousSideHasTheOthersRuns) {
  const PairOutline pair = outline(vector(100, 7, 9), bytes(700));
  EXPECT_EQ(pair.pieces, 100);
  EXPECT_EQ(pair.paired, 100);
  EXPECT_EQ(pair.bytes(), 700);
  EXPECT_EQ(outline(bytes(8), bytes(8)).pieces, 1);
  EXPECT_EQ(outline(Layout(), Layout()).pieces, 0);
}

// Where one side is fine the other is coarse: a pair of lists is filled by the finer one everywhere, which is more than
// either side has.
TEST(PairOutline, PairsPlaceByPlace) {
  const std::int64_t one[] = {1, 1};
  const std::int64_t behind[] = {0, 1'000'000};
  const Layout fine_first[] = {vector(1000, 10, 20), vector(10, 1000, 2000)};
  const Layout fine_last[] = {vector(10, 1000, 2000), vector(1000, 10, 20)};
  const PairOutline pair = outline(value(Layout::structure(one, behind, fine_first)), value(Layout::structure(one, behind, fine_last)));
  EXPECT_EQ(pair.src.runs, 1010);
  EXPECT_NEAR(pair.pieces, 2000, 200);
  EXPECT_NEAR(pair.paired, 2000, 200);
}

// --- large ones ------------------------------------------------------------------------------------------------------

// Whatever the number of runs: it looks at some of them. A walk of them all takes this thread's CPU hundreds of times
// as long.
void expect_quick(const Layout& src, const Layout& dst) {
  const std::int64_t outlined = test::least_cpu_ns(20, [&] { EXPECT_GT(outline(src, dst).pieces, 0); });
  const std::int64_t walked = test::least_cpu_ns(1, [&] {
    std::int64_t bytes = 0;
    for (layout::Cursor cursor(src); !cursor.done();) bytes += cursor.next_run(layout::kMaxBytes).length;
    EXPECT_EQ(bytes, src.size());
  });
  EXPECT_LT(10 * outlined, walked) << "ns";
}

TEST(PairOutline, OfAMillionBlocks) {
  Random random(5);
  const Layout src = irregular(random, 20'000'000, 1, 39);
  const Layout dst = irregular(random, 20'000'000, 10, 30);
  ASSERT_GT(src.run_count(), 900'000);
  const PairOutline pair = outline(src, dst);
  EXPECT_EQ(pair.src.listed, 1);
  EXPECT_NEAR(pair.src.uneven, std::sqrt((39 * 39 - 1) / 12.0) / 20, 0.15);  // uniform from 1 to 39
  expect_quick(src, dst);
}

TEST(PairOutline, OfNestedSequences) {
  Random random(7);
  Layout nested = vector(3, 5, 8);
  for (int level = 0; level < 12; ++level) {
    std::vector<Layout> members;
    std::vector<std::int64_t> places;
    const std::vector<std::int64_t> lengths(5, 1);
    for (std::int64_t i = 0; i < 5; ++i) {
      members.push_back(i % 2 == 0 ? nested : value(Layout::contiguous(i + 1, vector(2, level + 2, 3 * level + 7))));
      places.push_back(i * (nested.true_extent() + random.between(100, 200)));
    }
    nested = value(Layout::structure(lengths, places, members));
  }
  const Outline o = outline(nested);
  EXPECT_EQ(o.runs, nested.run_count());
  EXPECT_GT(o.runs, 500'000);
  EXPECT_TRUE(std::isfinite(o.uneven));
  expect_quick(nested, vector(nested.size(), 1, 2));
  expect_quick(nested, bytes(nested.size()));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
