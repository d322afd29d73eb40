// Which schedule: by what each is expected to take. The prices are few and coarse; all ranks have the same ones, since
// all have to come to the same choice.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lacuna/collective/schedules.hpp"
#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::collective {
namespace {

using base::Code;

constexpr std::array<std::string_view, kSchedules> kNames{"automatic", "at_once", "pairwise", "forward"};

using guide::usual::ExchangePrices;
using guide::usual::kManyLarge;
constexpr std::int64_t kEager = guide::usual::kEagerBytes;

// A rank's CPU and the NIC that it shares work side by side; the slower one counts.
double message_ns(const ExchangePrices& price, double bytes, int sharing) {
  const double own = (bytes > kEager ? price.large : price.message) + bytes * price.byte;
  return price.device == 0 ? own : std::max(own, sharing * (price.device + bytes * price.byte));
}

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

Result<Choice> choose(const Load& load, Schedule wanted) {
  const ExchangePrices& price = load.shared_memory ? guide::usual::kShared : guide::usual::kWire;
  const double ranks = load.ranks;
  const double wait = price.latency + (load.by_hub ? 1 : ranks) * price.look;
  const auto messages = static_cast<double>(load.most_messages);
  const double each = messages > 0 ? static_cast<double>(load.most_bytes) / messages : 0;
  const std::int64_t memory = forwarding_bytes(load.ranks, load.largest);
  const bool many_large = load.largest > kEager && load.most_messages > kManyLarge;

  Choice choice;
  const auto expected = [&](Schedule schedule) -> double& { return choice.expected_us[static_cast<std::size_t>(schedule)]; };
  const double direct = wait + messages * message_ns(price, each, load.sharing);
  expected(Schedule::at_once) = direct / 1000;
  // A window is waited for in order: some of a latency for each that it is full.
  expected(Schedule::pairwise) = (direct + messages / kManyLarge * price.latency) / 1000;
  const bool can_forward = load.everyone && memory <= kMostForwarded;
  if (can_forward) {
    const int rounds = rounds_of(load.ranks);
    const double half = ranks / 2 * static_cast<double>(load.largest);
    // Blocks are gathered at first, scattered at last, and twice each on the way (schedules.cpp).
    expected(Schedule::forward) = (rounds * (wait + message_ns(price, half, load.sharing)) + 4 * ranks * price.block) / 1000;
  }

  choice.forced = wanted != Schedule::automatic;
  choice.schedule = wanted;
  if (choice.forced) {
    choice.why = "it was asked for";
    if (wanted != Schedule::forward || can_forward) return choice;
    if (!load.everyone)
      return base::fail(Code::invalid_argument,
                        "neighbours cannot forward: not every rank has a block for every other; at_once and pairwise can");
    return base::fail(Code::limit, fmt::format("forwarding blocks of {} bytes among {} ranks takes {} bytes at each; at most {} are taken",
                                               load.largest, load.ranks, memory, kMostForwarded));
  }
  const std::string what = fmt::format("{} messages of up to {} bytes", load.most_messages, load.largest);
  const double best_direct = expected(many_large ? Schedule::pairwise : Schedule::at_once);
  if (can_forward && load.largest <= kEager && load.ranks > 2 && expected(Schedule::forward) < best_direct) {
    choice.schedule = Schedule::forward;
    choice.why = fmt::format("{} cost more than {} longer ones that are waited for, {} against {}", what, rounds_of(load.ranks),
                             us(best_direct), us(expected(Schedule::forward)));
  } else if (many_large) {
    choice.schedule = Schedule::pairwise;
    choice.why =
        fmt::format("{}: each that is not sent at once (over {} bytes) holds a window or registered memory, and more than {} are no gain",
                    what, kEager, kManyLarge);
  } else {
    choice.schedule = Schedule::at_once;
    choice.why = load.largest <= kEager ? fmt::format("{}, which need nobody's answer", what)
                                        : fmt::format("{}, no more than {} of them", what, kManyLarge);
  }
  return choice;
}

}  // namespace lacuna::collective
