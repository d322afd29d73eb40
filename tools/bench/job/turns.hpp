// The ranks of a case take turns: rank 0 says with which messenger and how often, takes the time, and looks at what
// arrived.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tools/bench/job/exchange.hpp"

namespace lacuna::bench {

/// Both ranks call it with the same arguments. `add_contenders` adds the ways to the case's memory. Throws Broken,
/// since a rank that has no memory for its part, or whose MPI refuses what the other's takes, would leave the other
/// waiting.
std::unique_ptr<Exchange> open_exchange(const MessageCase& what, const Pair& pair, const std::function<void(Exchange&)>& add_contenders);

/// Rank 1: answers until rank 0's Asker ends.
void answer_turns(Exchange& exchange, const Pair& pair);

/// Rank 0.
class Asker {
 public:
  Asker(Exchange& exchange, const Pair& pair);

  /// Finds out how many round trips make a batch of each that the clock can tell. To be called once all were verified,
  /// since all move data here: a gap that one of them damages would be found with another.
  void choose_trips();
  /// One round trip. Throws std::runtime_error where wrong bytes arrived.
  void verify(std::size_t i);
  /// Nanoseconds of one message: half a round trip, the mean of a batch, after some that warm up.
  double batch(std::size_t i);
  /// Rank 1 returns from answer_turns(). After this anything may be asked again.
  void end() const;

 private:
  [[nodiscard]] const Messenger& messenger(std::size_t i) const { return exchange_.messengers()[i]; }

  Exchange& exchange_;
  const Pair& pair_;
  std::vector<int> trips_;    // of a batch of each
  std::vector<double> once_;  // ns of a round trip
};

/// What rank 0 does of a conversation in which rank 1 answers turns: `ask`, and whatever comes of it, the end. After
/// Broken there is none.
template <class Ask>
auto asking(Asker& asker, const Ask& ask) {
  try {
    auto result = ask();
    asker.end();
    return result;
  } catch (const Broken&) {
    throw;
  } catch (const std::exception&) {
    asker.end();
    throw;
  }
}

}  // namespace lacuna::bench
