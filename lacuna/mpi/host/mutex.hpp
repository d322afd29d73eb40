// A mutex that costs nothing in programs whose threads do not call MPI at once, which most are: an uncontended one
// takes as long as packing 300 bytes.
#pragma once

#include <atomic>
#include <mutex>

namespace lacuna::mpi {

class Mutex {
 public:
  void lock() {
    if (!multiple() || mutex_.try_lock()) return;
    wanted_.fetch_add(1, std::memory_order_relaxed);
    mutex_.lock();
    wanted_.fetch_sub(1, std::memory_order_relaxed);
  }
  void unlock() {
    if (multiple()) mutex_.unlock();
  }
  /// MPI_THREAD_MULTIPLE. Said in MPI_Init, before anything is locked.
  static void say_multiple(bool multiple) { threads_.store(multiple, std::memory_order_relaxed); }
  static bool multiple() { return threads_.load(std::memory_order_relaxed); }
  /// Whether a thread waits for one of them.
  static bool wanted() { return wanted_.load(std::memory_order_relaxed) != 0; }

 private:
  static inline std::atomic<bool> threads_ = true;
  static inline std::atomic<int> wanted_ = 0;
  // The host may call an error handler of the program in the middle of a call, and that may call MPI
  std::recursive_mutex mutex_;
};

}  // namespace lacuna::mpi
