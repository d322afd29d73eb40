// What the first rank of a communicator has all its ranks do, so that a way is tried by all of them together.
//
//   call          n                     n + 1                n + 2
//   first rank    order: leave          not timed ── timed ──┤ order: the other half of the pair
//   all ranks     note, then the MPI    the MPI              notes
//
// A trial is two calls that go one way, of which the second is timed (contests.hpp): the order is given in the first,
// in which each rank hears of each, and holds for that and the next one. Then all ranks ask one another again, so that
// the next order is heard. What is learned goes the same way: each rank takes it as learned of its own blocks.
#include <algorithm>
#include <cmath>

#include "lacuna/mpi/messages/exchange.hpp"
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi::detail {

TrialOrder order_of(Job& job, MpiUse use, const Type& type, Count count, const CommOf& of, bool ordered, Ways::OneWay& tried) try {
  Ways::Together trial = job.ways.try_together(use, type, count, &of, job.types);
  tried = std::move(trial.one);
  TrialOrder order;
  if (trial.tries && !ordered) {
    if (trial.way != MpiWay::offered) order.next = Ordered::leave;
    if (trial.way == MpiWay::offered && trial.chosen != MpiWay::offered) order.next = Ordered::offer;
  }
  if (trial.learned) {
    order.first = static_cast<std::uint8_t>(trial.learned->first);
    order.second = static_cast<std::uint8_t>(trial.learned->second);
    order.distance = static_cast<std::uint8_t>(trial.learned->distance);
    order.log_ratio = static_cast<float>(trial.learned->log_ratio);
  }
  return order;
} catch (const std::bad_alloc&) {
  return {};  // the others wait for this rank
}

// Only what another rank can have learned: its board may say anything.
void Exchange::obey(Asking& asking) try {
  if (order_.next == Ordered::leave || order_.next == Ordered::offer) {
    asking.next = order_.next;
    asking.unasked = order_.next == Ordered::leave ? 1 : 0;
    asking.heard = Asking::kNone;
    asking.hope = Asking::kHopes;  // the next trial is not to wait long
  }
  constexpr float kMost = 3;  // 20 times as long
  const bool sound = order_.first < guide::kMpiWays && order_.second < guide::kMpiWays && order_.distance < guide::kDistances &&
                     std::isfinite(order_.log_ratio);
  if (order_.log_ratio == 0 || !sound || pattern_.rank() == 0 || Mutex::multiple()) return;
  for (const std::vector<Block>* side : {&out, &in}) {
    for (const Block& block : *side) {
      if (!block.moves || !has_gaps(block)) continue;
      const auto lock = job_.enter();
      return job_.ways.learn({.version = {},
                              .distance = static_cast<guide::Distance>(order_.distance),
                              .use = use_,
                              .piece = block.type->piece(block.count),
                              .first = static_cast<MpiWay>(order_.first),
                              .second = static_cast<MpiWay>(order_.second),
                              .log_ratio = double{std::clamp(order_.log_ratio, -kMost, kMost)},
                              .samples = 1},
                             job_.types);
    }
  }
} catch (const std::bad_alloc&) {
  return;  // nothing is learned
}

}  // namespace lacuna::mpi::detail
