// A moment of waiting for another process.
#pragma once

#include <sched.h>

#include <atomic>

#include "lacuna/base/base.hpp"

namespace lacuna::mpi {

/// Whether some rank of this node may have no CPU: who waits lets others have his. Until MPI_Init knows, it may.
inline std::atomic<bool> ranks_share_cpus = true;

/// `rounds` counts the moments. A rank that waits for one without a CPU waits for its own time slice to end, some ms,
/// unless it yields; between ranks with CPUs of their own a yield takes as long as a short message.
inline void pause(int& rounds) {
  constexpr int kRoundsPerYield = 1024, kRoundsToShare = 8;
  if (++rounds % (ranks_share_cpus.load(std::memory_order_relaxed) ? kRoundsToShare : kRoundsPerYield) == 0) {
    sched_yield();
  } else {
    base::cpu_relax();
  }
}

}  // namespace lacuna::mpi
