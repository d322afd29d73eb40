// fuzzer: a row of the table of all that comes from outside this process, with what makes inputs, and what says whether
// the library did right by one. docs/design/simulator.md says how to add a row.
//
//   draw(seed) ──▶ input ──▶ judge ──▶ verdict: taken or not, and what is wrong
//   corpus/NAME/* ──┘           └── planted: with a fault that the judge has to report
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tests/support/random.hpp"

namespace lacuna::fuzz {

using support::Random;
/// An input: bytes of any kind, or the number of a seed in decimal digits.
using Bytes = std::string;

struct Verdict {
  bool taken = false;  ///< the library took the input; else it said an error
  std::string wrong;   ///< empty: nothing
};

struct Fuzzer {
  std::string_view name;
  std::string_view what;  ///< comes from outside, and from whom
  int smoke;              ///< inputs of a smoke run, of five seconds at most on one CPU of 2022
  double least_taken;     ///< of the inputs of a smoke run, the share that the library takes: below it, the inputs test
                          ///< the first bytes only
  Bytes (*draw)(Random& random);
  Verdict (*judge)(const Bytes& input, bool planted);
  std::string (*lacks)() = nullptr;  ///< what this machine has not that the row needs; empty, or null: nothing
};

[[nodiscard]] std::span<const Fuzzer> fuzzers();

/// For rows whose inputs are numbers of seeds.
[[nodiscard]] Bytes draw_seed(Random& random);
[[nodiscard]] std::uint64_t seed_of(const Bytes& input);

}  // namespace lacuna::fuzz
