// The two functions that Highway's dispatch needs of its library: which instruction sets this CPU has, of those that
// targets.hpp names, and the one choice that all dispatch tables share. All else of Highway is in its headers, so no
// library of it is linked. Weak: a program that links Highway itself as an archive has its own.
#include "lacuna/copy/targets.hpp"

#include <hwy/targets.h>

#if HWY_ARCH_X86
#include <cpuid.h>
#elif HWY_ARCH_ARM
#include <sys/auxv.h>
#endif

namespace hwy {
namespace {

#if HWY_ARCH_X86

// A bit of ECX.
bool has_bit(unsigned leaf, int bit) {
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
  unsigned d = 0;
  if (__get_cpuid_count(leaf, 0, &a, &b, &c, &d) == 0) return false;
  return (c >> bit & 1U) != 0;
}

// The compiler's own test also asks whether the system saves the registers. It has no names for F16C, LZCNT and VAES in
// Clang before 19; their bits are those of Intel's manual, volume 2, CPUID.
std::int64_t found() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("fma") && has_bit(1, 29) && has_bit(0x80000001, 5);
  if (!avx2) return 0;
  const bool avx3 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd");
  if (!avx3) return HWY_AVX2;
  const bool permutations = __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
                            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bitalg") &&
                            __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("gfni") &&
                            __builtin_cpu_supports("vpclmulqdq") && has_bit(7, 9);
  return HWY_AVX2 | HWY_AVX3 | (permutations ? HWY_AVX3_DL : 0);
}

#elif HWY_ARCH_ARM && defined(HWCAP_SVE)

std::int64_t found() { return (getauxval(AT_HWCAP) & HWCAP_SVE) != 0 ? HWY_SVE : 0; }

#else

std::int64_t found() { return 0; }

#endif

}  // namespace

[[gnu::weak]] std::int64_t SupportedTargets() {
  static const std::int64_t targets = found() | HWY_STATIC_TARGET;
  return targets;
}

[[gnu::weak]] ChosenTarget& GetChosenTarget() {
  static constinit ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
