// Plans against the scalar reference, on every kind of layout, aligned in every way.
#include <gtest/gtest.h>

#include "tests/copy/shapes.hpp"
#include "tests/device/checks.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::device_test {
namespace LACUNA_TEST_FILE {
namespace {

using copy_test::Dice;
using copy_test::Recipe;
using support::value;

// The kernels run on one thread of the device; what its streams do among threads, device_test.cpp tries.
LACUNA_LEFT_OUT(thread, "DevicePlan.*");

constexpr int kAlignments[] = {16, 8, 4, 2, 1};

int alignment_of(std::uint64_t seed) { return kAlignments[seed % 5]; }

Case pack_of(const Recipe& recipe) { return {recipe.layout, bytes(recipe.size()), "pack " + recipe.text}; }
Case unpack_of(const Recipe& recipe) { return {bytes(recipe.size()), recipe.layout, "unpack " + recipe.text}; }

template <class Make>
void check(std::uint64_t first, std::uint64_t rounds, Make make) {
  for (std::uint64_t seed = first; seed < first + rounds; ++seed) {
    Dice dice(seed);
    dice.receive = seed % 3 != 0;
    const Recipe recipe = make(dice);
    ASSERT_TRUE(moves(pack_of(recipe), seed, alignment_of(seed)));
    if (recipe.receives()) {
      ASSERT_TRUE(moves(unpack_of(recipe), seed, alignment_of(seed / 5)));
    }
  }
}

TEST(DevicePlan, Runs) {
  for (std::int64_t length = 1; length < 70; ++length) {
    for (const int alignment : kAlignments)
      ASSERT_TRUE(moves(Case{bytes(length), bytes(length), "a run"}, static_cast<std::uint64_t>(length), alignment));
  }
}

TEST(DevicePlan, Vectors) {
  check(1000, 60, [](Dice& dice) { return copy_test::vector_of(dice, copy_test::any_length(dice.what)); });
}
TEST(DevicePlan, Nests) {
  check(2000, 60, [](Dice& dice) { return copy_test::nest_of(dice, copy_test::any_length(dice.what)); });
}
TEST(DevicePlan, Cubes) { check(3000, 40, copy_test::cube); }
TEST(DevicePlan, Lists) {
  check(4000, 60, [](Dice& dice) { return copy_test::list_of(dice, copy_test::any_length(dice.what)); });
}
TEST(DevicePlan, Sieves) { check(5000, 40, copy_test::sieve); }
TEST(DevicePlan, BlocksOfAnyLength) { check(6000, 60, copy_test::ragged); }
TEST(DevicePlan, BlocksWithADivisor) { check(7000, 60, copy_test::granular); }
TEST(DevicePlan, StructArrays) { check(8000, 60, copy_test::struct_array); }
TEST(DevicePlan, StructLists) { check(9000, 40, copy_test::struct_list); }
TEST(DevicePlan, Structures) {
  check(9500, 40, [](Dice& dice) { return copy_test::structure_of(dice, 2 + dice.what.below(60)); });
}
TEST(DevicePlan, Compositions) {
  check(10000, 60, [](Dice& dice) { return copy_test::composition(dice, 2); });
}

TEST(DevicePlan, Transposes) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::int64_t item = std::int64_t{1} << random.below(5);
    const std::int64_t rows = 1 + random.below(40);
    const std::int64_t columns = 1 + random.below(40);
    const std::int64_t pitch = item * (columns + random.below(3));
    const Layout by_columns = value(Layout::strided(item, std::array{columns, rows}, std::array{item, pitch}));
    ASSERT_TRUE(moves(Case{by_columns, bytes(by_columns.size()), "columns"}, seed, alignment_of(seed)));
    ASSERT_TRUE(moves(Case{bytes(by_columns.size()), by_columns, "columns"}, seed, alignment_of(seed)));
  }
}

// Axes in any order, with loops around squares and squares that are cut off at their edges.
TEST(DevicePlan, Permutations) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const std::int64_t item = std::int64_t{1} << random.below(5);
    std::vector<std::int64_t> shape{1 + random.below(50), 1 + random.below(50), 1 + random.below(3)};
    random.shuffle(shape);
    std::vector<std::int64_t> strides(3);
    std::vector<int> axes{0, 1, 2};
    random.shuffle(axes);
    std::int64_t stride = item;
    for (const int axis : axes) {
      strides[static_cast<std::size_t>(axis)] = stride;
      stride *= shape[static_cast<std::size_t>(axis)] + random.below(2);
    }
    const Layout layout = value(Layout::strided(item, shape, strides));
    ASSERT_TRUE(moves(Case{layout, bytes(layout.size()), layout.describe()}, seed, alignment_of(seed)));
    ASSERT_TRUE(moves(Case{bytes(layout.size()), layout, layout.describe()}, seed, alignment_of(seed)));
  }
}

// Two layouts of one structure at other places, whose loops meet; and of any structures, which meet in pieces.
TEST(DevicePlan, LayoutToLayout) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice one(seed, seed * 7 + 1);
    Dice other(seed, seed * 7 + 2);
    one.receive = other.receive = true;
    const Recipe from = copy_test::any_shape(one);
    const Recipe to = copy_test::any_shape(other);
    if (from.size() != to.size() || !to.receives()) continue;
    ASSERT_TRUE(moves(Case{from.layout, to.layout, from.text + " -> " + to.text}, seed, alignment_of(seed)));
  }
}
TEST(DevicePlan, AnyLayoutToAnyOther) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    Dice one(seed);
    Dice other(seed + 1000);
    other.receive = true;
    const std::int64_t size = 1 + one.what.below(20000);
    const Recipe from = copy_test::of_size(one, size);
    const Recipe to = copy_test::of_size(other, size);
    ASSERT_TRUE(moves(Case{from.layout, to.layout, from.text + " -> " + to.text}, seed, alignment_of(seed)));
  }
}
TEST(DevicePlan, NestedAtRandom) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    Random random(seed);
    const auto to = support::random_receive_layout(random);
    const auto from = support::random_layout_of_size(random, to.layout.size());
    ASSERT_TRUE(moves(Case{from.layout, to.layout, from.recipe + " -> " + to.recipe}, seed, alignment_of(seed)));
    ASSERT_TRUE(moves(Case{from.layout, bytes(from.layout.size()), from.recipe}, seed, alignment_of(seed)));
  }
}

TEST(DevicePlan, ManyLayoutsInOneLaunch) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    std::vector<Case> cases;
    for (std::size_t i = 0; i < device::CopyPlan::kMostPairs >> (seed % 4); ++i) {
      Dice dice(seed * 100 + i);
      dice.budget = 1 << 10;
      dice.receive = true;
      const Recipe recipe = copy_test::any_shape(dice);
      cases.push_back(i % 2 == 0 || !recipe.receives() ? pack_of(recipe) : unpack_of(recipe));
    }
    ASSERT_TRUE(moves(cases, seed, alignment_of(seed)));
  }
}

TEST(DevicePlan, OfNothing) {
  ASSERT_TRUE(moves(Case{bytes(0), Layout(), "nothing"}, 0));
  ASSERT_TRUE(moves(std::span<const Case>{}, 0));
}

// More units than one part can have, of memory that is not there: the parts alone.
TEST(DevicePlan, Refuses) {
  const device::Pair unequal{bytes(3), bytes(4)};
  EXPECT_EQ(device::CopyPlan::make(the_device_owned(), std::span(&unequal, 1)).error().code, base::Code::invalid_argument);
  const std::vector<device::Pair> many(device::CopyPlan::kMostPairs + 1, device::Pair{bytes(4), bytes(4)});
  EXPECT_EQ(device::CopyPlan::make(the_device_owned(), many).error().code, base::Code::invalid_argument);
  const device::Pair pair{bytes(4), bytes(4)};
  EXPECT_EQ(device::CopyPlan::make(the_device_owned(), std::span(&pair, 1), 3).error().code, base::Code::invalid_argument);
  const auto plan = value(device::CopyPlan::make(the_device_owned(), std::span(&pair, 1), 4));
  EXPECT_EQ(plan.move({}, nullptr).error().code, base::Code::invalid_argument);
  const device::Addresses odd{reinterpret_cast<void*>(2), reinterpret_cast<void*>(4)};
  EXPECT_EQ(plan.move(std::span(&odd, 1), nullptr).error().code, base::Code::invalid_argument);
}

}  // namespace
}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::device_test
