#include "tests/copy/target.hpp"

#include <hwy/targets.h>

#include <cstdio>

#include "lacuna/copy/copy.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::copy_test {

LACUNA_LEFT_OUT(thread, "EverySet/*");
LACUNA_LEFT_OUT(address, "EverySet/*/AVX3");  // not in that build
LACUNA_LEFT_OUT(address, "EverySet/*/All");   // one of the others

namespace {

// Says once which of them this CPU gets when nothing is restricted: scripts/arm.sh compares.
class Chosen : public testing::Environment {
  void SetUp() override { std::printf("instruction set: %s\n", copy::instruction_set()); }
};
[[maybe_unused]] const testing::Environment* const chosen = testing::AddGlobalTestEnvironment(new Chosen);

}  // namespace

std::vector<InstructionSet> instruction_sets() {
  return {
      {"All", 0},
#if HWY_ARCH_X86
      {"AVX3", HWY_AVX3},  // without the byte permutations that windows need
      {"AVX2", HWY_AVX2},
#endif
      {"Baseline", HWY_STATIC_TARGET},
  };
}

bool use(const InstructionSet& set) {
  const std::int64_t cpu = hwy::SupportedTargets();
  // A target is the better the lower its bit.
  const std::int64_t allowed = set.best == 0 ? cpu : cpu & -set.best;
  const bool has = set.best == 0 || (cpu & set.best) != 0 || set.best == HWY_STATIC_TARGET;
  // The dispatch tables go by what was chosen at first use.
  hwy::GetChosenTarget().Update(has ? allowed | HWY_STATIC_TARGET : cpu);
  if (has && set.best != 0) {
    EXPECT_STREQ(copy::instruction_set(), hwy::TargetName(set.best));
  }
  return has;
}

std::string twin_of(const InstructionSet& set) {
  if (set.best != 0) return {};
  const std::int64_t cpu = hwy::SupportedTargets() | HWY_STATIC_TARGET;
  for (const InstructionSet& other : instruction_sets()) {
    if (other.best != 0 && other.best == (cpu & -cpu)) return other.name;
  }
  return {};
}

}  // namespace lacuna::copy_test
