// The instruction sets that copy is compiled for, the same in every file: Highway finds its choice by its place among them. On x86: what every machine has, AVX2,
// AVX-512, and AVX-512 with permutations of bytes.
#pragma once

#define HWY_WANT_AVX3_DL
#ifdef LACUNA_FEWER_TARGETS  // AddressSanitizer sees nothing in AVX-512 without permutations that it does not see in the others
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4 | HWY_AVX3)
#else
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_SSE4)
#endif
