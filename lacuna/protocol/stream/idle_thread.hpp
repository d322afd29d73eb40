// A thread that looks now and then, as long as there is something to look for.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <semaphore>
#include <thread>

namespace lacuna::protocol {

class IdleThread {
 public:
  /// `look`: false: there is nothing left, and the thread ends until wake(). `pause`: ns before each look.
  IdleThread(std::function<bool()> look, std::int64_t pause) : look_(std::move(look)), pause_ns_(pause) {}
  IdleThread(const IdleThread&) = delete;
  IdleThread& operator=(const IdleThread&) = delete;
  ~IdleThread();
  /// There is something now. By one thread; where the system has no thread for it, nothing is done.
  void wake();

 private:
  void run();
  std::function<bool()> look_;
  std::int64_t pause_ns_;
  std::atomic<bool> runs_ = false;
  std::binary_semaphore ends_{0};
  std::thread thread_;
};

}  // namespace lacuna::protocol
