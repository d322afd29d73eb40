// Which schedule: by what each is expected to take. The prices are few and coarse; all ranks have the same ones, since
// all have to come to the same choice.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "lacuna/collective/schedules.hpp"

namespace lacuna::collective {
namespace {

using base::Code;

constexpr std::array<std::string_view, kSchedules> kNames{"automatic", "at_once", "pairwise", "forward"};

// Of messages, in nanoseconds.
struct Prices {
  double message;  // a small one among many that are under way: both ends' CPUs
  double large;    // one that is not eager: its announcement, windows or registrations
  double latency;  // of a small one that everybody waits for
  double look;     // each look at one peer while waiting: a communicator looks at all of them
  double block;    // a block that is gathered, or scattered
  double byte;
};

// Where CPUs share memory: docs/notes/message-speed.md has 0.15 to 0.45 us for 64 bytes one way, near and apart; 16 KiB
// take 1.1 to 2.2 us, 1 MiB 34 to 120.
constexpr Prices kShared{.message = 200, .large = 1000, .latency = 500, .look = 10, .block = 10, .byte = 0.05};
// On a network: NIC `model` with connectx5-rocev2, 4 to 64 ranks, exchanges of 4 bytes one after the other. at_once
// took 5.8, 7.9, 12.0, 19.8 and 32.5 us with 4, 8, 16, 32 and 64 ranks; forward 5.7 us a round with 16 ranks, and 7.3
// with 64, of which the looks at all peers (20 ns each, more than once in a round) are what grows. A message that is
// not eager took 100 us, most of it two registrations and their ends.
constexpr Prices kWire{.message = 450, .large = 100'000, .latency = 4700, .look = 30, .block = 13, .byte = 0.15};

// What is longer goes by a window or a registration of its own, which wait for the receiver
// (protocol::Options::eager_bytes).
constexpr std::int64_t kEager = 8 << 10;
// So many of those at once are no burden: a message of 96 KiB took nearly twice as long where 4 MiB of windows were in
// use instead of 1.5 (more pages than the TLB has; docs/notes/message-speed.md), and each has up to 512 KiB. On a
// network each holds memory that is registered, or staged.
constexpr std::int64_t kManyLarge = 8;

double message_ns(const Prices& price, double bytes) { return (bytes > kEager ? price.large : price.message) + bytes * price.byte; }

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
  const Prices& price = load.shared_memory ? kShared : kWire;
  const double ranks = load.ranks;
  const double wait = price.latency + ranks * price.look;
  const auto messages = static_cast<double>(load.most_messages);
  const double each = messages > 0 ? static_cast<double>(load.most_bytes) / messages : 0;
  const std::int64_t memory = forwarding_bytes(load.ranks, load.largest);
  const bool many_large = load.largest > kEager && load.most_messages > kManyLarge;

  Choice choice;
  const auto expected = [&](Schedule schedule) -> double& { return choice.expected_us[static_cast<std::size_t>(schedule)]; };
  const double direct = wait + messages * message_ns(price, each);
  expected(Schedule::at_once) = direct / 1000;
  // A window is waited for in order: some of a latency for each that it is full.
  expected(Schedule::pairwise) = (direct + messages / kManyLarge * price.latency) / 1000;
  const bool can_forward = load.everyone && memory <= kMostForwarded;
  if (can_forward) {
    const int rounds = rounds_of(load.ranks);
    const double half = ranks / 2 * static_cast<double>(load.largest);
    // Blocks are gathered at first, scattered at last, and twice each on the way (schedules.cpp).
    expected(Schedule::forward) = (rounds * (wait + message_ns(price, half)) + 4 * ranks * price.block) / 1000;
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
