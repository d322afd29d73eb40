// Arrays and lists of structs: in windows where an entry fits, else member by member.
#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::bytes;
using copy_test::check_moves;
using copy_test::Dice;
using copy_test::hvector;
using copy_test::List;
using copy_test::moves;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyStructs);

TEST_P(CopyStructs, Arrays) { check_moves(200'000, 500, copy_test::struct_array); }
TEST_P(CopyStructs, Lists) { check_moves(210'000, 400, copy_test::struct_list); }

// Two members of every width of a window, and every number of entries that a window and its remainder take.
TEST_P(CopyStructs, EveryWidth) {
  for (std::int64_t width = 4; width <= 70; ++width) {
    const std::int64_t last = width > 20 ? width / 2 : 1;
    const Recipe pair = copy_test::structure({0, width - last}, {bytes(width / 3), bytes(last)});
    for (const std::int64_t count : {8, 9, 31, 64, 67}) {
      for (const std::int64_t stride : {width + 1, width, -width - 2, std::int64_t{64}}) {
        if (std::abs(stride) < width) continue;
        const auto seed = static_cast<std::uint64_t>(width * 100 + count);
        ASSERT_TRUE(moves(hvector(count, stride, pair), seed));
      }
    }
  }
}

TEST_P(CopyStructs, EveryNumberOfMembers) {
  for (std::int64_t members = 2; members <= 34; ++members) {
    check_moves(static_cast<std::uint64_t>(220'000 + 10 * members), 6, [&](Dice& dice) {
      const Recipe element = structure_of(dice, members);
      return hvector(dice.what.between(8, 40), apart(dice, element.span(), 40), element);
    });
    if (HasFatalFailure()) return;
  }
}

// One field after another of so many structs that they do not stay in a cache: all fields of some of them at a time.
TEST_P(CopyStructs, FieldsOfManyStructs) {
  for (const std::int64_t record : {7, 16, 40, 61, 130, 256}) {
    support::Random random(static_cast<std::uint64_t>(record));
    const std::int64_t count = (600 << 10) / record + random.below(9);
    List offsets;
    std::vector<Recipe> fields;
    for (std::int64_t at = random.below(3); at < record && fields.size() < 6;) {
      const std::int64_t length = std::min(record - at, random.pick(List{1, 2, 4, 8, 3, 16}));
      offsets.push_back(at);
      fields.push_back(hvector(count, record, bytes(length)));
      at += length + (random.one_in(3) ? random.below(5) : 0);
    }
    const Recipe all = copy_test::structure(offsets, fields);
    const std::string steps = describe_kernels(all.layout);
    EXPECT_TRUE(fields.size() == 1 || steps.contains("at a time")) << steps;
    ASSERT_TRUE(moves(all, static_cast<std::uint64_t>(record)));
  }
}

// Neighbours of one length are a part of two loops. Some of these structs at a time are permuted as all of them are.
TEST_P(CopyStructs, FieldsOfOneLengthOfManyStructs) {
  constexpr std::int64_t kRecord = 12, kCount = 60'013;
  const auto field = [](std::int64_t length) { return hvector(kCount, kRecord, bytes(length)); };
  const Recipe two = copy_test::structure({0, 3}, {field(3), field(3)});
  const Recipe all = copy_test::structure({0, 2, 5}, {field(2), field(3), field(3)});
  const std::string steps = describe_kernels(all.layout);
  EXPECT_TRUE(steps.contains("at a time")) << steps;
  EXPECT_EQ(steps.contains("permutations of bytes"), describe_kernels(two.layout).contains("permutations of bytes")) << steps;
  ASSERT_TRUE(moves(all, 12));
}

// Entries whose runs lie between those of their neighbours.
TEST_P(CopyStructs, EntriesThatInterleave) {
  for (const std::int64_t length : {1, 2, 4, 7, 8}) {
    for (const std::int64_t members : {2, 3, 5}) {
      for (const std::int64_t count : {8, 20, 40}) {
        for (const bool back : {false, true}) {
          List offsets;
          for (std::int64_t m = 0; m < members; ++m) offsets.push_back(m * (count * (length + 1) + 3));
          const Recipe element = copy_test::structure(offsets, std::vector(offsets.size(), bytes(length)));
          const auto seed = static_cast<std::uint64_t>(length * 1000 + members * 100 + count);
          ASSERT_TRUE(moves(hvector(count, back ? -length - 1 : length + 1, element), seed));
        }
      }
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
