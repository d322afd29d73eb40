// Layouts of layouts: sequences, repeats, and repeats of sequences.
#include "lacuna/copy/copy.hpp"
#include "lacuna/copy/windows.hpp"
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::check_moves;
using copy_test::Dice;
using copy_test::List;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyCompounds);

TEST_P(CopyCompounds, Sequences) {
  check_moves(300'000, 200, [](Dice& dice) {
    std::vector<Recipe> parts;
    dice.budget = 4 << 10;
    for (std::int64_t i = dice.what.between(2, 6); i > 0; --i) parts.push_back(any_shape(dice));
    return sequence_of(dice, parts);
  });
}

TEST_P(CopyCompounds, Repeats) {
  check_moves(310'000, 200, [](Dice& dice) {
    dice.budget = 1 << 10;
    const std::int64_t count = dice.what.between(2, 12);
    return repeat_of(dice, count, any_shape(dice));
  });
}

// A sequence whose parts are short lists and blocks may become one step; with any other part among them it may not.
TEST_P(CopyCompounds, SequencesOfLists) {
  check_moves(320'000, 200, [](Dice& dice) {
    std::vector<Recipe> parts;
    dice.budget = 500;
    for (std::int64_t i = dice.what.between(2, 8); i > 0; --i) {
      switch (dice.what.below(dice.where.one_in(3) ? 5 : 4)) {
        case 0: parts.push_back(sieve(dice)); break;
        case 1: parts.push_back(ragged(dice)); break;
        case 2: parts.push_back(granular(dice)); break;
        case 3: parts.push_back(list_of(dice, dice.what.between(1, 16))); break;
        default: parts.push_back(struct_array(dice)); break;
      }
    }
    return sequence_of(dice, parts);
  });
}

TEST_P(CopyCompounds, RepeatsOfSequences) {
  check_moves(330'000, 200, [](Dice& dice) {
    std::vector<Recipe> parts;
    dice.budget = 800;
    for (std::int64_t i = dice.what.between(2, 4); i > 0; --i) parts.push_back(any_shape(dice));
    const Recipe sequence = sequence_of(dice, parts);
    const Recipe once = repeat_of(dice, dice.what.between(2, 9), sequence);
    return dice.what.one_in(3) ? repeat_of(dice, 2, once) : once;
  });
}

// The shapes are of use only as long as they reach every kind of step and every special kernel.
TEST_P(CopyCompounds, ReachEveryKindOfStep) {
  std::string seen;
  for (std::uint64_t seed = 1; seed <= 1500; ++seed) {
    Dice dice(seed);
    seen += copy::describe_kernels(composition(dice, static_cast<int>(seed % 3)).layout);
  }
  std::vector<const char*> wanted = {"run: ",           "nest: ",           " rows ",       "list: ",       "blocks: ",
                                     "woven: ",         "member by member", "repeat: ",     "sequence of ", "by streaming stores",
                                     "four to a store", "two to a store",   "two to a load"};
  const std::string set = GetParam().name;
  if (set == "AVX2" || set == "AVX3") wanted.push_back("12, overlapping stores");
  if (set == "All" && window_kernels() != nullptr) {
    for (const char* text : {"masked: ", " to a window"}) wanted.push_back(text);
  }
  for (const char* text : wanted) EXPECT_TRUE(seen.contains(text)) << text;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
