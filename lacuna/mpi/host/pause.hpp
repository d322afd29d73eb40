// A moment of waiting for another process.
#pragma once

#include <sched.h>

#include "lacuna/base/base.hpp"

namespace lacuna::mpi {

/// `rounds` counts the moments. Now and then another process gets the CPU, since ranks may be more than CPUs.
inline void pause(int& rounds) {
  constexpr int kRoundsPerYield = 1024;
  if (++rounds % kRoundsPerYield == 0) {
    sched_yield();
  } else {
    base::cpu_relax();
  }
}

}  // namespace lacuna::mpi
