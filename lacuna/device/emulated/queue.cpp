#include "lacuna/device/emulated/queue.hpp"

#include <utility>

namespace lacuna::device::emulated {

void Mark::happen(std::int64_t now_ns) {
  const std::scoped_lock lock(mutex_);
  done_ = true;
  at_ns_ = now_ns;
  happened_.notify_all();
}

std::int64_t Mark::wait() {
  std::unique_lock lock(mutex_);
  happened_.wait(lock, [&] { return done_; });
  return at_ns_;
}

Queue::Queue() : thread_([this] { run(); }) {}

Queue::~Queue() {
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Queue::add(std::function<void()> work) {
  {
    const std::scoped_lock lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

void Queue::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return work_.empty() && !busy_; });
}

void Queue::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return ends_ || !work_.empty(); });
    if (work_.empty()) return;
    const std::function<void()> work = std::move(work_.front());
    work_.pop_front();
    busy_ = true;
    lock.unlock();
    work();
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace lacuna::device::emulated
