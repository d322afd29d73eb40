// The instruction sets that copy is compiled for, the same in every file: Highway finds its choice by its place among
// them. On x86: what every machine has, AVX2, AVX-512, and AVX-512 with permutations of bytes. On ARM: NEON, and SVE of
// any width, of which the other forms of SVE would be copies: no kernel uses more of them.
#pragma once

#define HWY_WANT_AVX3_DL
#define LACUNA_UNUSED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_SVE_256 | HWY_SVE2 | HWY_SVE2_128)
// AddressSanitizer sees nothing in AVX-512 without permutations that it does not see in the others
#ifdef LACUNA_FEWER_TARGETS
#define HWY_DISABLED_TARGETS (LACUNA_UNUSED_TARGETS | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS LACUNA_UNUSED_TARGETS
#endif
