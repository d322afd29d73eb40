// Random compositions of all shapes. A failure names its seed: Dice(seed) makes the layout again.
// LACUNA_FUZZ_LAYOUTS=1000000 draws so many, and a quarter as many pairs; without it, two thousand.
#include <cstdlib>

#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::check_moves;
using copy_test::Dice;
using copy_test::Recipe;

LACUNA_ON_EVERY_SET(CopyFuzz);

std::uint64_t layouts() {
  const char* const wanted = std::getenv("LACUNA_FUZZ_LAYOUTS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : 2000;
}

TEST_P(CopyFuzz, Compositions) {
  check_moves(1'000'000, layouts(), [](Dice& dice) {
    dice.budget = 1 + dice.what.scaled(8 << 10);
    dice.reach = 64 << 10;
    return composition(dice, static_cast<int>(dice.what.below(4)));
  });
}

TEST_P(CopyFuzz, LayoutToLayout) {
  constexpr std::uint64_t kFirst = 2'000'000;
  for (std::uint64_t seed = kFirst; seed < kFirst + layouts() / 4; ++seed) {
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
