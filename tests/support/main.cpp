// The main() of all test programs: it runs the tests of a tier, all of them by default.
//   LACUNA_TIER=check|test|gate|all    those of this tier and of the tiers before it
//   LACUNA_SHARD=K/N                   the K-th of N parts, from 1; GoogleTest's own shards divide it further
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace {

bool matches(const char* pattern, const char* name) {
  if (*pattern == '\0') return *name == '\0';
  if (*pattern == '*') return matches(pattern + 1, name) || (*name != '\0' && matches(pattern, name + 1));
  return *name != '\0' && (*pattern == '?' || *pattern == *name) && matches(pattern + 1, name + 1);
}

bool any_test_matches(const char* pattern) {
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  for (int i = 0; i < tests.total_test_suite_count(); ++i) {
    const testing::TestSuite& suite = *tests.GetTestSuite(i);
    for (int j = 0; j < suite.total_test_count(); ++j)
      if (matches(pattern, (std::string(suite.name()) + "." + suite.GetTestInfo(j)->name()).c_str())) return true;
  }
  return false;
}

// False, having said why, where there is no such tier or a label is of no test.
bool choose_tests(std::string_view wanted) {
  constexpr std::array<std::string_view, 4> names{"check", "test", "gate", "all"};
  std::size_t tier = 0;
  while (tier < names.size() && names.at(tier) != wanted) ++tier;
  if (tier == names.size()) {
    std::fprintf(stderr, "LACUNA_TIER is '%s'; it may be check, test, gate or all\n", std::string(wanted).c_str());
    return false;
  }
  std::string left_out;
  // It may lack whole methods, and a filter chooses its tests
  const bool on_another_nic = std::getenv("LACUNA_TEST_NIC") != nullptr;
  for (const Known& label : labels()) {
    if (!label.general && !on_another_nic && !any_test_matches(label.pattern)) {
      std::fprintf(stderr, "a label is of no test: %s\n", label.pattern);
      return false;
    }
    if (label.build ? !on_another_nic : static_cast<std::size_t>(label.tier) > tier) left_out += std::string(":") + label.pattern;
  }
  std::string& filter = testing::GTEST_FLAG(filter);
  if (!left_out.empty()) filter += filter.find('-') == std::string::npos ? "-" + left_out.substr(1) : left_out;
  return true;
}

bool choose_shard(const char* shard) {
  int k = 0;
  int n = 0;
  if (std::sscanf(shard, "%d/%d", &k, &n) != 2 || k < 1 || k > n) {
    std::fprintf(stderr, "LACUNA_SHARD is '%s'; it may be K/N, K from 1 to N\n", shard);
    return false;
  }
  const char* shares = std::getenv("GTEST_TOTAL_SHARDS");
  const char* share = std::getenv("GTEST_SHARD_INDEX");
  const int own = shares == nullptr ? 1 : std::atoi(shares);
  setenv("GTEST_TOTAL_SHARDS", std::to_string(own * n).c_str(), 1);
  setenv("GTEST_SHARD_INDEX", std::to_string((share == nullptr ? 0 : std::atoi(share)) + own * (k - 1)).c_str(), 1);
  return true;
}

}  // namespace

}  // namespace lacuna::test

int main(int argc, char** argv) {
  const char* shard = std::getenv("LACUNA_SHARD");
  if (shard != nullptr && *shard != '\0' && !lacuna::test::choose_shard(shard)) return 2;
  testing::InitGoogleTest(&argc, argv);
  const char* tier = std::getenv("LACUNA_TIER");
  if (!lacuna::test::choose_tests(tier == nullptr || *tier == '\0' ? "all" : tier)) return 2;
  return RUN_ALL_TESTS();
}
