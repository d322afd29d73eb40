// luck: what goes wrong in a simulated world, and when. Drawn from a seed, rank by rank, so that the same story always
// has the same luck. It hides nothing but the drawing.
#pragma once

#include <cstdint>

#include "tests/support/random.hpp"

namespace lacuna::simulate {

/// How often something happens, of a thousand chances, and how bad it is. All 0: nothing ever does.
struct Luck {
  int late = 0;  ///< a completion that this process hears of later, by up to
  std::int64_t late_ns = 0;
  int slow = 0;  ///< a call of the NIC that takes so much longer, at most
  std::int64_t slow_ns = 0;
  int stalls = 0;  ///< of a hundred thousand: a poll before which the process has no CPU for so long, at most
  std::int64_t stall_ns = 0;
  int no_keys = 0;  ///< a registration that is refused
  int jumps = 0;    ///< of a hundred thousand: a look at the clock that is further than it was, by up to
  std::int64_t jump_ns = 0;
  bool spoils = false;       ///< each message has a wrong byte: to see that the judge notices
  int dies = -1;             ///< the rank that does,
  std::int64_t dies_at = 0;  ///< at this call of its NIC

  [[nodiscard]] bool kills() const { return dies >= 0; }
};

Luck draw_luck(support::Random& random, int ranks);

}  // namespace lacuna::simulate
