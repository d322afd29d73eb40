// The instruction sets that are found are those that the kernel lists.
#include <gtest/gtest.h>
#include <hwy/targets.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

#if HWY_ARCH_X86

std::set<std::string> flags_of_the_kernel() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}

TEST(Targets, AreThoseThatTheKernelLists) {
  const auto flags = flags_of_the_kernel();
  if (flags.empty()) GTEST_SKIP() << "/proc/cpuinfo has no flags";
  const auto all = [&flags](std::initializer_list<const char*> names) {
    return std::all_of(names.begin(), names.end(), [&flags](const char* name) { return flags.contains(name); });
  };
  const bool avx2 = all({"avx2", "bmi1", "bmi2", "fma", "f16c", "abm"});
  const bool avx3 = avx2 && all({"avx512f", "avx512vl", "avx512dq", "avx512bw", "avx512cd"});
  const bool permutations =
      avx3 && all({"avx512vbmi", "avx512_vbmi2", "avx512_vnni", "avx512_bitalg", "avx512_vpopcntdq", "gfni", "vaes", "vpclmulqdq"});
  const std::int64_t found = hwy::SupportedTargets();
  EXPECT_EQ((found & HWY_AVX2) != 0, avx2);
  EXPECT_EQ((found & HWY_AVX3) != 0, avx3);
  EXPECT_EQ((found & HWY_AVX3_DL) != 0, permutations);
}

#endif

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
