// Which schedule: by what each is expected to take. The prices are few and coarse. All ranks have the same ones, those
// of their agreement, since all have to come to the same choice.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lacuna/collective/schedules.hpp"
#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::collective {
namespace {

using base::Code;

constexpr std::array<std::string_view, kSchedules> kNames{"automatic", "at_once", "pairwise", "forward"};

using guide::ExchangePrice;
using guide::usual::kManyLarge;
constexpr std::int64_t kEager = guide::usual::kEagerBytes;

// What is agreed, and what is measured nowhere.
class Prices {
 public:
  explicit Prices(const Load& load)
      : load_(load),
        of_(load.prices          ? *load.prices
            : load.shared_memory ? guide::usual::kShared
                                 : guide::usual::kWire),
        look_(load.shared_memory ? guide::usual::kSharedLook : guide::usual::kWireLook),
        // The NIC's part is no more than all of it.
        device_(load.shared_memory ? 0 : std::min(guide::usual::kWireDevice, of_[ExchangePrice::message])) {}

  [[nodiscard]] double latency() const { return of_[ExchangePrice::latency]; }
  [[nodiscard]] double block() const { return of_[ExchangePrice::block]; }
  // A rank's CPU and the NIC that it shares work side by side, and the slower one counts, but for a message that is not
  // eager and goes alone: its bytes go after its announcement.
  [[nodiscard]] double direct() const {
    const auto messages = static_cast<double>(load_.most_messages);
    const double each = messages > 0 ? static_cast<double>(load_.most_bytes) / messages : 0;
    return wait() + std::max(messages * (start(each) + moved(each)) + copies(), messages * device(each));
  }
  [[nodiscard]] double round(double bytes) const {
    if (bytes > kEager) return wait() + start(bytes) + std::max(moved(bytes), device(bytes));
    return wait() + std::max(start(bytes) + moved(bytes), device(bytes));
  }
  // Runs within blocks, each gathered or scattered once, whatever the schedule. A message's first one costs no more.
  [[nodiscard]] double copies() const {
    return std::max(static_cast<double>(load_.most_runs) - 2 * static_cast<double>(load_.most_messages), 0.0) * block();
  }
  [[nodiscard]] std::string describe() const {
    return (!load_.prices      ? "usual prices, of other machines (`lacuna guide` measures them here): "
            : load_.all_priced ? "the highest of the ranks' profiles: "
                               : "the highest of those ranks' profiles that have any: ") +
           of_.describe();
  }

 private:
  [[nodiscard]] double wait() const { return latency() + (load_.by_hub ? 1 : load_.ranks) * look_; }
  [[nodiscard]] double start(double bytes) const { return of_[bytes > kEager ? ExchangePrice::large : ExchangePrice::message]; }
  [[nodiscard]] double moved(double bytes) const { return bytes * of_[ExchangePrice::byte]; }
  [[nodiscard]] double device(double bytes) const { return device_ == 0 ? 0 : load_.sharing * (device_ + moved(bytes)); }

  const Load& load_;
  guide::ExchangePrices of_;
  double look_, device_;
};

int rounds_of(int ranks) { return static_cast<int>(std::bit_width(static_cast<unsigned>(ranks - 1))); }

std::string us(double value) { return fmt::format("{:.3g} us", value); }

}  // namespace

std::string_view schedule_name(Schedule schedule) {
  const auto index = static_cast<std::size_t>(schedule);
  return index < kNames.size() ? kNames[index] : "unknown";
}

std::optional<Schedule> schedule_from_name(std::string_view name) {
  const auto* found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Schedule>(found - kNames.begin());
}

namespace {

// By schedule, in microseconds; 0: it cannot be.
std::array<double, kSchedules> expected(const Load& load, const Prices& prices, bool can_forward) {
  std::array<double, kSchedules> us{};
  const auto messages = static_cast<double>(load.most_messages);
  const double direct = prices.direct();
  us[static_cast<std::size_t>(Schedule::at_once)] = direct / 1000;
  // A window is waited for in order: some of a latency for each that it is full.
  us[static_cast<std::size_t>(Schedule::pairwise)] = (direct + messages / kManyLarge * prices.latency()) / 1000;
  if (!can_forward) return us;
  const double half = load.ranks / 2.0 * static_cast<double>(load.largest);
  // Blocks are gathered at first, scattered at last, and twice each on the way (schedules.cpp).
  const double blocks = 4.0 * load.ranks * prices.block();
  us[static_cast<std::size_t>(Schedule::forward)] = (rounds_of(load.ranks) * prices.round(half) + blocks + prices.copies()) / 1000;
  return us;
}

// Why it is the best, in words.
std::string choose_best(const Load& load, bool can_forward, Choice& choice) {
  const bool many_large = load.largest > kEager && load.most_messages > kManyLarge;
  const Schedule direct = many_large ? Schedule::pairwise : Schedule::at_once;
  const double direct_us = choice.expected_us[static_cast<std::size_t>(direct)];
  const double forward_us = choice.expected_us[static_cast<std::size_t>(Schedule::forward)];
  const std::string what = fmt::format("{} messages of up to {} bytes", load.most_messages, load.largest);
  const bool forwards = can_forward && load.largest <= kEager && load.ranks > 2 && forward_us < direct_us;
  choice.best = forwards ? Schedule::forward : direct;
  if (forwards)
    return fmt::format("{} cost more than {} longer ones that are waited for, {} against {}", what, rounds_of(load.ranks), us(direct_us),
                       us(forward_us));
  if (many_large)
    return fmt::format(
        "{}: each that is not sent at once (over {} bytes) holds a window or registered memory, and more than {} are no gain", what, kEager,
        kManyLarge);
  return load.largest <= kEager ? fmt::format("{}, which need no answer", what)
                                : fmt::format("{}, no more than {} of them", what, kManyLarge);
}

}  // namespace

Result<Choice> choose(const Load& load, Schedule wanted) {
  const Prices prices(load);
  const std::int64_t memory = forwarding_bytes(load.ranks, load.largest);
  const bool can_forward = load.everyone && memory <= kMostForwarded;
  Choice choice{.forced = wanted != Schedule::automatic, .expected_us = expected(load, prices, can_forward), .prices = prices.describe()};
  choice.why = choose_best(load, can_forward, choice);
  choice.schedule = choice.forced ? wanted : choice.best;
  if (!choice.forced) return choice;
  choice.why = "it was asked for";
  if (wanted != Schedule::forward || can_forward) return choice;
  if (!load.everyone)
    return base::fail(Code::invalid_argument,
                      "neighbours cannot forward: not every rank has a block for every other; at_once and pairwise can");
  return base::fail(Code::limit, fmt::format("forwarding blocks of {} bytes among {} ranks takes {} bytes at each; at most {} are taken",
                                             load.largest, load.ranks, memory, kMostForwarded));
}

}  // namespace lacuna::collective
