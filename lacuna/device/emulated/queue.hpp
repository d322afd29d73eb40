// queue: a stream of the emulated device: a thread that does one thing after another, later than it was asked to, as a GPU does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace lacuna::device::emulated {

/// A point in a queue.
struct Mark {
  std::mutex mutex;
  std::condition_variable happened;
  bool done = true;
  std::int64_t at_ns = 0;

  void begin() {
    const std::scoped_lock lock(mutex);
    done = false;
  }
  void happen(std::int64_t now_ns);
  std::int64_t wait();  ///< when it happened
};

class Queue {
 public:
  Queue();
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void add(std::function<void()> work);
  void drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace lacuna::device::emulated
