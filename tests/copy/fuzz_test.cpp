// Random compositions of all shapes, more than lacuna_fuzz's copy_kernels has. A failure names its seed: Dice(seed)
// makes the layout again. LACUNA_FUZZ_LAYOUTS=1000000 draws so many, and a quarter as many pairs; without it, two
// thousand. Tier all draws a million for each instruction set, in parts.
#include <cstdlib>
#include <tuple>

#include "tests/copy/checks.hpp"
#include "tests/copy/target.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::check_moves;
using copy_test::check_pair;
using copy_test::drawn;
using copy_test::InstructionSet;

LACUNA_ON_EVERY_SET(CopyFuzz);

std::uint64_t layouts() {
  const char* const wanted = std::getenv("LACUNA_FUZZ_LAYOUTS");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 0) : 2000;
}

void check_pairs(std::uint64_t first_seed, std::uint64_t count) {
  for (std::uint64_t seed = first_seed; seed < first_seed + count; ++seed) ASSERT_TRUE(check_pair(seed));
}

TEST_P(CopyFuzz, Compositions) { check_moves(1'000'000, layouts(), drawn); }
TEST_P(CopyFuzz, LayoutToLayout) { check_pairs(2'000'000, layouts() / 4); }

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint64_t kParts = 10;

class CopyMillion : public testing::TestWithParam<std::tuple<InstructionSet, std::uint64_t>> {
 protected:
  void SetUp() override {
    const InstructionSet& set = std::get<0>(GetParam());
    if (!copy_test::use(set)) GTEST_SKIP() << "this CPU has no " << set.name;
  }
  void TearDown() override { (void)copy_test::use({"", 0}); }
};

TEST_P(CopyMillion, Layouts) {
  constexpr std::uint64_t kEach = kMillion / kParts;
  const std::uint64_t part = std::get<1>(GetParam());
  check_moves(10 * kMillion + part * kEach, kEach, drawn);
  if (HasFatalFailure()) return;
  check_pairs(20 * kMillion + part * (kEach / 4), kEach / 4);
}

INSTANTIATE_TEST_SUITE_P(EverySet, CopyMillion,
                         testing::Combine(testing::ValuesIn(copy_test::instruction_sets()), testing::Range<std::uint64_t>(0, kParts)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) + "_" + std::to_string(std::get<1>(info.param));
                         });
LACUNA_TIER(all, "EverySet/CopyMillion.*");
LACUNA_LEFT_OUT(address, "EverySet/CopyMillion.*");

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
