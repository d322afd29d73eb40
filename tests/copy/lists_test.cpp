// Lists of blocks of one length and of many: lists, masks, granules, irregular blocks.
#include <algorithm>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::check_moves;
using copy_test::Dice;
using copy_test::List;
using copy_test::moves;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyLists);

TEST_P(CopyLists, ListsOfEveryBlockLength) {
  for (std::int64_t length = 1; length <= 66; ++length) {
    check_moves(static_cast<std::uint64_t>(100'000 + 10 * length), 6, [&](Dice& dice) { return list_of(dice, length); });
    if (HasFatalFailure()) return;
  }
  check_moves(102'000, 60, [](Dice& dice) { return list_of(dice, copy_test::any_length(dice.what)); });
}

TEST_P(CopyLists, SortedNumbersWithNeighbours) { check_moves(110'000, 300, copy_test::sieve); }
TEST_P(CopyLists, BlocksOfRandomLengths) { check_moves(120'000, 300, copy_test::ragged); }
TEST_P(CopyLists, BlocksOfLengthsWithADivisor) { check_moves(130'000, 300, copy_test::granular); }
TEST_P(CopyLists, BlocksOfPeriodicLengths) { check_moves(140'000, 300, copy_test::periodic); }
TEST_P(CopyLists, ListsOfVectors) { check_moves(150'000, 150, copy_test::vector_list); }

// A plan looks at the first few hundred runs of a long list and believes that the others are like them.
TEST_P(CopyLists, LongListsThatChangeTheirManner) {
  for (std::uint64_t seed = 160'000; seed < 160'012; ++seed) {
    support::Random random(seed);
    const std::int64_t length = random.between(1, 12);
    List offsets;
    List lengths;
    const std::int64_t change = random.between(200, 2000);
    for (std::int64_t i = 0, at = 0; i < 2500; ++i) {
      const bool close = (i < change) == (seed % 2 == 0);
      at += close ? random.between(1, 4) : random.between(60, 200);
      offsets.push_back(at);
      lengths.push_back(random.one_in(3) ? length + 1 : length);
      at += lengths.back();
    }
    if (seed % 3 == 0) random.shuffle(offsets);
    if (seed % 3 == 0) std::ranges::fill(lengths, 1);
    ASSERT_TRUE(moves(copy_test::blocks(offsets, lengths), seed));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
