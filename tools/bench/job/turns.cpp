#include "tools/bench/job/turns.hpp"

#include <algorithm>

#include "tools/bench/job/planted.hpp"

namespace lacuna::bench {
namespace {

// ns that a batch lasts at least: the clock and the words before it are nothing then
constexpr double kBatch = 150'000;
// ns: a round trip that takes longer finds the caches as it leaves them, whichever came before
constexpr double kUnwarmed = 2e6;
constexpr int kMostTrips = 1000;       // of a batch
constexpr int kWarmingShare = 16;      // of a batch's trips, one more for each so many warms up
constexpr std::int32_t kOver = -1;     // words of rank 0: it has nothing more to ask;
constexpr std::int32_t kVerified = 0;  // a count: one round trip, looked at by both

void ask(const Messenger& m, int trips) {
  for (int i = 0; i < trips; ++i) {
    m.send();
    m.recv();
  }
}

void answer(const Messenger& m, int trips) {
  for (int i = 0; i < trips; ++i) {
    m.recv();
    m.send();
  }
}

void agree(const Exchange& exchange, const Pair& pair) {
  const Pair::Words mine{static_cast<std::int32_t>(exchange.messengers().size()), static_cast<std::int32_t>(exchange.refused().size())};
  pair.tell(mine);
  const Pair::Words theirs = pair.hear();
  if (theirs.what != mine.what || theirs.count != mine.count) throw Broken("the MPI refuses on one rank what it takes on the other");
}

}  // namespace

std::unique_ptr<Exchange> open_exchange(const MessageCase& what, const Pair& pair, const std::function<void(Exchange&)>& add_contenders) {
  std::unique_ptr<Exchange> exchange;
  try {
    exchange = std::make_unique<Exchange>(what.make(what), pair);
    add_contenders(*exchange);
  } catch (const std::exception& error) {
    throw Broken(what.name + ": " + error.what());
  }
  if (const char* fault = planted_fault()) exchange->plant(fault);
  agree(*exchange, pair);
  return exchange;
}

// --- rank 1 ----------------------------------------------------------------------------------------------------------

void answer_turns(Exchange& exchange, const Pair& pair) {
  for (Pair::Words words = pair.hear(); words.what != kOver; words = pair.hear()) {
    const Messenger& m = exchange.messengers().at(static_cast<std::size_t>(words.what));
    if (words.count == kVerified) exchange.clear(m);
    answer(m, std::max(words.count, 1));
    if (words.count == kVerified) pair.tell({words.what, exchange.received(m) ? 1 : 0});
  }
}

// --- rank 0 ----------------------------------------------------------------------------------------------------------

Asker::Asker(Exchange& exchange, const Pair& pair)
    : exchange_(exchange), pair_(pair), trips_(exchange.messengers().size(), 1), once_(trips_.size(), 0.0) {}

void Asker::verify(std::size_t i) {
  exchange_.clear(messenger(i));
  pair_.tell({static_cast<std::int32_t>(i), kVerified});
  ask(messenger(i), 1);
  const bool here = exchange_.received(messenger(i));
  const bool there = pair_.hear().count == 1;
  if (!here || !there) throw std::runtime_error(messenger(i).name + " moved wrong bytes" + (here ? " to rank 1" : " to rank 0"));
}

double Asker::batch(std::size_t i) {
  const int warming = once_[i] > kUnwarmed ? 0 : 1 + trips_[i] / kWarmingShare;
  pair_.tell({static_cast<std::int32_t>(i), warming + trips_[i]});
  ask(messenger(i), warming);
  const std::int64_t start = base::now_ns();
  ask(messenger(i), trips_[i]);
  return static_cast<double>(base::now_ns() - start) / (2.0 * trips_[i]);
}

void Asker::choose_trips() {
  trips_.assign(trips_.size(), 1);
  once_.assign(once_.size(), 0.0);
  for (std::size_t i = 0; i < trips_.size(); ++i) {
    for (int again = 0; again < 2; ++again) {  // the second time with a batch that the clock can tell
      const double once = std::max(2 * batch(i), 50.0);
      trips_[i] = static_cast<int>(std::clamp(kBatch / once, 1.0, static_cast<double>(kMostTrips)));
      if (again == 1) once_[i] = once;
    }
  }
}

void Asker::end() const { pair_.tell({kOver, 0}); }

}  // namespace lacuna::bench
