// Tests that run once for each instruction set: Highway is told to see no better one. Kernels are chosen when a
// layout's plan is made, so a layout made under one set stays with it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace lacuna::copy_test {

struct InstructionSet {
  const char* name;
  std::int64_t best;  ///< of Highway's targets; 0 for whatever the CPU has
};
inline void PrintTo(const InstructionSet& set, std::ostream* out) { *out << set.name; }

[[nodiscard]] std::vector<InstructionSet> instruction_sets();

/// False if the CPU lacks it.
[[nodiscard]] bool use(const InstructionSet& set);

/// Another one that is the same on this CPU, whose best is one of them; empty: there is none.
[[nodiscard]] std::string twin_of(const InstructionSet& set);

class OnEverySet : public testing::TestWithParam<InstructionSet> {
 protected:
  void SetUp() override {
    if (!use(GetParam())) GTEST_SKIP() << "this CPU has no " << GetParam().name;
    if (const std::string twin = twin_of(GetParam()); !twin.empty()) GTEST_SKIP() << "all that this CPU has is " << twin;
  }
  void TearDown() override { (void)use({"", 0}); }
};

inline std::string name_of(const testing::TestParamInfo<InstructionSet>& info) { return info.param.name; }

/// A suite that runs on every set.
#define LACUNA_ON_EVERY_SET(suite)               \
  class suite : public copy_test::OnEverySet {}; \
  INSTANTIATE_TEST_SUITE_P(EverySet, suite, testing::ValuesIn(copy_test::instruction_sets()), copy_test::name_of)

}  // namespace lacuna::copy_test
