#include "tools/measure/exchange_prices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <vector>

#include "lacuna/collective/collective.hpp"
#include "tools/measure/message_memory.hpp"
#include "tools/measure/statistics.hpp"

namespace lacuna::measure {
namespace {

using guide::ExchangePrice;
using guide::ExchangePrices;

// Each rank sends the other so many messages, and receives as many, by schedule at_once.
struct Sample {
  std::int64_t bytes, run, count;
};
// Enough messages that one latency is little beside them, and few enough for any channel's queue; long enough that
// their bytes count, and short enough to be eager wherever a program says nothing.
constexpr std::int64_t kMany = 16, kLongBytes = 4 << 10, kBlockBytes = 64, kLargeBytes = 32 << 10;
enum SampleName : std::uint8_t { kOne, kSmall, kContiguous, kBlocks, kOneLarge, kSamples };
constexpr std::array<Sample, kSamples> kEverySample{
    {{8, 8, 1}, {8, 8, kMany}, {kLongBytes, kLongBytes, kMany}, {kLongBytes, kBlockBytes, kMany}, {kLargeBytes, kLargeBytes, 1}}};

constexpr int kFewestExchangeRounds = 5, kMostExchangeRounds = 201;
constexpr std::int64_t kExchangeTimes = 8;  // exchanges that are timed together, behind one that warms up
constexpr std::int64_t kOver = -1;          // a turn

// What rank 1 does next.
struct ExchangeTurn {
  std::int64_t sample = 0;  // its place, or kOver
  std::int64_t times = 0;
  std::int64_t number = 0;  // of a turn whose bytes are compared; 0: they are not
};

// A sample at one rank, started again and again.
class Sampled {
 public:
  static Result<Sampled> of(protocol::Communicator& ranks, const Sample& sample) {
    const Layout run = LACUNA_TRY(Layout::bytes(sample.run));
    const Layout message = LACUNA_TRY(Layout::hvector(sample.bytes / sample.run, 1, 2 * sample.run, run));
    Sampled made(LACUNA_TRY(MessageMemory::of(message, sample.count)));
    std::vector<collective::Send> sends;
    std::vector<collective::Receive> receives;
    for (std::int64_t i = 0; i < sample.count; ++i) {
      sends.push_back({1 - ranks.rank(), {made.memory_.send_base(i), message}});
      receives.push_back({1 - ranks.rank(), {made.memory_.receive_base(i), message}});
    }
    made.exchange_ = collective::neighbor_exchange_init(ranks, sends, receives, {.schedule = collective::Schedule::at_once});
    return made;
  }
  Result<void> run(std::int64_t times) {
    for (std::int64_t i = 0; i < times; ++i) {
      LACUNA_TRY(exchange_->start());
      LACUNA_TRY(exchange_->wait());
    }
    return {};
  }
  // At rank 0: what is wrong.
  Result<std::string> verify(protocol::Communicator& ranks, std::int64_t turn) {
    memory_.begin(ranks, turn);
    LACUNA_TRY(run(1));
    return memory_.wrong(ranks, turn);
  }

 private:
  explicit Sampled(MessageMemory memory) : memory_(std::move(memory)) {}
  MessageMemory memory_;
  std::unique_ptr<collective::Exchange> exchange_;
};

Result<std::vector<Sampled>> every_sample(protocol::Communicator& ranks) {
  std::vector<Sampled> made;
  for (const Sample& sample : kEverySample) made.push_back(LACUNA_TRY(Sampled::of(ranks, sample)));
  return made;
}

Result<void> tell(protocol::Communicator& ranks, const ExchangeTurn& turn) {
  return ranks.send(&turn, layout_of_value<ExchangeTurn>(), 1, kWordTag);
}

// At rank 0.
class ExchangeRace {
 public:
  ExchangeRace(protocol::Communicator& ranks, std::vector<Sampled> samples) : ranks_(ranks), samples_(std::move(samples)) {}

  Result<void> verify() {
    for (std::size_t i = 0; i < kSamples; ++i) {
      LACUNA_TRY(tell(ranks_, {.sample = static_cast<std::int64_t>(i), .number = ++turns_}));
      const std::string wrong = LACUNA_TRY(samples_[i].verify(ranks_, turns_));
      if (wrong.empty()) continue;
      const Sample& sample = kEverySample.at(i);
      return base::fail(base::Code::transfer, fmt::format("an exchange of {} messages of {} bytes in runs of {}: {}", sample.count,
                                                          sample.bytes, sample.run, wrong));
    }
    return {};
  }

  Result<void> run(double milliseconds) {
    std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): none may always come after the same one
    std::array<std::size_t, kSamples> order{};
    for (std::size_t i = 0; i < kSamples; ++i) order.at(i) = i;
    const std::int64_t start = ranks_.context().now();
    for (int round = 0; round < kMostExchangeRounds; ++round) {
      if (round >= kFewestExchangeRounds && static_cast<double>(ranks_.context().now() - start) > milliseconds * 1e6) break;
      std::ranges::shuffle(order, random);
      for (const std::size_t i : order) times_.at(i).push_back(LACUNA_TRY(batch(i)));
    }
    return {};
  }

  [[nodiscard]] ExchangePrices prices() const {
    const auto ns = [&](SampleName name) { return median_of(times_.at(name)).value; };
    const double message = (ns(kSmall) - ns(kOne)) / (kMany - 1);
    const double latency = ns(kOne) - message;
    const double byte = (ns(kContiguous) - ns(kSmall)) / static_cast<double>(kMany * (kLongBytes - kEverySample[kSmall].bytes));
    ExchangePrices made;
    const auto put = [&](ExchangePrice price, double value) {
      made.ns.at(static_cast<std::size_t>(price)) = std::clamp(static_cast<float>(value), ExchangePrices::kLeast, ExchangePrices::kMost);
    };
    put(ExchangePrice::latency, latency);
    put(ExchangePrice::message, message);
    put(ExchangePrice::byte, byte);
    const double blocks = 2.0 * kMany * kLongBytes / kBlockBytes;  // gathered, and scattered
    put(ExchangePrice::block, (ns(kBlocks) - ns(kContiguous)) / blocks);
    // A stream may move its bytes faster than small messages do; it costs what a small one costs all the same.
    put(ExchangePrice::large, std::max(message, ns(kOneLarge) - latency - kLargeBytes * byte));
    return made;
  }

 private:
  // Nanoseconds of one exchange.
  Result<double> batch(std::size_t i) {
    LACUNA_TRY(tell(ranks_, {.sample = static_cast<std::int64_t>(i), .times = 1 + kExchangeTimes}));
    LACUNA_TRY(samples_[i].run(1));
    const std::int64_t start = ranks_.context().now();
    LACUNA_TRY(samples_[i].run(kExchangeTimes));
    return static_cast<double>(ranks_.context().now() - start) / static_cast<double>(kExchangeTimes);
  }

  protocol::Communicator& ranks_;
  std::vector<Sampled> samples_;
  std::array<std::vector<double>, kSamples> times_;
  std::int64_t turns_ = 0;
};

}  // namespace

Result<ExchangePrices> time_exchanges(protocol::Communicator& ranks, double milliseconds) {
  ExchangeRace race(ranks, LACUNA_TRY(every_sample(ranks)));
  LACUNA_TRY(race.verify());
  LACUNA_TRY(race.run(milliseconds));
  LACUNA_TRY(race.verify());
  LACUNA_TRY(tell(ranks, {.sample = kOver}));
  return race.prices();
}

Result<void> answer_exchanges(protocol::Communicator& ranks) {
  std::vector<Sampled> samples = LACUNA_TRY(every_sample(ranks));
  for (;;) {
    ExchangeTurn turn;
    LACUNA_TRY(ranks.recv(&turn, layout_of_value<ExchangeTurn>(), 0, kWordTag));
    if (turn.sample == kOver) return {};
    Sampled& sampled = samples.at(static_cast<std::size_t>(turn.sample));
    LACUNA_TRY(sampled.run(turn.times));
    if (turn.number != 0) LACUNA_TRY(sampled.verify(ranks, turn.number));
  }
}

}  // namespace lacuna::measure
