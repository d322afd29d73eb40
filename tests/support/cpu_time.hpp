// What something costs this thread's CPU: other programs that have the CPU meanwhile do not count.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>

namespace lacuna::test {

inline std::int64_t cpu_ns() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

/// The least of several times, in ns.
template <class Work>
std::int64_t least_cpu_ns(int times, const Work& work) {
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < times; ++i) {
    const std::int64_t began = cpu_ns();
    work();
    least = std::min(least, cpu_ns() - began);
  }
  return least;
}

}  // namespace lacuna::test
