// run: a row's corpus, its canary and its inputs, in a process of its own, so that an input that ends the process is
// known too.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/fuzz/fuzzer.hpp"

namespace lacuna::fuzz {

struct Wanted {
  std::uint64_t seed = 1;   ///< of the first input; each has the next one
  std::int64_t inputs = 0;  ///< below 0: those of a smoke run
  double times = 1;         ///< of a smoke run's inputs
  std::string file;         ///< instead of all else: this input alone
};

struct Found {
  std::string input;  ///< "seed 5", or a file
  std::string wrong;
};

struct Outcome {
  std::int64_t corpus = 0, inputs = 0, taken = 0;
  std::int64_t canary = 0;  ///< the input that found the planted fault, from 1; 0: none did
  double cpu_s = 0;
  std::string skipped;  ///< why nothing was tried; empty: it was
  std::vector<Found> found;
  std::string said;  ///< the end of what it said on standard error, if something was found
};

/// `progress` hears now and then how many inputs were tried.
Outcome run(const Fuzzer& fuzzer, const Wanted& wanted, const std::function<void(std::int64_t inputs)>& progress);

}  // namespace lacuna::fuzz
