// The constructors mean what MPI-4.1 section 5.1 says: random nests against the naive typemap, and the standard's
// examples.
#include <gtest/gtest.h>

#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Distribution;
using layout::Layout;
using layout::Order;
using support::runs_of;
using support::value;
using List = std::vector<std::int64_t>;
using Runs = std::vector<layout::Run>;

TEST(Constructors, EqualTheNaiveTypemap) {
  for (std::uint64_t seed = 0; seed < 20000; ++seed) {
    const support::Sample sample = support::random_layout(seed);
    const Layout& layout = sample.layout;
    const naive::Typemap& map = sample.typemap;
    const Runs merged = map.merged();
    ASSERT_EQ(runs_of(layout), merged) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.size(), map.size()) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.run_count(), std::ssize(merged)) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.contiguous_bytes(), merged.size() <= 1) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.lower_bound(), map.lb) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.extent(), map.extent()) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.true_lower_bound(), map.true_lb()) << "seed " << seed << ": " << sample.recipe;
    ASSERT_EQ(layout.true_extent(), map.true_extent()) << "seed " << seed << ": " << sample.recipe;
  }
}

// The standard's oldtype {(double, 0), (char, 8)}, whose extent its epsilon pads to 16.
Layout double_char() {
  const Layout packed = value(Layout::structure(List{1, 1}, List{0, 8}, std::vector{value(Layout::bytes(8)), value(Layout::bytes(1))}));
  return value(Layout::resized(packed, 0, 16));
}

TEST(Constructors, StandardExampleContiguous) {
  const Layout type = value(Layout::contiguous(3, double_char()));
  EXPECT_EQ(runs_of(type), (Runs{{0, 9}, {16, 9}, {32, 9}}));
  EXPECT_EQ(type.extent(), 48);
  EXPECT_EQ(type.true_extent(), 41);
}

TEST(Constructors, StandardExampleVector) {
  const Layout type = value(Layout::vector(2, 3, 4, double_char()));
  EXPECT_EQ(runs_of(type), (Runs{{0, 9}, {16, 9}, {32, 9}, {64, 9}, {80, 9}, {96, 9}}));
  EXPECT_EQ(type.extent(), 112);
  const Layout backwards = value(Layout::vector(3, 1, -2, double_char()));
  EXPECT_EQ(runs_of(backwards), (Runs{{0, 9}, {-32, 9}, {-64, 9}}));
  EXPECT_EQ(backwards.lower_bound(), -64);
  EXPECT_EQ(backwards.extent(), 80);
}

TEST(Constructors, StandardExampleIndexed) {
  const Layout type = value(Layout::indexed(List{3, 1}, List{4, 0}, double_char()));
  EXPECT_EQ(runs_of(type), (Runs{{64, 9}, {80, 9}, {96, 9}, {0, 9}}));
  EXPECT_EQ(type.extent(), 112);
}

TEST(Constructors, StandardExampleStruct) {
  const std::vector<Layout> members = {value(Layout::bytes(4)), double_char(), value(Layout::bytes(1))};
  const Layout type = value(Layout::structure(List{2, 1, 3}, List{0, 16, 26}, members));
  EXPECT_EQ(runs_of(type), (Runs{{0, 8}, {16, 9}, {26, 3}}));
}

TEST(Constructors, StandardExampleLowerTriangle) {
  // Example 5.15: the transposed upper triangle of a 100 x 100 matrix is indexed(100, ...).
  List lengths;
  List offsets;
  for (std::int64_t i = 0; i < 100; ++i) {
    offsets.push_back(100 * i + i);
    lengths.push_back(100 - i);
  }
  const Layout type = value(Layout::indexed(lengths, offsets, value(Layout::bytes(8))));
  EXPECT_EQ(type.size(), 8 * 5050);
  EXPECT_EQ(type.run_count(), 100);
}

TEST(Constructors, StandardExampleMarkers) {
  const Layout type1 = value(Layout::resized(value(Layout::bytes(4)), -3, 9));
  const Layout type2 = value(Layout::contiguous(2, type1));
  EXPECT_EQ(runs_of(type2), (Runs{{0, 4}, {9, 4}}));
  EXPECT_EQ(type2.lower_bound(), -3);
  EXPECT_EQ(type2.extent(), 18);
}

TEST(Constructors, MarkersAloneBoundAStruct) {
  // "min over the lb_markers, if there is one": what lies outside them does not move the bounds.
  const std::vector<Layout> members = {value(Layout::resized(value(Layout::bytes(4)), 0, 8)), value(Layout::bytes(4))};
  const Layout type = value(Layout::structure(List{1, 1}, List{0, 16}, members));
  EXPECT_EQ(type.lower_bound(), 0);
  EXPECT_EQ(type.extent(), 8);
  EXPECT_EQ(type.true_extent(), 20);
}

TEST(Constructors, MembersWithoutBytesHaveNoBounds) {
  const Layout none = value(Layout::bytes(0));
  const Layout byte = value(Layout::bytes(1));
  const Layout type = value(Layout::structure(List{1, 0, 2}, List{100, -100, 10}, std::vector{none, byte, byte}));
  EXPECT_EQ(type.lower_bound(), 10);
  EXPECT_EQ(type.extent(), 2);
  EXPECT_EQ(value(Layout::hvector(3, 1, 50, none)).extent(), 0);
}

TEST(Constructors, SubarrayIsABoxOfTheWholeArray) {
  const Layout element = value(Layout::bytes(1));
  const Layout c = value(Layout::subarray(List{4, 6}, List{2, 3}, List{1, 2}, Order::c, element));
  EXPECT_EQ(runs_of(c), (Runs{{8, 3}, {14, 3}}));
  EXPECT_EQ(c.lower_bound(), 0);
  EXPECT_EQ(c.extent(), 24);
  const Layout fortran = value(Layout::subarray(List{4, 6}, List{2, 3}, List{1, 2}, Order::fortran, element));
  EXPECT_EQ(runs_of(fortran), (Runs{{9, 2}, {13, 2}, {17, 2}}));
}

TEST(Constructors, DarrayCoversTheArrayOnce) {
  // MPI-4.1 example 5.16: cyclic(10), none, block over a 2 x 1 x 3 grid, at a smaller size.
  const List sizes = {10, 4, 6};
  const List grid = {2, 1, 3};
  const List blocks = {2, layout::kDefaultBlock, layout::kDefaultBlock};
  const std::vector<Distribution> distributions = {Distribution::cyclic, Distribution::none, Distribution::block};
  std::vector<int> owners(10 * 4 * 6, 0);
  for (std::int64_t rank = 0; rank < 6; ++rank) {
    const Layout part = value(Layout::darray(6, rank, sizes, distributions, blocks, grid, Order::fortran, value(Layout::bytes(1))));
    EXPECT_EQ(part.extent(), 240);
    for (const layout::Run& run : runs_of(part)) {
      for (std::int64_t at = run.offset; at < run.offset + run.length; ++at) ++owners.at(static_cast<std::size_t>(at));
    }
  }
  EXPECT_EQ(owners, std::vector<int>(240, 1));
}

TEST(Constructors, StridedFollowsNumPy) {
  // A reversed, transposed view of a 2 x 3 array of 4-byte items.
  const Layout view = value(Layout::strided(4, List{3, 2}, List{-4, 12}));
  EXPECT_EQ(runs_of(view), (Runs{{0, 4}, {12, 4}, {-4, 4}, {8, 4}, {-8, 4}, {4, 4}}));
  EXPECT_EQ(value(Layout::strided(4, {}, {})).size(), 4);  // a scalar
  EXPECT_EQ(value(Layout::strided(4, List{3, 0, 5}, List{0, 0, 0})).size(), 0);
}

TEST(Constructors, PagedScalesPageNumbers) {
  EXPECT_EQ(runs_of(value(Layout::paged(4096, List{7, 2, 3, 9}))), (Runs{{28672, 4096}, {8192, 8192}, {36864, 4096}}));
}

TEST(Constructors, TheEmptyLayout) {
  const Layout empty;
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.extent(), 0);
  EXPECT_EQ(empty.run_count(), 0);
  EXPECT_TRUE(empty.contiguous_bytes());
  EXPECT_TRUE(runs_of(empty).empty());
  EXPECT_EQ(empty.digest(), value(Layout::contiguous(0, double_char())).digest());
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
