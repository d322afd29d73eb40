// The schedules: from what a rank sends and receives, the rounds in which it does so.
#pragma once

#include "lacuna/collective/program.hpp"

namespace lacuna::collective {

/// What one rank brings to an exchange.
struct Work {
  int rank = 0;
  int size = 1;
  std::vector<Send> sends;
  std::vector<Receive> receives;
};

/// Where a message from one rank to another comes in the order of all. With a power of two ranks both ends of a pair
/// meet in one step, and send to one another; else each sends to the one that is `step` further on. In each step each
/// rank has one peer, so no rank is beset by many.
[[nodiscard]] int step_of(int from, int to, int size);

/// One round of all messages, in the order of their steps; empty ones need none.
Round direct(const Work& work, int window, nic::Context& context);

/// Bruck's store and forward, of exactly one block for each rank and from each.
class Forwarding {
 public:
  /// `largest`: of all ranks' blocks. Errors: out_of_memory.
  Result<void> make(const Work& work, std::int64_t largest, nic::Context& context);
  [[nodiscard]] const std::deque<Round>& rounds() const { return rounds_; }

 private:
  std::vector<std::byte> slots_;
  std::deque<Round> rounds_;
};

/// Bytes that forwarding needs at each rank.
[[nodiscard]] std::int64_t forwarding_bytes(int ranks, std::int64_t largest);
inline constexpr std::int64_t kMostForwarded = 256 << 20;

}  // namespace lacuna::collective
