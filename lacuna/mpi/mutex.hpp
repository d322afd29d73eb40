// A mutex that costs nothing in programs whose threads do not call MPI at once, which most are: an uncontended one takes as long as packing 300 bytes.
#pragma once

#include <atomic>
#include <mutex>

namespace lacuna::mpi {

class Mutex {
 public:
  void lock() {
    if (multiple()) mutex_.lock();
  }
  void unlock() {
    if (multiple()) mutex_.unlock();
  }
  static bool multiple() { return threads.load(std::memory_order_relaxed); }
  /// MPI_THREAD_MULTIPLE. Said in MPI_Init, before anything is locked.
  static inline std::atomic<bool> threads = true;

 private:
  std::mutex mutex_;
};

}  // namespace lacuna::mpi
