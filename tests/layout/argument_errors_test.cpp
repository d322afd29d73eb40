// Wrong arguments are answered with an error whose message names what is wrong, by name and by value.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using base::Code;
using layout::Distribution;
using layout::kDefaultBlock;
using layout::kMaxBytes;
using layout::Layout;
using layout::Order;
using support::value;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kTera = std::int64_t{1} << 40;

Layout bytes(std::int64_t count) { return value(Layout::bytes(count)); }

void expect(Code code, const char* in_message, const base::Result<Layout>& result) {
  ASSERT_FALSE(result.has_value()) << "became " << result->describe() << "; expected an error about " << in_message;
  EXPECT_EQ(base::code_name(result.error().code), base::code_name(code)) << result.error().message;
  EXPECT_NE(result.error().message.find(in_message), std::string::npos)
      << "message: " << result.error().message << "; expected in it: " << in_message;
}
void expect_invalid(const char* in_message, const base::Result<Layout>& result) { expect(Code::invalid_argument, in_message, result); }
void expect_overflow(const char* in_message, const base::Result<Layout>& result) { expect(Code::overflow, in_message, result); }

TEST(ArgumentErrors, NegativeCounts) {
  expect_invalid("count is -7", Layout::bytes(-7));
  expect_invalid("count is -7", Layout::contiguous(-7, bytes(1)));
  expect_invalid("count is -7", Layout::vector(-7, 1, 1, bytes(1)));
  expect_invalid("blocklength is -7", Layout::vector(1, -7, 1, bytes(1)));
  expect_invalid("count is -7", Layout::hvector(-7, 1, 1, bytes(1)));
  expect_invalid("blocklength is -7", Layout::hvector(1, -7, 1, bytes(1)));
  expect_invalid("-7", Layout::indexed(List{1, -7}, List{0, 1}, bytes(1)));
  expect_invalid("-7", Layout::hindexed(List{1, -7}, List{0, 1}, bytes(1)));
  expect_invalid("blocklength is -7", Layout::indexed_block(-7, List{0, 1}, bytes(1)));
  expect_invalid("blocklength is -7", Layout::hindexed_block(-7, List{0, 1}, bytes(1)));
  expect_invalid("-7", Layout::structure(List{-7}, List{0}, std::vector{bytes(1)}));
  expect_invalid("-7", Layout::blocks(List{0, 8}, List{4, -7}));
  expect_invalid("-7", Layout::paged(-7, List{0, 8}));
  expect_invalid("-7", Layout::strided(-7, List{2}, List{8}));
  expect_invalid("-7", Layout::strided(1, List{2, -7}, List{8, 8}));
}

TEST(ArgumentErrors, NegativeCountsBesideZeroCounts) {
  expect_invalid("blocklength is -7", Layout::vector(0, -7, 1, bytes(1)));
  expect_invalid("-7", Layout::strided(1, List{0, -7}, List{8, 8}));
  expect_invalid("blocklength is -7", Layout::indexed_block(-7, {}, bytes(1)));
}

TEST(ArgumentErrors, ListsOfDifferentLengths) {
  expect_invalid("2 block lengths but 1 displacements", Layout::indexed(List{1, 2}, List{0}, bytes(1)));
  expect_invalid("1 block lengths but 2 displacements", Layout::hindexed(List{1}, List{0, 1}, bytes(1)));
  expect_invalid("displacements", Layout::structure(List{1, 2}, List{0}, std::vector{bytes(1), bytes(1)}));
  expect_invalid("1 members", Layout::structure(List{1, 2}, List{0, 8}, std::vector{bytes(1)}));
  expect_invalid("2", Layout::blocks(List{0, 8}, List{1}));
  expect_invalid("2 dimensions but 1 strides", Layout::strided(1, List{2, 2}, List{8}));
}

TEST(ArgumentErrors, SubarrayOutOfRange) {
  const auto box = [](const List& sizes, const List& subsizes, const List& starts) {
    return Layout::subarray(sizes, subsizes, starts, Order::c, bytes(1));
  };
  expect_invalid("dimension 1: 3 elements from 2", box({4, 4}, {4, 3}, {0, 2}));
  expect_invalid("-1", box({4, 4}, {1, 1}, {-1, 0}));
  expect_invalid("5", box({4, 4}, {1, 5}, {0, 0}));
  expect_invalid("dimension 0", box({4, 4}, {0, 1}, {0, 0}));
  expect_invalid("dimension 0", box({0, 4}, {0, 1}, {0, 0}));
  expect_invalid("dimension 0", box({4}, {2}, {kMost}));
  expect_invalid("sizes", box({}, {}, {}));
  expect_invalid("subsizes", box({4, 4}, {1}, {0, 0}));
  expect_invalid("starts", box({4, 4}, {1, 1}, {0}));
}

TEST(ArgumentErrors, DarrayGrids) {
  const std::vector<Distribution> block2(2, Distribution::block);
  const auto part = [&](std::int64_t processes, std::int64_t rank, const List& sizes, const List& blocks, const List& grid) {
    return Layout::darray(processes, rank, sizes, block2, blocks, grid, Order::c, bytes(1));
  };
  const List whole = {kDefaultBlock, kDefaultBlock};
  expect_invalid("6", part(5, 0, {8, 8}, whole, {2, 3}));
  expect_invalid("rank 6", part(6, 6, {8, 8}, whole, {2, 3}));
  expect_invalid("rank -1", part(6, -1, {8, 8}, whole, {2, 3}));
  expect_invalid("0 processes", part(0, 0, {8, 8}, whole, {0, 3}));
  expect_invalid("-2", part(6, 0, {8, 8}, whole, {-2, -3}));
  expect_invalid("0", part(6, 0, {8, 0}, whole, {2, 3}));
  expect_invalid("3", part(6, 0, {8, 8}, {3, kDefaultBlock}, {2, 3}));  // 2 blocks of 3 do not cover 8
  expect_invalid("block size 0", part(6, 0, {8, 8}, {0, kDefaultBlock}, {2, 3}));
  expect_invalid("block size -5", part(6, 0, {8, 8}, {-5, kDefaultBlock}, {2, 3}));
  expect_invalid("grid", part(6, 0, {8, 8}, whole, {6}));
  expect_invalid("block sizes", part(6, 0, {8, 8}, {4}, {2, 3}));
  expect_invalid("2", Layout::darray(2, 0, List{8}, std::vector{Distribution::none}, List{kDefaultBlock}, List{2}, Order::c, bytes(1)));
}

TEST(ArgumentErrors, Overflow) {
  expect_overflow("1152921504606846977", Layout::bytes(kMaxBytes + 1));
  expect_overflow("9223372036854775807", Layout::bytes(kMost));
  expect_overflow("9223372036854775807", Layout::contiguous(kMost, bytes(1)));
  expect_overflow("1099511627776", Layout::contiguous(kTera, bytes(kTera)));
  expect_overflow("stride", Layout::vector(2, 1, kMost, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hvector(2, 1, kMost, bytes(8)));
  expect_overflow("-9223372036854775808", Layout::hvector(2, 1, kLeast, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hvector(kMost, 1, 1, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hvector(kMost, 1, -1, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hvector(1, kMost, 1, bytes(8)));
  expect_overflow("displacement", Layout::indexed(List{1}, List{kMost}, bytes(8)));
  expect_overflow("displacement", Layout::indexed(List{1}, List{kLeast}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::indexed(List{kMost}, List{0}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hindexed(List{1}, List{kMost}, bytes(8)));
  expect_overflow("-9223372036854775808", Layout::hindexed(List{1}, List{kLeast}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hindexed(List{kMost}, List{1}, bytes(8)));
  expect_overflow("displacement", Layout::indexed_block(1, List{0, kMost}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::indexed_block(kMost, List{0}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::hindexed_block(1, List{0, kMost}, bytes(8)));
  expect_overflow("9223372036854775807", Layout::structure(List{1, 1}, List{0, kMost}, std::vector{bytes(1), bytes(1)}));
  expect_overflow("9223372036854775807", Layout::structure(List{1, kMost}, List{0, 8}, std::vector{bytes(1), bytes(1)}));
  expect_overflow("1099511627776", Layout::subarray(List{kTera, kTera}, List{1, 1}, List{0, 0}, Order::c, bytes(1)));
  expect_overflow("1099511627776",
                  Layout::darray(1, 0, List{kTera, kTera}, std::vector(2, Distribution::none), List{1, 1}, List{1, 1}, Order::c, bytes(1)));
  expect_overflow("9223372036854775807", Layout::resized(bytes(1), 1, kMost));
  expect_overflow("9223372036854775807", Layout::resized(bytes(1), 0, kMost));
  expect_overflow("-9223372036854775808", Layout::resized(bytes(1), kLeast, 0));
  expect_overflow("9223372036854775807", Layout::blocks(List{kMost}, List{1}));
  expect_overflow("9223372036854775807", Layout::blocks(List{0}, List{kMost}));
  expect_overflow("1099511627776", Layout::paged(kTera, List{kTera}));
  expect_overflow("1099511627776", Layout::strided(1, List{kTera, kTera}, List{1, 1}));
  expect_overflow("-9223372036854775808", Layout::strided(1, List{2}, List{kLeast}));
}

TEST(ArgumentErrors, OverflowOfTheSizeAlone) {
  // Strides of zero: every offset is small, only the sizes add up.
  expect_overflow("size", Layout::hvector(kTera, kTera, 0, value(Layout::resized(bytes(1), 0, 0))));
  expect_overflow("size", Layout::strided(1, List{kTera, kTera}, List{0, 0}));
  const Layout half = value(Layout::resized(bytes(kMaxBytes / 2 + 1), 0, 0));
  expect_overflow("size", Layout::hindexed(List{1, 1}, List{0, 0}, half));
}

TEST(ArgumentErrors, ExtentsObeyTheLimitToo) {
  EXPECT_TRUE(Layout::blocks(List{-kMaxBytes / 2, kMaxBytes / 2 - 1}, List{1, 1}));
  expect_overflow("extent", Layout::blocks(List{-kMaxBytes, kMaxBytes - 1}, List{1, 1}));
  expect_overflow("extent", Layout::resized(bytes(1), -kMaxBytes, 2 * kMaxBytes));
}

// An element of extent 0 keeps every product at 0, so that no product can catch a count near the top of the range.
TEST(ArgumentErrors, ExtremeCountsOfElementsWithoutExtent) {
  for (const Layout& point : {bytes(0), value(Layout::resized(bytes(1), 0, 0))}) {
    for (const std::int64_t n : {kMost, kMost - 1, kMaxBytes, kMaxBytes + 1}) {
      const auto same_size = [&](const base::Result<Layout>& result, std::int64_t elements) {
        if (result) {
          EXPECT_EQ(result->size(), point.size() * elements);
        }
      };
      same_size(Layout::vector(n, 1, n, point), n);
      same_size(Layout::vector(1, n, n, point), n);
      same_size(Layout::indexed(List{1, n}, List{n, -n}, point), 0);  // more bytes than allowed, or none
      same_size(Layout::subarray(List{n}, List{n}, List{0}, Order::c, point), n);
      same_size(Layout::subarray(List{n, n}, List{1, 1}, List{n - 1, n - 1}, Order::fortran, point), 1);
      for (const Distribution kind : {Distribution::block, Distribution::cyclic}) {
        for (const std::int64_t block : {kDefaultBlock, n}) {
          for (const std::int64_t rank : {0, 2}) {
            const auto part = Layout::darray(3, rank, List{n}, std::vector{kind}, List{block}, List{3}, Order::c, point);
            if (part) {
              EXPECT_LE(part->size(), n);
            }
            const auto few = Layout::darray(n, n - 1, List{7}, std::vector{kind}, List{block}, List{n}, Order::c, point);
            if (few) {
              EXPECT_EQ(few->size(), 0);
            }
          }
        }
      }
    }
  }
}

TEST(ArgumentErrors, TheLimitItselfIsAllowed) {
  EXPECT_EQ(bytes(kMaxBytes).size(), kMaxBytes);
  EXPECT_EQ(value(Layout::contiguous(kTera, bytes(1 << 20))).size(), kMaxBytes);
  EXPECT_EQ(value(Layout::hvector(2, 1, kMaxBytes - 1, bytes(1))).extent(), kMaxBytes);
  EXPECT_EQ(value(Layout::hvector(2, 1, 1 - kMaxBytes, bytes(1))).lower_bound(), 1 - kMaxBytes);
  EXPECT_EQ(value(Layout::blocks(List{-kMaxBytes}, List{1})).true_lower_bound(), -kMaxBytes);
  EXPECT_EQ(value(Layout::resized(bytes(1), 0, kMaxBytes)).extent(), kMaxBytes);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
