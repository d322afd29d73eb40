// helpers: threads that do one thing each, and then end. It hides that work may throw: memory may be short, and that
// ends no program.
#pragma once

#include <concepts>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string_view>

#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// A line of the log.
void say_thrown(std::string_view where, std::string_view what) noexcept;

/// Whether the work came to its end. What it throws is a line of the log.
template <std::invocable Work>
bool contained(std::string_view where, const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::exception& failure) {
    say_thrown(where, failure.what());
  } catch (...) {
    say_thrown(where, "an exception that does not say what is wrong");
  }
  return false;
}

/// Something that one thread does and others may wait for.
class Errand {
 public:
  void end();
  [[nodiscard]] bool over() const;
  /// Whether it is over; waits until then, or until `deadline` of base::now_ns().
  bool wait(std::int64_t deadline) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable ended_;
  bool over_ = false;
};

class Helpers {
 public:
  Helpers() = default;
  ~Helpers() { wait(); }
  Helpers(const Helpers&) = delete;
  Helpers& operator=(const Helpers&) = delete;

  /// In a thread of its own; in this one if the system has none to give.
  void run(std::function<void()> work);
  /// How many threads there are.
  [[nodiscard]] int working() const;
  /// Until all work is over, and what it held is gone.
  void wait();

 private:
  mutable std::mutex mutex_;
  std::condition_variable over_;
  int working_ = 0;
};

}  // namespace lacuna::nixl
