// Runs the two ends of a connection: as two processes, on two machines if so wanted (apart.hpp), or, where a sanitizer
// has to see both, as two threads.
#pragma once

#include <functional>
#include <string>

#include "lacuna/nic/nic.hpp"

namespace lacuna::test {

/// What an end does; returns what went wrong, or nothing.
using End = std::function<std::string(int rank, nic::Bootstrap& bootstrap)>;

/// Rank 0 in this process, rank 1 in a child. Returns what either end says went wrong. A child that dies of a signal is
/// an error unless it is `expected_signal`.
std::string in_two_processes(const End& end, int expected_signal = 0);
std::string in_two_threads(const End& end);
/// What the ends say went wrong, as one text.
std::string both(const std::string& first, const std::string& second);

/// Evaluates to the value of a Result, or returns its error's text from an End.
#define LACUNA_END_TRY(expression)                                                             \
  __extension__({                                                                              \
    auto lacuna_result_ = (expression);                                                        \
    if (!lacuna_result_) return std::string(#expression ": ") + lacuna_result_.error().text(); \
    ::lacuna::base::detail::take(std::move(lacuna_result_));                                   \
  })
/// Returns from an End if a condition does not hold.
#define LACUNA_END_EXPECT(condition) \
  if (!(condition)) return std::string("line " + std::to_string(__LINE__) + ": " #condition)

}  // namespace lacuna::test
