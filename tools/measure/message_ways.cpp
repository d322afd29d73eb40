#include "tools/measure/message_ways.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "tools/measure/exchange_prices.hpp"
#include "tools/measure/message_memory.hpp"
#include "tools/measure/statistics.hpp"

namespace lacuna::measure {
namespace {

using guide::MessageWay;

constexpr int kDataTag = 1, kWireTag = 3;
constexpr std::int64_t kMostWire = 1 << 28;
constexpr std::int64_t kMostBytes = 1 << 30;   // of a cell
constexpr std::int64_t kMostEager = 16 << 10;  // that a channel takes
constexpr double kBatchNs = 60'000;            // of round trips that are timed together: far more than a clock's error
constexpr int kMostTrips = 64;
constexpr int kFewestMessageRounds = 5, kMostMessageRounds = 201;
constexpr double kLongTrip = 1e6;  // ns: one that fills the caches by itself
constexpr std::int64_t kExchangesFollow = -1;

// What rank 1 does next: round trips by a way, of which it looks at the last one's bytes, or nothing any more.
struct MessageTurn {
  MessageCell cell;
  std::int64_t way = 0;
  std::int64_t trips = 0;  // 0: it is over; kExchangesFollow: of exchanges, which have turns of their own
  std::int64_t seed = 0;   // of the bytes that are compared; 0: none are
};

// Gaps of the length of a run, or, listed, of a half to one and a half of it. The runs ascend.
Result<Layout> layout_of(const MessageCell& cell) {
  if (cell.run <= 0 || cell.bytes < cell.run || cell.bytes % cell.run != 0 || cell.bytes > kMostBytes)
    return base::fail(base::Code::invalid_argument,
                      fmt::format("{} bytes in runs of {}; they may be a multiple, at most {}", cell.bytes, cell.run, kMostBytes));
  const Layout run = LACUNA_TRY(Layout::bytes(cell.run));
  const std::int64_t count = cell.bytes / cell.run;
  if (cell.listed == 0) return Layout::hvector(count, 1, 2 * cell.run, run);
  std::vector<std::int64_t> places;
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the same on both ranks
  const std::int64_t unit = std::max<std::int64_t>(cell.run / 8, 1);
  for (std::int64_t i = 0, at = 0; i < count; ++i) {
    places.push_back(at);
    at += cell.run + unit * (4 + static_cast<std::int64_t>(random() % 9));
  }
  return Layout::hindexed_block(1, places, run);
}

Result<void> trip(protocol::Communicator& ranks, MessageMemory& memory) {
  const int peer = 1 - ranks.rank();
  if (ranks.rank() == 0) LACUNA_TRY(ranks.send(memory.send_base(), memory.layout(), peer, kDataTag));
  LACUNA_TRY(ranks.recv(memory.receive_base(), memory.layout(), peer, kDataTag));
  if (ranks.rank() == 1) LACUNA_TRY(ranks.send(memory.send_base(), memory.layout(), peer, kDataTag));
  return {};
}

Result<void> trips(protocol::Communicator& ranks, MessageMemory& memory, const MessageTurn& turn) {
  ranks.force(static_cast<MessageWay>(turn.way));
  if (turn.seed != 0) memory.begin(ranks, turn.seed);
  for (std::int64_t i = 0; i < turn.trips; ++i) LACUNA_TRY(trip(ranks, memory));
  ranks.force(std::nullopt);
  return {};
}

bool has(std::span<const std::int64_t> axis, std::int64_t value) { return std::ranges::find(axis, value) != axis.end(); }

// One cell at rank 0.
class Measuring {
 public:
  Measuring(protocol::Communicator& ranks, const MessageCell& cell, MessageMemory memory, std::span<const MessageWay> ways)
      : ranks_(ranks), cell_(cell), memory_(std::move(memory)) {
    for (const MessageWay way : ways) ways_.push_back(static_cast<std::size_t>(way));
    if (cell.given != 0) wire_ = layout::encode(memory_.layout());
    cell_.wire_bytes = static_cast<std::int64_t>(wire_.size());
  }

  // One way alone, without a look at the bytes. Microseconds of a message.
  Result<double> probe(MessageWay way) {
    constexpr int batches = 5, count = 8;
    std::vector<double> took;
    for (int i = 0; i < batches; ++i) took.push_back(LACUNA_TRY(batch(static_cast<std::size_t>(way), 2, count)));
    return median_of(took).value / 2e3;
  }

  Result<MessageTimes> run() {
    for (const std::size_t way : ways_) LACUNA_TRY(verify(way));
    for (const std::size_t way : ways_) {
      LACUNA_TRY(batch(way, 1));
      const double once = LACUNA_TRY(batch(way, 1));
      once_[way] = once;
      trips_[way] = std::clamp(static_cast<std::int64_t>(kBatchNs / std::max(once, 1.0)), std::int64_t{1}, std::int64_t{kMostTrips});
    }
    LACUNA_TRY(race());
    for (const std::size_t way : ways_) LACUNA_TRY(verify(way));
    MessageTimes times{};
    for (const std::size_t way : ways_) times.at(way) = median_of(samples_.at(way)).value / 2;
    return times;
  }

 private:
  Result<void> race() {
    std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): no way may always come after the same one
    std::vector<std::size_t> order = ways_;
    const std::int64_t start = base::now_ns();
    for (int round = 0; round < kMostMessageRounds; ++round) {
      std::ranges::shuffle(order, random);
      for (const std::size_t way : order) {
        const std::int64_t warm = once_.at(way) < kLongTrip ? 2 : 1;
        samples_.at(way).push_back(LACUNA_TRY(batch(way, warm, trips_.at(way))));
      }
      if (round + 1 >= kFewestMessageRounds && static_cast<double>(base::now_ns() - start) > cell_.milliseconds * 1e6) break;
    }
    return {};
  }

  Result<void> say(const MessageTurn& turn) {
    LACUNA_TRY(ranks_.send(&turn, layout_of_value<MessageTurn>(), 1, kWordTag));
    if (wire_.empty()) return {};
    LACUNA_TRY(ranks_.send(wire_.data(), LACUNA_TRY(Layout::bytes(std::ssize(wire_))), 1, kWireTag));
    wire_.clear();
    return {};
  }

  // Nanoseconds of a round trip, behind some that warm up.
  Result<double> batch(std::size_t way, std::int64_t warm, std::int64_t count = 1) {
    LACUNA_TRY(say({.cell = cell_, .way = static_cast<std::int64_t>(way), .trips = warm + count}));
    ranks_.force(static_cast<MessageWay>(way));
    for (std::int64_t i = 0; i < warm; ++i) LACUNA_TRY(trip(ranks_, memory_));
    const std::int64_t start = base::now_ns();
    for (std::int64_t i = 0; i < count; ++i) LACUNA_TRY(trip(ranks_, memory_));
    const auto took = static_cast<double>(base::now_ns() - start);
    ranks_.force(std::nullopt);
    return took / static_cast<double>(count);
  }

  Result<void> verify(std::size_t way) {
    const MessageTurn turn{.cell = cell_, .way = static_cast<std::int64_t>(way), .trips = 1, .seed = ++seed_};
    LACUNA_TRY(say(turn));
    LACUNA_TRY(trips(ranks_, memory_, turn));
    const std::string wrong = LACUNA_TRY(memory_.wrong(ranks_, turn.seed));
    if (wrong.empty()) return {};
    const std::string what =
        cell_.given != 0 ? fmt::format("{} bytes", memory_.layout().size())
                         : fmt::format("{} bytes in {} runs of {}", cell_.bytes, cell_.listed != 0 ? "listed" : "regular", cell_.run);
    return base::fail(base::Code::transfer,
                      fmt::format("{}, way {}: {}", what, guide::message_way_name(static_cast<MessageWay>(way)), wrong));
  }

  protocol::Communicator& ranks_;
  MessageCell cell_;
  MessageMemory memory_;
  std::vector<std::size_t> ways_;
  std::array<double, guide::kMessageWays> once_{};
  std::array<std::int64_t, guide::kMessageWays> trips_{};
  std::array<std::vector<double>, guide::kMessageWays> samples_;
  std::int64_t seed_ = 0;
  std::vector<std::byte> wire_;  // that rank 1 has to be told
};

// Those of which the sheets have this cell, and which the system has.
std::vector<MessageWay> ways_of(protocol::Communicator& ranks, const MessageCell& cell) {
  const nic::PathInfo* kernel = ranks.context().limits().path(nic::Path::kernel);
  std::vector<MessageWay> found;
  for (std::size_t i = 0; i < guide::kMessageWays; ++i) {
    const auto way = static_cast<MessageWay>(i);
    const guide::Axes axes = guide::message_axes(way);
    const bool can = way != MessageWay::direct || (kernel != nullptr && kernel->available);
    if (can && has(axes.bytes, cell.bytes) && has(axes.runs, cell.run)) found.push_back(way);
  }
  return found;
}

bool same(const MessageCell& a, const MessageCell& b) {
  return a.bytes == b.bytes && a.run == b.run && a.listed == b.listed && a.given == b.given;
}

// At rank 1: a cell's, or the layout that rank 0 says.
Result<MessageMemory> memory_of(protocol::Communicator& ranks, const MessageCell& cell) {
  if (cell.given == 0) return MessageMemory::of(LACUNA_TRY(layout_of(cell)));
  if (cell.wire_bytes <= 0 || cell.wire_bytes > kMostWire)
    return base::fail(base::Code::invalid_argument, fmt::format("a layout's wire form of {} bytes", cell.wire_bytes));
  std::vector<std::byte> wire(static_cast<std::size_t>(cell.wire_bytes));
  LACUNA_TRY(ranks.recv(wire.data(), LACUNA_TRY(Layout::bytes(cell.wire_bytes)), 0, kWireTag));
  return MessageMemory::of(LACUNA_TRY(layout::decode(wire)));
}

}  // namespace

protocol::Options message_options() { return {.eager_bytes = kMostEager}; }

Result<MessageTimes> measure_messages(protocol::Communicator& ranks, const MessageCell& cell) {
  return Measuring(ranks, cell, LACUNA_TRY(MessageMemory::of(LACUNA_TRY(layout_of(cell)))), ways_of(ranks, cell)).run();
}

Result<MessageTimes> measure_messages(protocol::Communicator& ranks, const Layout& layout, std::span<const MessageWay> ways,
                                      double milliseconds) {
  static std::int64_t number = 0;  // one communicator measures at a time
  if (layout.size() == 0 || layout.true_lower_bound() != 0 || layout.true_extent() > kMostBytes || LACUNA_TRY(layout.overlaps()))
    return base::fail(base::Code::invalid_argument,
                      fmt::format("a layout of {} bytes from {} on, over {}; it needs bytes, none twice, from 0 on, over {} at most",
                                  layout.size(), layout.true_lower_bound(), layout.true_extent(), kMostBytes));
  return Measuring(ranks, {.milliseconds = milliseconds, .given = ++number}, LACUNA_TRY(MessageMemory::of(layout)), ways).run();
}

Result<double> probe_messages(protocol::Communicator& ranks) {
  constexpr std::int64_t bytes = 16 << 10;
  const MessageCell cell{.bytes = bytes, .run = bytes};
  return Measuring(ranks, cell, LACUNA_TRY(MessageMemory::of(LACUNA_TRY(layout_of(cell)))), {}).probe(MessageWay::wide);
}

Result<guide::ExchangePrices> measure_exchanges(protocol::Communicator& ranks, double milliseconds) {
  const MessageTurn turn{.trips = kExchangesFollow};
  LACUNA_TRY(ranks.send(&turn, layout_of_value<MessageTurn>(), 1, kWordTag));
  return time_exchanges(ranks, milliseconds);
}

Result<void> answer_messages(protocol::Communicator& ranks) {
  std::optional<MessageMemory> memory;
  MessageCell of;
  for (;;) {
    MessageTurn turn;
    LACUNA_TRY(ranks.recv(&turn, layout_of_value<MessageTurn>(), 0, kWordTag));
    if (turn.trips == 0) return {};
    if (turn.trips == kExchangesFollow) {
      LACUNA_TRY(answer_exchanges(ranks));
      continue;
    }
    if (!memory || !same(of, turn.cell)) {
      memory.reset();
      memory.emplace(LACUNA_TRY(memory_of(ranks, turn.cell)));
      of = turn.cell;
    }
    LACUNA_TRY(trips(ranks, *memory, turn));
    if (turn.seed != 0) LACUNA_TRY(memory->wrong(ranks, turn.seed));
  }
}

Result<void> end_messages(protocol::Communicator& ranks) {
  const MessageTurn turn;
  return ranks.send(&turn, layout_of_value<MessageTurn>(), 1, kWordTag);
}

}  // namespace lacuna::measure
