#include "tools/measure/clocks.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace lacuna::measure {
namespace {

constexpr int kTrips = 8;
constexpr std::int64_t kMostTime = std::int64_t{1} << 61;  // ns, 73 years: differences and sums of such times fit

struct There {
  std::int64_t from = 0;
  std::int64_t to = 0;
};

}  // namespace

Result<std::int64_t> plausible(std::int64_t time_ns) {
  if (time_ns >= -kMostTime && time_ns <= kMostTime) return time_ns;
  return base::fail(base::Code::malformed, fmt::format("the other rank tells a time of {} ns", time_ns));
}

Result<void> Clocks::look(nic::Context& context, Mailbox& mailbox) {
  Look best;
  std::int64_t shortest = 0;
  for (int i = 0; i < kTrips; ++i) {
    const std::int64_t left = context.now();
    LACUNA_TRY(mailbox.send(left));
    const There there = LACUNA_TRY(mailbox.receive<There>());
    const std::int64_t back = context.now();
    const std::int64_t from = LACUNA_TRY(plausible(there.from));
    const std::int64_t to = LACUNA_TRY(plausible(there.to));
    const std::int64_t on_its_way = std::max<std::int64_t>(0, (back - left) - std::max<std::int64_t>(0, to - from));
    if (i > 0 && on_its_way >= shortest) continue;
    shortest = on_its_way;
    best = {.at = left + (back - left) / 2, .ahead = (from - left) / 2 + (to - back) / 2};
  }
  before_ = after_.at == 0 ? best : after_;
  after_ = best;
  uncertain_us_ = std::max(uncertain_us_, static_cast<double>(shortest) / 2e3);
  return {};
}

Result<void> Clocks::answer(nic::Context& context, Mailbox& mailbox, std::int64_t skew) {
  for (int i = 0; i < kTrips; ++i) {
    LACUNA_TRY(mailbox.receive<std::int64_t>());
    const std::int64_t from = context.now() + skew;
    LACUNA_TRY(mailbox.send(There{.from = from, .to = context.now() + skew}));
  }
  return {};
}

std::int64_t Clocks::ours(std::int64_t theirs) const {
  const std::int64_t span = after_.at - before_.at;
  if (span <= 0) return theirs - after_.ahead;
  const double place = std::clamp(static_cast<double>(theirs - after_.ahead - before_.at) / static_cast<double>(span), 0.0, 1.0);
  const auto drift = static_cast<std::int64_t>(place * static_cast<double>(after_.ahead - before_.ahead));
  return theirs - (before_.ahead + drift);
}

}  // namespace lacuna::measure
