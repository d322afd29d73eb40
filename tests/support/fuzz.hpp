// Tests with random input: a seed for each run, named where one fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "lacuna/base/base.hpp"

namespace lacuna::support {

/// Calls `body` with one seed after another, from 1, `count` times or until something fails; returns how often.
/// LACUNA_FUZZ_SECONDS: for a share of so long instead, with seeds that no run had before. LACUNA_FUZZ_SEED: once, with
/// that one. LACUNA_FUZZ_TRACE: each seed is printed first, for runs that hang.
template <class Body>
int fuzz(int count, const Body& body, double share = 1) {
  const char* const seconds = std::getenv("LACUNA_FUZZ_SECONDS");
  const char* const one = std::getenv("LACUNA_FUZZ_SEED");
  std::uint64_t seed = one != nullptr       ? std::strtoull(one, nullptr, 0)
                       : seconds != nullptr ? static_cast<std::uint64_t>(base::now_ns())
                                            : 1;
  const std::int64_t deadline = base::now_ns() + static_cast<std::int64_t>((seconds != nullptr ? std::atof(seconds) * share : 0) * 1e9);
  int runs = 0;
  do {
    SCOPED_TRACE("LACUNA_FUZZ_SEED=" + std::to_string(seed));
    if (std::getenv("LACUNA_FUZZ_TRACE") != nullptr) std::fprintf(stderr, "seed %llu\n", static_cast<unsigned long long>(seed));
    body(seed++);
    ++runs;
  } while (!testing::Test::HasFailure() && one == nullptr && (seconds != nullptr ? base::now_ns() < deadline : runs < count));
  return runs;
}

}  // namespace lacuna::support
