// Memory that cannot be had: allocations of the interposer, and of what it calls, that throw std::bad_alloc. What the
// fake MPI and the test allocate goes on.
#pragma once

#include <cstddef>
#include <utility>

namespace lacuna::test::scarce {

/// Allocations of this thread that are left until they fail: from then on all of them do, or one. Below 0: none does.
extern thread_local long left;
extern thread_local bool for_good;
/// Bytes of the longest allocation of this thread since a test has set it to 0.
extern thread_local std::size_t longest;
/// The fake is at work on this thread.
extern thread_local int others;

/// While there is one, allocations of this thread are others'.
struct Other {
  Other() { ++others; }
  ~Other() { --others; }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;
};

/// A call whose allocations fail after `after` of them. Second: whether that many were wanted.
template <class Call>
std::pair<int, bool> call(long after, bool all, const Call& call) {
  for_good = all;
  left = after;
  const int result = call();
  const bool failed = left == -1;
  left = -2;
  return {result, failed};
}

/// How a rank does its part under scarcity, which comes after so many allocations of all its calls, and ends with the
/// call.
struct Scarcity {
  static constexpr long kNever = 1'000'000'000;
  long after;
  bool all, failed = false;
  template <class Call>
  int operator()(const Call& call) {
    if (failed) return call();
    for_good = all;
    left = after;
    const int result = call();
    after = left;
    failed = left == -1;
    left = -2;
    return result;
  }
};

}  // namespace lacuna::test::scarce
