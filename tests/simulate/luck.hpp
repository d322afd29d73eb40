// luck: what goes wrong in a simulated world, and when. Drawn from a seed, rank by rank, so that the same story always
// has the same luck. It hides nothing but the drawing.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/simulate/trace.hpp"
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
  int unready = 0;  ///< of a hundred thousand: a receive that is posted only after so long, at most
  std::int64_t unready_ns = 0;
  int jumps = 0;  ///< of a hundred thousand: a look at the clock that is further than it was, by up to
  std::int64_t jump_ns = 0;
  int no_keys = 0;    ///< a registration that is refused,
  int slow_keys = 0;  ///< or that takes so much longer, before it is there or is refused
  std::int64_t slow_keys_ns = 0;
  int no_posts = 0;            ///< of a hundred thousand: a post that is refused
  int poor = -1;               ///< the only rank that is refused anything; -1: all are
  bool spoils = false;         ///< each message has a wrong byte: to see that the judge notices
  int dies = -1;               ///< the rank that does,
  std::int64_t dies_at = 0;    ///< at this call of its NIC,
  bool dies_behind = false;    ///< or right behind the first post of a send after it
  int lies = 0;                ///< heads behind which nonsense follows,
  int liar = -1, victim = -1;  ///< from this rank to that one

  [[nodiscard]] bool kills() const { return dies >= 0; }
  [[nodiscard]] bool refuses() const { return no_keys > 0 || no_posts > 0; }
  /// Whether something is refused to this rank.
  [[nodiscard]] bool refuses(int rank) const { return poor < 0 || poor == rank; }
  [[nodiscard]] bool deceives() const { return liar >= 0; }
  /// Whether what these two say to one another is not to be relied on.
  [[nodiscard]] bool deceives(int one, int other) const {
    return deceives() && ((one == liar && other == victim) || (one == victim && other == liar));
  }
};

Luck draw_luck(support::Random& random, int ranks, bool hub);

/// What the processes of a world know of one another without a message.
struct Fate {
  Fate(Trace& of, std::int64_t by, int processes)
      : trace(of),
        until(by),
        ranks(processes),
        troubled(static_cast<std::size_t>(processes)),
        exchanging(static_cast<std::size_t>(processes)) {}
  Trace& trace;
  std::int64_t until;  ///< ns: all has to be over by then
  int ranks;
  int begun = 0;                ///< processes: nothing is refused, and none dies, before all have
  int over = 0;                 ///< and that have played all rounds
  std::vector<bool> troubled;   ///< by rank: something was refused to it, or it gave an exchange up
  std::vector<int> exchanging;  ///< by rank: exchanges that it has begun and not ended
  bool deceived = false;        ///< nonsense was sent

  [[nodiscard]] bool all_begun() const { return begun == ranks; }
};

}  // namespace lacuna::simulate
