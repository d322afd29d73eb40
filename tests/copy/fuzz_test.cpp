// Random compositions of all shapes. A failure names its seed: Dice(seed) makes the layout again.
#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::check_moves;
using copy_test::Dice;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyFuzz);

TEST_P(CopyFuzz, Compositions) {
  check_moves(1'000'000, 2000, [](Dice& dice) {
    dice.budget = 1 + dice.what.scaled(8 << 10);
    dice.reach = 64 << 10;
    return composition(dice, static_cast<int>(dice.what.below(4)));
  });
}

TEST_P(CopyFuzz, LayoutToLayout) {
  for (std::uint64_t seed = 2'000'000; seed < 2'000'500; ++seed) {
    Dice dice(seed);
    dice.budget = 1 + dice.what.scaled(8 << 10);
    dice.reach = 64 << 10;
    dice.receive = true;
    const Recipe source = composition(dice, static_cast<int>(dice.what.below(4)));
    const Recipe target = of_size(dice, source.size());
    ASSERT_TRUE(transpacks(source, target, seed));
    ASSERT_TRUE(transpacks(target, source, seed));
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
