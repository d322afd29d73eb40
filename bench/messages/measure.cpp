#include "bench/messages/measure.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "bench/messages/contenders.hpp"
#include "lacuna/guide/measure.hpp"

namespace lacuna::bench {
namespace {

using nlohmann::json;

constexpr double kBatch = 150'000;     // ns that a batch lasts at least: the clock and the words before it are nothing then
constexpr double kUnwarmed = 2e6;      // ns: a round trip that takes longer finds the caches as it leaves them, whoever came before
constexpr int kMostTrips = 1000;       // of a batch
constexpr int kWarmingShare = 16;      // of a batch's trips, one more for each so many warms up
constexpr std::int32_t kOver = -1;     // words of rank 0: the case is over;
constexpr std::int32_t kVerified = 0;  // a count: one round trip, looked at by both

// --- rank 1 answers ---------------------------------------------------------------------------------------------------

void answer(const Messenger& m, int trips) {
  for (int i = 0; i < trips; ++i) {
    m.recv();
    m.send();
  }
}

void serve(Exchange& exchange, const Pair& pair) {
  for (Pair::Words words = pair.hear(); words.what != kOver; words = pair.hear()) {
    const Messenger& m = exchange.messengers().at(static_cast<std::size_t>(words.what));
    answer(m, std::max(words.count, 1));
    if (words.count == kVerified) pair.tell({words.what, exchange.received() ? 1 : 0});
  }
}

// --- rank 0 asks and takes the time -----------------------------------------------------------------------------------

void ask(const Messenger& m, int trips) {
  for (int i = 0; i < trips; ++i) {
    m.send();
    m.recv();
  }
}

class Asker {
 public:
  Asker(Exchange& exchange, const Pair& pair) : exchange_(exchange), pair_(pair), trips_(exchange.messengers().size(), 1) {}

  void verify(std::size_t i) {
    pair_.tell({static_cast<std::int32_t>(i), kVerified});
    ask(messenger(i), 1);
    const bool here = exchange_.received();
    const bool there = pair_.hear().count == 1;
    if (!here || !there) throw std::runtime_error(messenger(i).name + " moved wrong bytes" + (here ? " to rank 1" : " to rank 0"));
  }

  // Nanoseconds of one message.
  double batch(std::size_t i) {
    const int warming = once_[i] > kUnwarmed ? 0 : 1 + trips_[i] / kWarmingShare;
    pair_.tell({static_cast<std::int32_t>(i), warming + trips_[i]});
    ask(messenger(i), warming);
    const std::int64_t start = base::now_ns();
    ask(messenger(i), trips_[i]);
    return static_cast<double>(base::now_ns() - start) / (2.0 * trips_[i]);
  }

  void choose_trips() {
    once_.assign(trips_.size(), 0.0);
    for (std::size_t i = 0; i < trips_.size(); ++i) {
      for (int again = 0; again < 2; ++again) {  // the second time with a batch that the clock can tell
        const double once = std::max(2 * batch(i), 50.0);
        trips_[i] = static_cast<int>(std::clamp(kBatch / once, 1.0, static_cast<double>(kMostTrips)));
        if (again == 1) once_[i] = once;
      }
    }
  }

  void end() const { pair_.tell({kOver, 0}); }

 private:
  [[nodiscard]] const Messenger& messenger(std::size_t i) const { return exchange_.messengers()[i]; }

  Exchange& exchange_;
  const Pair& pair_;
  std::vector<int> trips_;    // of a batch of each
  std::vector<double> once_;  // ns of a round trip
};

using Samples = std::vector<std::vector<double>>;  // of each contender, by round

Samples race(Asker& asker, std::size_t contenders, const Effort& effort) {
  Samples samples(contenders);
  std::vector<std::size_t> order(contenders);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): nobody may always come after the same one
  const std::int64_t start = base::now_ns();
  for (int round = 0; round < effort.most; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) samples[i].push_back(asker.batch(i));
    if (round + 1 >= effort.fewest && static_cast<double>(base::now_ns() - start) > effort.milliseconds * 1e6) break;
  }
  return samples;
}

json against(const Messenger& messenger, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.size(); ++round) ratios.push_back(ours[round] / theirs[round]);
  const guide::Median time = guide::median_of(theirs);
  const guide::Median ratio = guide::median_of(ratios);
  return {{"name", messenger.name}, {"us", time.value / 1e3}, {"low", time.low / 1e3},   {"high", time.high / 1e3},
          {"ratio", ratio.value},   {"ratio_low", ratio.low}, {"ratio_high", ratio.high}};
}

json lead(Exchange& exchange, const Pair& pair, const Effort& effort) {
  Asker asker(exchange, pair);
  const std::size_t contenders = exchange.messengers().size();
  Samples samples;
  try {
    for (std::size_t i = 0; i < contenders; ++i) asker.verify(i);
    asker.choose_trips();
    samples = race(asker, contenders, effort);
    for (std::size_t i = 0; i < contenders; ++i) asker.verify(i);
  } catch (const Broken&) {
    throw;
  } catch (const std::exception&) {
    asker.end();
    throw;
  }
  asker.end();
  json rows = json::array();
  for (std::size_t i = 0; i < contenders; ++i) rows.push_back(against(exchange.messengers()[i], samples[0], samples[i]));
  return {{"rounds", samples[0].size()}, {"contenders", rows}, {"refused", exchange.refused()}};
}

// The other rank would wait for one that has no memory for its part.
std::unique_ptr<Exchange> made(const MessageCase& what, const Pair& pair) {
  try {
    return std::make_unique<Exchange>(what.make(what), pair);
  } catch (const std::exception& error) {
    throw Broken(what.name + ": " + error.what());
  }
}

// One that only one of the ranks could make would leave the other waiting.
void agree(const Exchange& exchange, const Pair& pair) {
  const Pair::Words mine{static_cast<std::int32_t>(exchange.messengers().size()), static_cast<std::int32_t>(exchange.refused().size())};
  pair.tell(mine);
  const Pair::Words theirs = pair.hear();
  if (theirs.what != mine.what || theirs.count != mine.count) throw Broken("the MPI refuses on one rank what it takes on the other");
}

}  // namespace

json measure(const MessageCase& what, const Pair& pair, const Effort& effort) {
  const std::unique_ptr<Exchange> owner = made(what, pair);
  Exchange& exchange = *owner;
  agree(exchange, pair);
  if (pair.rank() != 0) {
    serve(exchange, pair);
    return json::object();
  }
  json row = lead(exchange, pair, effort);
  row.update(
      {{"suite", what.suite}, {"case", what.name}, {"family", what.family}, {"payload_bytes", what.payload}, {"blocks", what.blocks}});
  return row;
}

}  // namespace lacuna::bench
