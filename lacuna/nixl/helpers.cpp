#include "lacuna/nixl/helpers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

namespace lacuna::nixl {

void say_thrown(std::string_view where, std::string_view what) noexcept {
  try {
    base::log(base::Level::error, fmt::format("NIXL: {}: {}", where, what));
  } catch (...) {  // there is no memory for the line either
    std::fputs("lacuna: error: NIXL: memory is short\n", stderr);
  }
}

void Errand::end() {
  const std::scoped_lock lock(mutex_);
  over_ = true;
  ended_.notify_all();
}

bool Errand::over() const {
  const std::scoped_lock lock(mutex_);
  return over_;
}

// A clock cannot wait for ever.
bool Errand::wait(std::int64_t deadline) const {
  constexpr std::int64_t kMostNs = 3'600'000'000'000;
  std::unique_lock lock(mutex_);
  while (!over_) {
    const std::int64_t left = deadline - base::now_ns();
    if (left <= 0) return false;
    ended_.wait_for(lock, std::chrono::nanoseconds(std::min(left, kMostNs)));
  }
  return true;
}

void Helpers::run(std::function<void()> work) {
  const auto held = std::make_shared<std::function<void()>>(std::move(work));
  {
    const std::scoped_lock lock(mutex_);
    ++working_;
  }
  const auto all = [this, held] {
    contained("a thread of the agent", *held);
    *held = nullptr;
    const std::scoped_lock lock(mutex_);
    --working_;
    over_.notify_all();
  };
  try {
    base::without_signals([&] { std::thread(all).detach(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    all();
  }
}

int Helpers::working() const {
  const std::scoped_lock lock(mutex_);
  return working_;
}

void Helpers::wait() {
  std::unique_lock lock(mutex_);
  over_.wait(lock, [this] { return working_ == 0; });
}

}  // namespace lacuna::nixl
