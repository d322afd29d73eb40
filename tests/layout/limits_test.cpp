// Loops cost their depth, not their counts: with 10^15 runs everything that does not walk them answers at once.
// Anything that enumerated runs here would not end.
#include <gtest/gtest.h>

#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Cursor;
using layout::Intersection;
using layout::kMaxBytes;
using layout::Layout;
using layout::Order;
using layout::Piece;
using layout::Strip;
using support::value;
using List = std::vector<std::int64_t>;
using Runs = std::vector<layout::Run>;

constexpr std::int64_t kHundredThousand = 100'000;
constexpr std::int64_t kRuns = kHundredThousand * kHundredThousand * kHundredThousand;  // 10^15

Layout bytes(std::int64_t count) { return value(Layout::bytes(count)); }

// 8 bytes of every 16 of rows of padded planes.
Layout huge() {
  const std::int64_t row = 16 * kHundredThousand + 64;
  const std::int64_t plane = row * kHundredThousand + 4096;
  return value(Layout::strided(8, List{kHundredThousand, kHundredThousand, kHundredThousand}, List{plane, row, 16}));
}

TEST(HugeCounts, HaveProperties) {
  const Layout layout = huge();
  EXPECT_EQ(layout.run_count(), kRuns);
  EXPECT_EQ(layout.size(), 8 * kRuns);
  EXPECT_EQ(layout.depth(), 4);
  EXPECT_EQ(layout.describe(), "100000 x +160006404096 B { 100000 x +1600064 B { 100000 x +16 B { 8 B } } }");
  EXPECT_EQ(layout.true_lower_bound(), 0);
}

TEST(HugeCounts, HaveOneForm) {
  const std::int64_t n = kHundredThousand;
  const Layout row = value(Layout::vector(n, 1, 2, bytes(8)));
  const Layout expected = value(Layout::hvector(n, 1, 16 * n * n, value(Layout::hvector(n, 1, 16 * n, row))));
  EXPECT_EQ(expected.describe(), "1000000000000000 x +16 B { 8 B }");
  for (const Layout& other : {
           value(Layout::vector(n * n * n, 1, 2, bytes(8))),
           value(Layout::contiguous(n, value(Layout::resized(value(Layout::vector(n * n, 1, 2, bytes(8))), 0, 16 * n * n)))),
           value(Layout::subarray(List{n, n, n, 2}, List{n, n, n, 1}, List{0, 0, 0, 0}, Order::c, bytes(8))),
           value(Layout::subarray(List{2, n * n, n}, List{1, n * n, n}, List{0, 0, 0}, Order::fortran, bytes(8))),
           value(
               Layout::darray(2, 0, List{2 * n * n * n}, std::vector{layout::Distribution::cyclic}, List{1}, List{2}, Order::c, bytes(8))),
           value(Layout::strided(8, List{n, n * n}, List{16 * n * n, 16})),
       }) {
    EXPECT_EQ(other.digest(), expected.digest()) << other.describe();
  }
}

TEST(HugeCounts, Merge) {
  const std::int64_t n = kHundredThousand;
  EXPECT_EQ(value(Layout::contiguous(n * n, value(Layout::vector(n, 1, 1, bytes(8))))).describe(), "8000000000000000 B");
  EXPECT_EQ(value(Layout::subarray(List{n, n, n}, List{n, n, n}, List{0, 0, 0}, Order::c, bytes(8))).run_count(), 1);
  // A struct whose last field touches the next one's first: one run a struct, but for the two ends.
  const Layout element = value(Layout::resized(value(Layout::structure(List{1, 1}, List{0, 12}, std::vector{bytes(8), bytes(4)})), 0, 16));
  const Layout array = value(Layout::contiguous(n * n, element));
  EXPECT_EQ(array.run_count(), n * n + 1);
  EXPECT_EQ(array.size(), 12 * n * n);
  Cursor cursor(array);
  EXPECT_EQ(cursor.next_run(kMaxBytes), (Runs{{0, 8}}[0]));
  EXPECT_EQ(cursor.next_run(kMaxBytes), (Runs{{12, 12}}[0]));
  cursor.seek(array.size() - 4);
  EXPECT_EQ(cursor.next_run(kMaxBytes), (Runs{{16 * n * n - 4, 4}}[0]));
}

TEST(HugeCounts, Seek) {
  const Layout layout = huge();
  Cursor cursor(layout);
  const std::int64_t n = kHundredThousand;
  const std::int64_t row = 16 * n + 64;
  const std::int64_t plane = row * n + 4096;
  for (const List& index : {List{0, 0, 0}, List{99'999, 99'999, 99'999}, List{1, 2, 3}, List{50'000, 0, 99'999}, List{0, 70'000, 12'345}}) {
    cursor.seek(8 * ((index[0] * n + index[1]) * n + index[2]) + 5);
    EXPECT_EQ(cursor.next_run(kMaxBytes), (Runs{{index[0] * plane + index[1] * row + index[2] * 16 + 5, 3}}[0]));
  }
  cursor.seek(layout.size() - 8 * n);
  const Strip strip = cursor.next(kMaxBytes);
  EXPECT_EQ(strip.count, n);
  EXPECT_EQ(strip.stride, 16);
  EXPECT_TRUE(cursor.done());
}

TEST(HugeCounts, Intersect) {
  const Layout src = huge();
  const Layout dst = value(Layout::hvector(kRuns / 2, 1, 24, bytes(16)));
  Intersection pieces = value(Intersection::of(src, dst));
  pieces.seek(src.size() - 16);
  const Piece first = pieces.next();
  EXPECT_EQ(first.length, 8);
  EXPECT_EQ(first.dst, (kRuns / 2 - 1) * 24);
  const Piece last = pieces.next();
  EXPECT_EQ(last, (Piece{first.src + 16, first.dst + 8, 8}));
  EXPECT_TRUE(pieces.done());
}

TEST(HugeCounts, TravelAndCompare) {
  const Layout layout = huge();
  const Layout copy = value(layout::decode(layout::encode(layout)));
  EXPECT_TRUE(copy.same_runs(layout));
  EXPECT_FALSE(value(copy.overlaps()));
}

TEST(HugeCounts, StructsOfNestsStayShallow) {
  // Too long to be spelled out, and built up one member after the other: depth must not grow with the members, since
  // every peer limits the depth that it accepts.
  List pages;
  support::Random random(61);
  for (std::int64_t i = 0; i < 70'000; ++i) pages.push_back(3 * i + random.below(2));
  Layout layout = value(Layout::indexed_block(1, pages, bytes(4)));
  for (std::int64_t i = 0; i < 300; ++i) {
    layout = value(Layout::structure(List{1, 1}, List{0, 2'000'000 + i * i}, std::vector{layout, bytes(1)}));
  }
  EXPECT_LE(layout.depth(), 126);
  EXPECT_EQ(layout.size(), 4 * 70'000 + 300);
  EXPECT_EQ(value(layout::decode(layout::encode(layout))).digest(), layout.digest());
}

TEST(HugeCounts, LongListsAreWalkedRight) {
  // Beyond the length up to which nests are spelled out, lists are still lists, and still merge.
  List offsets;
  List lengths;
  support::Random random(62);
  naive::Typemap map;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < 100'000; ++i) {
    offsets.push_back(at);
    lengths.push_back(random.between(0, 9));
    if (lengths.back() > 0) map.runs.push_back({at, lengths.back()});
    at += lengths.back() + random.below(3);
  }
  const Layout list = value(Layout::blocks(offsets, lengths));
  EXPECT_EQ(support::runs_of(list), map.merged());
  EXPECT_EQ(list.run_count(), std::ssize(map.merged()));
  // Twice the list, as a nest: the middle runs touch and are one.
  const Layout twice = value(Layout::structure(List{1, 1}, List{0, list.true_extent()}, std::vector{list, list}));
  EXPECT_EQ(twice.size(), 2 * list.size());
  EXPECT_EQ(value(Layout::contiguous(2, value(Layout::resized(list, 0, 2 * at)))).run_count(), 2 * list.run_count());
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
