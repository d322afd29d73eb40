// Lists of equal blocks have ways of their own to their canonical form: each ends where a struct of as many single
// blocks does, which is spelled out.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using support::Random;
using support::value;
using List = std::vector<std::int64_t>;

// Steps without order, with stretches in them that repeat, or nearly, some at either end; blocks that touch.
List numbers(Random& random, std::int64_t count) {
  List steps;
  for (std::int64_t i = 0; i < count; ++i) steps.push_back(random.between(-1000, 1000));
  for (std::int64_t stretches = random.below(4); stretches > 0; --stretches) {
    const std::int64_t period = random.between(1, 18);
    const std::int64_t length = random.between(6, 60);
    const std::int64_t from = random.one_in(3) ? 0 : random.one_in(2) ? std::max<std::int64_t>(0, count - length) : random.below(count);
    for (std::int64_t i = from + period; i < std::min(count, from + length); ++i)
      steps[static_cast<std::size_t>(i)] = steps[static_cast<std::size_t>(i - period)];
  }
  for (std::int64_t touching = random.one_in(2) ? random.below(4) : 0; touching > 0; --touching)
    steps[static_cast<std::size_t>(random.below(count))] = 1;
  if (random.one_in(4)) {  // a power of something longer
    const std::int64_t period = random.between(17, std::max<std::int64_t>(17, count / 2));
    for (std::int64_t i = period; i < count; ++i) steps[static_cast<std::size_t>(i)] = steps[static_cast<std::size_t>(i - period)];
  }
  List places;
  std::int64_t at = random.between(-500, 500);
  for (const std::int64_t step : steps) {
    places.push_back(at);
    at += step;
  }
  return places;
}

void expect_same(const Layout& one, const Layout& other) {
  ASSERT_EQ(one.describe(), other.describe());
  ASSERT_EQ(one.digest(), other.digest());
  ASSERT_EQ(one.lower_bound(), other.lower_bound());
  ASSERT_EQ(one.extent(), other.extent());
}

TEST(Lists, OfBlocksEqualStructsOfThem) {
  Random random(71);
  int loops = 0;
  for (int i = 0; i < 3000; ++i) {
    const std::int64_t bytes = random.between(1, 9);
    const List places = numbers(random, random.between(1, random.one_in(10) ? 2000 : 300));
    // The block's extent is its own length, more, less, or the wrong way.
    const Layout plain = value(Layout::bytes(bytes));
    const Layout block = random.one_in(2) ? plain : value(Layout::resized(plain, random.between(-5, 5), random.between(-20, 20)));
    const List ones(places.size(), 1);
    List in_bytes;
    for (const std::int64_t place : places) in_bytes.push_back(place * block.extent());
    const Layout expected = value(Layout::structure(ones, in_bytes, std::vector(places.size(), block)));
    expect_same(value(Layout::indexed_block(1, places, block)), expected);
    expect_same(value(Layout::hindexed_block(1, in_bytes, block)), expected);
    expect_same(value(Layout::hindexed(ones, in_bytes, block)), expected);
    loops += expected.describe().find(" x ") != std::string::npos ? 1 : 0;
    ASSERT_EQ(support::runs_of(value(Layout::paged(bytes, places))), naive::indexed_block(1, places, naive::bytes(bytes)).merged());
  }
  EXPECT_GT(loops, 500);
  EXPECT_LT(loops, 2500);
}

TEST(Lists, OfSeveralLengthsEqualStructsOfThem) {
  Random random(72);
  for (int i = 0; i < 2000; ++i) {
    const List places = numbers(random, random.between(1, 300));
    List lengths;
    std::int64_t length = 1;
    for (std::size_t j = 0; j < places.size(); ++j) {
      if (random.one_in(20)) length = random.between(1, 3);
      lengths.push_back(random.one_in(30) ? 5 : length);
    }
    std::vector<Layout> members;
    for (const std::int64_t bytes : lengths) members.push_back(value(Layout::bytes(bytes)));
    const Layout expected = value(Layout::structure(List(places.size(), 1), places, members));
    ASSERT_EQ(value(Layout::blocks(places, lengths)).describe(), expected.describe());
    ASSERT_EQ(value(Layout::blocks(places, lengths)).digest(), expected.digest());
  }
}

// Also of blocks that begin elsewhere than at 0, and with lengths of 0: displacements in extents and in bytes.
TEST(Lists, IndexedEqualStructsOfTheirBlocks) {
  Random random(73);
  const Layout eight = value(Layout::bytes(8));
  const Layout shifted = value(Layout::resized(value(Layout::hindexed(List{1}, List{24}, eight)), 24, 8));
  const Layout below = value(Layout::resized(eight, -4, 8));
  const Layout gapped = value(Layout::resized(eight, 0, 12));
  const Layout backwards = value(Layout::resized(eight, 0, -8));
  for (int i = 0; i < 1000; ++i) {
    const Layout olds[] = {eight, shifted, below, gapped, backwards};
    const Layout& old = olds[random.below(5)];
    const List places = numbers(random, random.between(1, 300));
    List lengths;
    List in_bytes;
    std::int64_t length = 1;
    for (const std::int64_t place : places) {
      if (random.one_in(40)) length = random.between(0, 3);
      lengths.push_back(random.one_in(30) ? 0 : length);
      in_bytes.push_back(place * old.extent());
    }
    const Layout expected = value(Layout::structure(lengths, in_bytes, std::vector<Layout>(places.size(), old)));
    expect_same(value(Layout::indexed(lengths, places, old)), expected);
    expect_same(value(Layout::hindexed(lengths, in_bytes, old)), expected);
  }
}

// Too many runs to be spelled out: the block keeps its form, whatever the places are. Of pages that an allocator gave
// out a list of their places is left, also where some follow one another.
TEST(Lists, OfNestedBlocksKeepTheBlock) {
  Random random(74);
  int lists = 0;
  for (int i = 0; i < 400; ++i) {
    const std::int64_t rows = random.between(4, 40);
    const std::int64_t bytes = random.between(1, 9);
    const std::int64_t stride = bytes + random.between(1, 20);
    const Layout row = value(Layout::bytes(bytes));
    const Layout nested = value(Layout::resized(value(Layout::hvector(rows, 1, stride, row)), random.between(-5, 5), rows * stride));
    const List places = numbers(random, random.between(std::max<std::int64_t>(64, 1100 / rows), random.one_in(10) ? 3000 : 600));
    const Layout made = value(Layout::indexed_block(1, places, nested));
    const naive::Typemap block = naive::resized(naive::hvector(rows, 1, stride, naive::bytes(bytes)), nested.lower_bound(), rows * stride);
    const naive::Typemap expected = naive::indexed_block(1, places, block);
    ASSERT_EQ(support::runs_of(made), expected.merged());
    ASSERT_EQ(made.lower_bound(), expected.lb);
    ASSERT_EQ(made.extent(), expected.extent());
    ASSERT_EQ(value(layout::decode(layout::encode(made))).digest(), made.digest());
    if (made.form()->kind == layout::NodeKind::list && made.form()->depth == 3) ++lists;
  }
  EXPECT_GT(lists, 50);
}

TEST(Lists, BeyondWhatFitsSayWhatIsWrong) {
  const std::int64_t far = std::int64_t{1} << 59;
  const Layout block = value(Layout::bytes(8));
  EXPECT_EQ(value(Layout::hindexed_block(1, List{far, 0}, block)).extent(), far + 8);
  EXPECT_EQ(Layout::hindexed_block(1, List{far, -far}, block).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::hindexed_block(1, List{3 * far, 0}, block).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::indexed_block(1, List{far, 0}, block).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::indexed_block(1, List{INT64_MIN, INT64_MAX}, block).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::indexed_block(-1, List{0}, block).error().code, base::Code::invalid_argument);
  EXPECT_EQ(Layout::hindexed_block(4, List(3, 0), value(Layout::bytes(far))).error().code, base::Code::overflow);
  const std::int64_t most = std::int64_t{1} << 58;
  EXPECT_EQ(value(Layout::blocks(List(4, 0), List(4, most))).size(), 4 * most);
  EXPECT_EQ(Layout::blocks(List(5, 0), List(5, most)).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::blocks(List(1000, 0), List(1000, most)).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::blocks(List{0}, List{-1}).error().code, base::Code::invalid_argument);
  EXPECT_EQ(Layout::indexed(List{1, 1}, List{0, INT64_MIN}, block).error().code, base::Code::overflow);
  EXPECT_EQ(Layout::indexed(List{1}, List{1, 2}, block).error().code, base::Code::invalid_argument);
  EXPECT_EQ(value(Layout::indexed_block(0, List{1, 2}, block)).size(), 0);
  EXPECT_EQ(value(Layout::indexed_block(1, List{}, block)).size(), 0);
}

// What is cut of a long list of nested blocks has one wire form, however it was made: a peer finds it by its digest.
TEST(Lists, OfNestedBlocksKeepTheirFormWhenCut) {
  Random random(5);
  List pages;
  for (std::int64_t i = 0; i < 3000; ++i) pages.push_back(i * 2 + random.below(2));
  const Layout page = value(Layout::resized(value(Layout::hvector(16, 32, 64, value(Layout::bytes(1)))), 0, 1024));
  const Layout all = value(Layout::indexed_block(1, pages, page));
  for (const auto& [from, bytes] : {std::pair{std::int64_t{0}, all.size()}, {512, 700 * 512}, {100, 900 * 512 + 7}, {512 * 9, 40}}) {
    const Layout part = value(all.slice(from, bytes));
    const Layout told = value(layout::decode(layout::encode(part)));
    EXPECT_EQ(told.digest(), part.digest()) << bytes << " bytes from " << from;
    EXPECT_EQ(layout::encode(told), layout::encode(part));
    EXPECT_EQ(told.size(), bytes);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
