// The clock of another machine, set beside this one's by messages. A round trip that left at t0, was there from t1 to
// t2 and came back at t3 says that the other clock is ahead by ((t1 - t0) + (t2 - t3)) / 2, as if either way took
// equally long: wrong by half of what it spent on its way at most. So the shortest of some counts. Clocks drift apart
// by microseconds a second: a time between two looks gets its place between what they said.
#pragma once

#include <utility>

#include "tools/measure/mailbox.hpp"

namespace lacuna::measure {

class Clocks {
 public:
  /// One look: some round trips, at rank 0. Errors: malformed (times that no clock shows), those of the mailbox.
  Result<void> look(nic::Context& context, Mailbox& mailbox);
  /// The same at rank 1, whose clock is `skew` ahead of what it is.
  static Result<void> answer(nic::Context& context, Mailbox& mailbox, std::int64_t skew);
  /// Whether the last look was long ago.
  [[nodiscard]] bool stale(std::int64_t now) const { return after_.at == 0 || now - after_.at > kKeeps; }
  /// When it was `theirs` there, by this clock: between the last two looks.
  [[nodiscard]] std::int64_t ours(std::int64_t theirs) const;
  /// By how much that may be wrong, in microseconds: the most of all looks since the last time that this was asked.
  double uncertain_us() { return std::exchange(uncertain_us_, 0); }

 private:
  static constexpr std::int64_t kKeeps = 20'000'000;  // ns
  struct Look {
    std::int64_t at = 0;     // by this clock
    std::int64_t ahead = 0;  // of the other one
  };
  Look before_, after_;
  double uncertain_us_ = 0;
};

/// A time that a peer tells. Errors: malformed.
Result<std::int64_t> plausible(std::int64_t time_ns);

}  // namespace lacuna::measure
