// The wire form: it round-trips, it is small, and whatever does not come from encode() is an error or a valid layout.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "tests/support/cpu_time.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"
#include "tests/support/wire_form.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using base::Code;
using layout::decode;
using layout::encode;
using layout::kMaxBytes;
using layout::Layout;
using layout::WireLimits;
using support::Random;
using support::Sample;
using support::value;
using support::Wire;
using support::WireForm;
using List = std::vector<std::int64_t>;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

void expect_error(Code code, const Wire& wire, const WireLimits& limits = {}) {
  const auto result = decode(wire, limits);
  ASSERT_FALSE(result.has_value()) << "became " << result->describe();
  EXPECT_EQ(base::code_name(result.error().code), base::code_name(code)) << result.error().message;
}

TEST(WireForm, RoundTrips) {
  for (std::uint64_t seed = 0; seed < 5000; ++seed) {
    const Sample sample = support::random_layout(seed);
    const Wire wire = encode(sample.layout);
    const Layout copy = value(decode(wire), sample.recipe);
    ASSERT_EQ(copy.digest(), sample.layout.digest()) << sample.recipe;
    ASSERT_EQ(copy.describe(), sample.layout.describe()) << sample.recipe;
    ASSERT_EQ(copy.lower_bound(), sample.layout.lower_bound()) << sample.recipe;
    ASSERT_EQ(copy.extent(), sample.layout.extent()) << sample.recipe;
    ASSERT_EQ(copy.true_lower_bound(), sample.layout.true_lower_bound()) << sample.recipe;
    ASSERT_EQ(copy.true_extent(), sample.layout.true_extent()) << sample.recipe;
    ASSERT_EQ(encode(copy), wire) << sample.recipe;
  }
}

TEST(WireForm, MembersOfStructsKeepTheirMeaning) {
  // A decoded layout may be built upon: what its bounds mean in a struct has to survive the trip.
  const Layout marked = value(Layout::resized(value(Layout::bytes(4)), 0, 8));
  const Layout far = value(Layout::bytes(4));
  const auto extent = [&](const Layout& member) {
    return value(Layout::structure(List{1, 1}, List{0, 16}, std::vector{member, far})).extent();
  };
  EXPECT_EQ(extent(value(decode(encode(marked)))), extent(marked));
  EXPECT_EQ(extent(value(decode(encode(far)))), extent(far));
}

TEST(WireForm, LoopsStayLoops) {
  const Layout complex = value(Layout::bytes(16));
  const Layout column = value(Layout::resized(value(Layout::vector(1 << 19, 1, 1 << 20, complex)), 0, 16));
  EXPECT_LE(encode(value(Layout::contiguous(1 << 19, column))).size(), 40u);
  EXPECT_LE(encode(value(Layout::bytes(kMaxBytes))).size(), 40u);
}

TEST(WireForm, ListsAreDifferences) {
  List pages;
  Random random(31);
  for (std::int64_t i = 0; i < 10000; ++i) pages.push_back(3 * i + random.below(2));
  const Layout layout = value(Layout::indexed_block(1, pages, value(Layout::bytes(4))));
  EXPECT_LE(encode(layout).size(), 11000u);  // offsets up to 120 kB, differences below 64 bytes
}

TEST(WireForm, AnyPrefixIsMalformed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const Wire wire = encode(support::random_layout(seed, {.runs = 100}).layout);
    for (std::size_t length = 0; length < wire.size(); ++length) {
      const auto result = decode(std::span(wire).first(length));
      ASSERT_FALSE(result.has_value()) << "seed " << seed << ", " << length << " of " << wire.size() << " bytes";
      ASSERT_EQ(result.error().code, Code::malformed) << result.error().message;
    }
  }
}

TEST(WireForm, TrailingBytesAreMalformed) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Wire wire = encode(support::random_layout(seed, {.runs = 100}).layout);
    wire.push_back(static_cast<std::byte>(seed));
    expect_error(Code::malformed, wire);
  }
}

TEST(WireForm, WrongStartsAndKindsAreMalformed) {
  Wire wire = encode(value(Layout::bytes(8)));
  for (const std::size_t at : {0, 1}) {
    Wire other = wire;
    other[at] ^= std::byte{1};
    expect_error(Code::malformed, other);
  }
  for (int kind = 5; kind < 256; ++kind) expect_error(Code::malformed, WireForm().kind(kind).integer(1).integer(1).run(1).bytes);
}

TEST(WireForm, CountsAndLengthsArePositive) {
  for (const std::int64_t bad : {std::int64_t{0}, std::int64_t{-1}, kLeast}) {
    expect_error(Code::malformed, WireForm().run(bad).bytes);
    expect_error(Code::malformed, WireForm().loop(bad, 8).run(1).bytes);
    expect_error(Code::malformed, WireForm().list(bad).run(1).bytes);
    expect_error(Code::malformed, WireForm().blocks(bad).run(1).bytes);
    expect_error(Code::malformed, WireForm().sequence(bad).run(1).bytes);
    expect_error(Code::malformed, WireForm().blocks(2).integer(4).integer(8).integer(bad).bytes);
  }
}

TEST(WireForm, NumbersOfMoreThan64BitsAreMalformed) {
  WireForm ten = WireForm().kind(0);
  for (int i = 0; i < 9; ++i) ten.bytes.push_back(std::byte{0x80});
  Wire wide = ten.bytes;
  wide.push_back(std::byte{0x02});  // bit 64
  expect_error(Code::malformed, wide);
  Wire endless = ten.bytes;
  endless.resize(endless.size() + 1000, std::byte{0xff});
  expect_error(Code::malformed, endless);
}

TEST(WireForm, SizesAndOffsetsBeyondTheLimitAreOverflow) {
  for (const std::int64_t huge : {kMaxBytes + 1, std::int64_t{1} << 61, std::int64_t{1} << 62, kMost}) {
    expect_error(Code::overflow, WireForm().run(huge).bytes);
    expect_error(Code::overflow, WireForm().loop(huge, 0).run(1).bytes);
    expect_error(Code::overflow, WireForm().loop(2, huge).run(1).bytes);
    expect_error(Code::overflow, WireForm().loop(2, -huge).run(1).bytes);
    expect_error(Code::overflow, WireForm().list(2).integer(huge).run(1).bytes);
    expect_error(Code::overflow, WireForm().blocks(2).integer(1).integer(-huge).integer(1).bytes);
    expect_error(Code::overflow, WireForm().sequence(2).run(1).integer(huge).run(1).bytes);
  }
  expect_error(Code::overflow, WireForm().loop(2, kLeast).run(1).bytes);
  expect_error(Code::overflow, WireForm().loop(std::int64_t{1} << 31, 0).loop(std::int64_t{1} << 31, 0).run(1).bytes);
  expect_error(Code::overflow, WireForm().blocks(3).integer(kMaxBytes / 2).integer(0).integer(kMaxBytes / 2).integer(0).integer(1).bytes);
  // Differences that add up: each is allowed, their sum is not.
  expect_error(Code::overflow, WireForm().list(3).integer(kMaxBytes - 1).integer(kMaxBytes - 1).run(1).bytes);
}

TEST(WireForm, DeepNestingIsALimit) {
  for (const int depth : {200, 100000}) {
    WireForm loops;
    WireForm lists;
    WireForm sequences;
    for (int i = 0; i < depth; ++i) {
      loops.loop(2, 0);
      lists.list(2).integer(0);
      sequences.sequence(2).run(1).integer(0);
    }
    expect_error(Code::limit, loops.run(1).bytes);
    expect_error(Code::limit, lists.run(1).bytes);
    expect_error(Code::limit, sequences.run(1).bytes);
  }
}

TEST(WireForm, EntryCountsAreNotBelieved) {
  // A count that the bytes behind it cannot hold is refused before memory is asked for.
  for (const std::int64_t count : {std::int64_t{1000}, std::int64_t{1} << 24, std::int64_t{1} << 40, kMaxBytes}) {
    expect_error(Code::malformed, WireForm().list(count).integer(1).run(1).bytes);
    expect_error(Code::malformed, WireForm().blocks(count).integer(1).bytes);
    expect_error(Code::malformed, WireForm().sequence(count).run(1).bytes);
  }
}

TEST(WireForm, LimitsAreHonoured) {
  const Layout list = value(Layout::indexed_block(1, List{0, 5, 7, 20, 21, 30, 44}, value(Layout::bytes(4))));
  const Wire wire = encode(list);
  expect_error(Code::limit, wire, {.max_bytes = static_cast<std::int64_t>(wire.size()) - 1});
  EXPECT_TRUE(decode(wire, {.max_bytes = static_cast<std::int64_t>(wire.size())}));
  expect_error(Code::limit, wire, {.max_entries = list.run_count() - 1});
  EXPECT_TRUE(decode(wire, {.max_entries = list.run_count()}));
  const Layout nest = value(Layout::strided(1, List{2, 3, 4, 5}, List{1000, 100, 10, 2}));
  expect_error(Code::limit, encode(nest), {.max_depth = nest.depth() - 1});
  EXPECT_TRUE(decode(encode(nest), {.max_depth = nest.depth()}));
}

TEST(WireForm, DecodingTakesTimeForItsBytes) {
  // Each of these sequences is short enough to be spelled out, and so is each of the sequences around it: a decoder
  // that did so at each level would let 7 kB of nesting ask for the same 50 000 runs a thousand times over.
  const auto loops = [](WireForm& form) { form.loop(255, 100'003).loop(200, 3).run(1); };
  WireForm form;
  form.sequence(12);
  for (int i = 0; i < 12; ++i) {
    if (i > 0) form.integer(1'000'003 + 1000 * i);
    for (int level = 0; level < 100; ++level) form.sequence(2).run(1).integer(-7 - level);
    loops(form);
  }
  WireForm once;
  loops(once);
  const Layout runs = value(decode(once.bytes));
  const std::int64_t walked = test::least_cpu_ns(3, [&] { EXPECT_EQ(support::runs_of(runs).size(), 51'000U); });
  EXPECT_LT(test::least_cpu_ns(3, [&] { (void)decode(form.bytes); }), 100 * walked) << "ns of this thread's CPU";
}

TEST(WireForm, WhatComesOutIsCanonical) {
  const auto same = [](const WireForm& form, const Layout& expected) {
    const Layout layout = value(decode(form.bytes));
    EXPECT_EQ(layout.digest(), expected.digest()) << layout.describe() << ", not " << expected.describe();
  };
  const Layout loop = value(Layout::hvector(6, 1, 8, value(Layout::bytes(4))));
  same(WireForm().loop(6, 8).run(4), loop);
  same(WireForm().loop(3, 16).loop(2, 8).run(4), loop);
  same(WireForm().list(2).integer(24).list(3).integer(8).integer(8).run(4), loop);
  same(WireForm().sequence(2).loop(5, 8).run(4).integer(40).blocks(2).integer(1).integer(1).integer(3), loop);
  same(WireForm().loop(6, 4).run(4), value(Layout::bytes(24)));
}

// Flag 4, that a form is not to be spelled out, is in the header's last byte but the item's offset.
TEST(WireForm, AFalseWordThatAFormIsKeptIsNotBelieved) {
  const auto claimed = [](Wire bytes) {
    const Wire header = WireForm().bytes;
    bytes[header.size() - 2] |= std::byte{4};
    return value(decode(bytes));
  };
  const Layout loop = value(Layout::hvector(6, 1, 8, value(Layout::bytes(4))));
  EXPECT_EQ(claimed(WireForm().loop(3, 16).loop(2, 8).run(4).bytes).digest(), loop.digest());
  EXPECT_EQ(claimed(WireForm().loop(6, 4).run(4).bytes).digest(), value(Layout::bytes(24)).digest());
  const Layout longer = value(Layout::hvector(5000, 1, 8, value(Layout::bytes(4))));  // long, but nothing nested
  EXPECT_EQ(claimed(WireForm().sequence(2).loop(2500, 8).run(4).integer(20000).loop(2500, 8).run(4).bytes).digest(), longer.digest());

  // A page table of nested blocks keeps its form, here and after it has travelled.
  std::vector<std::int64_t> pages;
  for (std::int64_t i = 0; i < 100; ++i) pages.push_back(i * i * 2000);
  const Layout block = value(Layout::hvector(20, 1, 64, value(Layout::bytes(8))));
  const Layout table = value(Layout::hindexed_block(1, pages, block));
  const Layout heard = value(decode(encode(table)));
  EXPECT_EQ(heard.digest(), table.digest());
  EXPECT_EQ(encode(heard), encode(table));
}

TEST(WireForm, BoundsAreBounded) {
  // The bounds stand in front of the item; numbers of up to 64 bits, chosen by the peer.
  const Wire wire = encode(value(Layout::bytes(1)));
  for (const std::int64_t lower : {kLeast, -kMaxBytes, std::int64_t{0}, kMaxBytes, kMost}) {
    for (const std::int64_t upper : {kLeast, -kMaxBytes, std::int64_t{0}, kMaxBytes, kMost}) {
      Wire form(wire.begin(), wire.begin() + 2);
      support::append_number(form, support::zigzag(lower));
      support::append_number(form, support::zigzag(upper));
      form.insert(form.end(), wire.begin() + 4, wire.end());
      const auto result = decode(form);
      const bool allowed = std::abs(static_cast<double>(upper) - static_cast<double>(lower)) <= static_cast<double>(kMaxBytes) &&
                           lower >= -kMaxBytes && lower <= kMaxBytes && upper >= -kMaxBytes && upper <= kMaxBytes;
      ASSERT_EQ(result.has_value(), allowed) << lower << " to " << upper;
      if (allowed) {
        EXPECT_EQ(result->extent(), upper - lower);
      }
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
