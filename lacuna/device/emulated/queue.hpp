// queue: a stream of the emulated device: a thread that does one thing after another, later than it was asked to, as a
// GPU does.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace lacuna::device::emulated {

/// A point in a queue, which happens once.
class Mark {
 public:
  void happen(std::int64_t now_ns);
  std::int64_t wait();  ///< when it happened

 private:
  std::mutex mutex_;
  std::condition_variable happened_;
  bool done_ = false;
  std::int64_t at_ns_ = 0;
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
