// Equal typemaps have one canonical form, whoever wrote them and however; different orders have different digests.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Distribution;
using layout::Layout;
using layout::Order;
using layout::Run;
using support::Random;
using support::Sample;
using support::value;
using List = std::vector<std::int64_t>;
using Runs = std::vector<Run>;  // inside a TEST, Run is a member of GoogleTest's class

void expect_same(const Layout& a, const Layout& b, const std::string& recipe) {
  ASSERT_EQ(a.describe(), b.describe()) << recipe;
  ASSERT_EQ(a.digest(), b.digest()) << recipe;
  ASSERT_EQ(a.depth(), b.depth()) << recipe;
  ASSERT_EQ(a.run_count(), b.run_count()) << recipe;
  ASSERT_EQ(a.true_lower_bound(), b.true_lower_bound()) << recipe;
  ASSERT_EQ(a.true_extent(), b.true_extent()) << recipe;
}

List iota(std::int64_t count, std::int64_t step) {
  List list;
  for (std::int64_t i = 0; i < count; ++i) list.push_back(i * step);
  return list;
}
List ones(std::size_t count) { return List(count, 1); }

Layout of_runs(const Runs& runs) {
  List offsets;
  List lengths;
  for (const Run& run : runs) {
    offsets.push_back(run.offset);
    lengths.push_back(run.length);
  }
  return value(Layout::blocks(offsets, lengths));
}

TEST(CanonicalForm, ContiguousByManyNames) {
  Random random(1);
  for (int i = 0; i < 2000; ++i) {
    const Sample sample = support::random_layout(random, {.depth = 3, .runs = 300});
    const Layout& old = sample.layout;
    const std::int64_t n = random.between(1, 12);
    const auto members = static_cast<std::size_t>(n);
    const std::int64_t ex = old.extent();
    const Layout expected = value(Layout::contiguous(n, old));
    for (const Layout& other : {
             value(Layout::vector(n, 1, 1, old)),
             value(Layout::vector(1, n, 99, old)),
             value(Layout::hvector(n, 1, ex, old)),
             value(Layout::indexed(ones(members), iota(n, 1), old)),
             value(Layout::indexed(List{n}, List{0}, old)),
             value(Layout::hindexed(List{n - 1, 1}, List{0, ex * (n - 1)}, old)),
             value(Layout::indexed_block(1, iota(n, 1), old)),
             value(Layout::hindexed_block(1, iota(n, ex), old)),
             value(Layout::structure(ones(members), iota(n, ex), std::vector<Layout>(members, old))),
             value(Layout::subarray(List{n}, List{n}, List{0}, Order::c, old)),
             value(Layout::subarray(List{n, 1}, List{n, 1}, List{0, 0}, Order::fortran, old)),
             value(Layout::darray(1, 0, List{n}, std::vector{Distribution::cyclic}, List{2}, List{1}, Order::c, old)),
         }) {
      expect_same(expected, other, sample.recipe);
    }
  }
}

TEST(CanonicalForm, VectorByManyNames) {
  Random random(2);
  for (int i = 0; i < 2000; ++i) {
    const Sample sample = support::random_layout(random, {.depth = 3, .runs = 100});
    const Layout& old = sample.layout;
    const std::int64_t n = random.between(1, 20);
    const std::int64_t block = random.between(1, 4);
    const std::int64_t stride = random.between(-6, 8);
    const auto members = static_cast<std::size_t>(n);
    const std::int64_t ex = old.extent();
    const Layout row = value(Layout::contiguous(block, old));
    const Layout expected = value(Layout::vector(n, block, stride, old));
    for (const Layout& other : {
             value(Layout::hvector(n, block, stride * ex, old)),
             value(Layout::hvector(n, 1, stride * ex, row)),
             value(Layout::indexed(List(members, block), iota(n, stride), old)),
             value(Layout::indexed_block(block, iota(n, stride), old)),
             value(Layout::structure(ones(members), iota(n, stride * ex), std::vector<Layout>(members, row))),
             value(Layout::contiguous(n, value(Layout::resized(row, -3, stride * ex)))),
         }) {
      expect_same(expected, other, sample.recipe);
    }
  }
}

TEST(CanonicalForm, LoopsSplitAndFuse) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const Sample sample = support::random_layout(random, {.depth = 3, .runs = 60});
    const std::int64_t outer = random.between(1, 8);
    const std::int64_t inner = random.between(1, 8);
    const std::int64_t stride = random.between(-200, 400);
    const Layout expected = value(Layout::hvector(outer * inner, 1, stride, sample.layout));
    const Layout inside = value(Layout::hvector(inner, 1, stride, sample.layout));
    expect_same(expected, value(Layout::hvector(outer, 1, inner * stride, inside)), sample.recipe);
    const std::int64_t head = random.between(0, outer * inner);
    const std::vector<Layout> parts = {value(Layout::hvector(head, 1, stride, sample.layout)),
                                       value(Layout::hvector(outer * inner - head, 1, stride, sample.layout))};
    expect_same(expected, value(Layout::structure(List{1, 1}, List{0, head * stride}, parts)), sample.recipe);
  }
}

TEST(CanonicalForm, BoundsHaveNoPartInIt) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Sample sample = support::random_layout(seed);
    expect_same(sample.layout, Layout::dup(sample.layout), sample.recipe);
    expect_same(sample.layout, value(Layout::resized(sample.layout, -77, 12345)), sample.recipe);
  }
}

TEST(CanonicalForm, SurvivesFlattening) {
  for (std::uint64_t seed = 0; seed < 8000; ++seed) {
    const Sample sample = support::random_layout(seed);
    expect_same(sample.layout, of_runs(sample.typemap.merged()), sample.recipe);
    if (seed % 4 == 0) expect_same(sample.layout, of_runs(sample.typemap.runs), sample.recipe);
  }
}

// The runs cut at random places, zero-length blocks strewn in.
Runs split(const Runs& runs, Random& random) {
  Runs out;
  for (Run run : runs) {
    while (run.length > 1 && random.one_in(2)) {
      const std::int64_t head = random.between(1, run.length - 1);
      out.push_back({run.offset, head});
      if (random.one_in(4)) out.push_back({random.between(-1000, 1000), 0});
      run = {run.offset + head, run.length - head};
    }
    out.push_back(run);
  }
  return out;
}

// The runs as a random tree of structs.
Layout random_tree(std::span<const Run> runs, Random& random) {
  if (runs.size() <= 1 || random.one_in(6)) return of_runs({runs.begin(), runs.end()});
  const auto middle = static_cast<std::size_t>(random.between(1, std::ssize(runs) - 1));
  const std::int64_t shift = random.between(-50, 50);
  Layout left = random_tree(runs.first(middle), random);
  Runs shifted(runs.begin() + static_cast<std::ptrdiff_t>(middle), runs.end());
  for (Run& run : shifted) run.offset -= shift;
  Layout right = random_tree(shifted, random);
  return value(Layout::structure(List{1, 1}, List{0, shift}, std::vector{std::move(left), std::move(right)}));
}

TEST(CanonicalForm, SurvivesSplittingAndRegrouping) {
  Random random(4);
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = support::random_layout(random, {.runs = 400});
    const Runs pieces = split(sample.typemap.merged(), random);
    expect_same(sample.layout, of_runs(pieces), sample.recipe);
    expect_same(sample.layout, random_tree(pieces, random), sample.recipe);
  }
}

TEST(CanonicalForm, OrderCounts) {
  Random random(5);
  int compared = 0;
  for (int i = 0; i < 3000; ++i) {
    const Sample sample = support::random_layout(random, {.runs = 300});
    Runs runs = sample.typemap.merged();
    if (runs.size() < 2) continue;
    std::swap(runs[static_cast<std::size_t>(random.below(std::ssize(runs)))],
              runs[static_cast<std::size_t>(random.below(std::ssize(runs)))]);
    naive::Typemap permuted;
    permuted.runs = runs;
    const bool same = permuted.merged() == sample.typemap.merged();
    ASSERT_EQ(of_runs(runs).digest() == sample.layout.digest(), same) << sample.recipe;
    compared += same ? 0 : 1;
  }
  EXPECT_GT(compared, 1000);
}

TEST(CanonicalForm, PlaceAndLengthCount) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    const Sample sample = support::random_layout(seed, {.runs = 300});
    if (sample.layout.size() == 0) continue;
    const Layout moved = value(Layout::structure(List{1}, List{1}, std::vector{sample.layout}));
    ASSERT_NE(moved.digest(), sample.layout.digest()) << sample.recipe;
    Runs longer = sample.typemap.merged();
    ++longer.back().length;
    ASSERT_NE(of_runs(longer).digest(), sample.layout.digest()) << sample.recipe;
  }
}

// --- what the forms look like: loops stay loops, in the order of the data --------------------------------------------

Layout bytes(std::int64_t count) { return value(Layout::bytes(count)); }

TEST(CanonicalForm, FacesOfACube) {
  // double A[10][20][30], its faces without the halo.
  const auto face = [](List subsizes, List starts) {
    return value(Layout::subarray(List{10, 20, 30}, subsizes, starts, Order::c, bytes(8)));
  };
  const Layout x = face({8, 18, 1}, {1, 1, 28});
  EXPECT_EQ(x.describe(), "at 5264: 8 x +4800 B { 18 x +240 B { 8 B } }");
  EXPECT_EQ(x.depth(), 3);
  const Layout y = face({8, 1, 28}, {1, 18, 1});
  EXPECT_EQ(y.describe(), "at 9128: 8 x +4800 B { 224 B }");
  const Layout z = face({1, 18, 28}, {8, 1, 1});
  EXPECT_EQ(z.describe(), "at 38648: 18 x +240 B { 224 B }");
  EXPECT_EQ(face({1, 20, 30}, {3, 0, 0}).describe(), "at 14400: 4800 B");
  EXPECT_EQ(face({10, 20, 1}, {0, 0, 0}).describe(), "200 x +240 B { 8 B }");
}

TEST(CanonicalForm, ArraysOfStructs) {
  // struct { double x; int tag; char pad[4]; float v[2]; char pad[8]; }, without the padding.
  const std::vector<Layout> fields = {bytes(8), bytes(4), bytes(8)};
  const Layout element = value(Layout::resized(value(Layout::structure(List{1, 1, 1}, List{0, 8, 16}, fields)), 0, 32));
  const Layout array = value(Layout::contiguous(1000, element));
  EXPECT_EQ(array.describe(), "1000 x +32 B { blocks [12 B at 0, 8 B at 16] }");
  EXPECT_EQ(array.depth(), 2);
  // The last field touches the next element's first: the runs do not end where the structs do.
  const Layout touching = value(Layout::resized(value(Layout::structure(List{1, 1}, List{0, 12}, std::vector{bytes(8), bytes(4)})), 0, 16));
  EXPECT_EQ(value(Layout::contiguous(100, touching)).run_count(), 101);
}

// Too many runs to be spelled out, and the last touches the next copy's first: nothing in the form is repeated once.
TEST(CanonicalForm, TwoThatTouch) {
  constexpr std::int64_t kBlocks = 40'000;
  Random random(7);
  List offsets{0};
  for (std::int64_t i = 1; i < kBlocks; ++i) offsets.push_back(offsets.back() + 24 + static_cast<std::int64_t>(random.below(50)));
  const Layout blocks = value(Layout::hindexed_block(23, offsets, value(Layout::bytes(1))));
  const Layout touching = value(Layout::resized(blocks, 0, offsets.back() + 23));
  for (const std::int64_t count : {2, 3, 4}) {
    const Layout several = value(Layout::contiguous(count, touching));
    EXPECT_EQ(several.run_count(), count * (kBlocks - 1) + 1);
    EXPECT_EQ(several.describe().find(" 1 x "), std::string::npos) << several.describe();
    expect_same(value(layout::decode(layout::encode(several))), several, "of its wire form");
  }
}
TEST(CanonicalForm, TransposesOfFft2) {
  constexpr std::int64_t n = 64;
  constexpr std::int64_t part = n / 4;
  const Layout complex = bytes(16);
  const Layout gather = value(Layout::resized(value(Layout::vector(part, part, n, complex)), 0, part * 16));
  EXPECT_EQ(value(Layout::contiguous(4, gather)).describe(), "4 x +256 B { 16 x +1024 B { 256 B } }");
  const Layout scatter = value(Layout::contiguous(part, value(Layout::resized(value(Layout::vector(part, 1, n, complex)), 0, 16))));
  // Peer after peer continues where the last stopped: one loop over all rows.
  EXPECT_EQ(value(Layout::contiguous(4, scatter)).describe(), "64 x +16 B { 16 x +1024 B { 16 B } }");
}

TEST(CanonicalForm, RegularListsAreLoops) {
  EXPECT_EQ(value(Layout::indexed_block(2, iota(50, 5), bytes(4))).describe(), "50 x +20 B { 8 B }");
  EXPECT_EQ(value(Layout::paged(4096, List{9, 8, 7, 6})).describe(), "at 36864: 4 x -4096 B { 4096 B }");
  EXPECT_EQ(value(Layout::hindexed(List{3, 3, 3}, List{0, 0, 0}, bytes(1))).describe(), "3 x +0 B { 3 B }");
}

TEST(CanonicalForm, WithoutBytesItIsEmpty) {
  for (const Layout& layout :
       {value(Layout::contiguous(5, bytes(0))), value(Layout::resized(bytes(0), 5, 7)), value(Layout::blocks(List{3, 9}, List{0, 0})),
        value(Layout::structure({}, {}, {})), value(Layout::strided(4, List{2, 0}, List{8, 4}))}) {
    EXPECT_EQ(layout.describe(), "empty");
    EXPECT_EQ(layout.digest(), Layout().digest());
    EXPECT_EQ(layout.depth(), 0);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
