// One case between the two ranks: round trips of each contender in turn, verified before the first round and after the
// last.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/bench/job/turns.hpp"

namespace lacuna::bench {

struct Effort {
  double milliseconds = 200;  ///< rounds begin until so much time is over
  int fewest = 9;             ///< rounds at least
  int most = 301;
};

/// Both ranks call it with the same arguments. `add_contenders`: as open_exchange(); the first one is Lacuna. Rank 0
/// returns
///   {"suite", "case", "family", "payload_bytes", "blocks", "rounds", "refused": [..],
///    "contenders": [{"name", "us", "low", "high", "ratio", "ratio_low", "ratio_high", "half_us"}, ..]}
/// and rank 1 an empty object. A time is that of one message, half a round trip; a ratio Lacuna's time over this one's,
/// within rounds; both are medians over the rounds with bootstrap intervals of 95 %. `half_us`: times over every other
/// round, one to choose the best by, the other to judge it by. Throws std::runtime_error where wrong bytes arrived (on
/// rank 0), and Broken.
nlohmann::json measure(const MessageCase& what, const Pair& pair, const std::function<void(Exchange&)>& add_contenders,
                       const Effort& effort);

}  // namespace lacuna::bench
