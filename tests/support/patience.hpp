// How long a test waits for what must come, and what it says when that does not come.
#pragma once

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "lacuna/base/base.hpp"

namespace lacuna::test {

/// ns. What must come takes far less, on a busy machine and under a sanitizer too.
inline constexpr std::int64_t kPatience = 120'000'000'000;

inline std::string in_vain(std::string_view what, std::int64_t waited_ns = kPatience) {
  return fmt::format("waited {:.3g} s in vain for {}", static_cast<double>(waited_ns) * 1e-9, what);
}

/// Waits until `holds`, and lets others have the CPU meanwhile. Returns nothing, or what it waited for in vain.
template <std::predicate Holds>
std::string await(std::string_view what, const Holds& holds) {
  for (const std::int64_t deadline = base::now_ns() + kPatience; !holds(); sched_yield()) {
    if (base::now_ns() > deadline) return in_vain(what);
  }
  return {};
}

/// Ends the program if it lives longer than the patience, and says what was waited for. For calls that have no limit
/// of their own. There is one at a time, and none in a child.
class Watchdog {
 public:
  explicit Watchdog(std::string_view what) {
    text() = in_vain(what) + "\n";
    struct sigaction action{};
    action.sa_handler = [](int) {
      (void)!write(STDERR_FILENO, text().data(), text().size());
      _exit(3);
    };
    sigaction(SIGALRM, &action, &before_);
    alarm(static_cast<unsigned>(kPatience / 1'000'000'000));
  }
  ~Watchdog() {
    alarm(0);
    sigaction(SIGALRM, &before_, nullptr);
  }
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  static std::string& text() {
    static std::string words;
    return words;
  }
  struct sigaction before_{};
};

}  // namespace lacuna::test
