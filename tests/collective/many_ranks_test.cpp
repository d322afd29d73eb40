// Many simulated ranks: every block arrives, by every schedule.
#include <fmt/format.h>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "ManyRanksInVirtualTime.*");
LACUNA_TIER(test, "ManyRanksInVirtualTime.*");
LACUNA_TIER(gate, "ManyRanksInVirtualTime.Are256");
LACUNA_TIER(gate, "ManyRanksInVirtualTime.ExchangeEverything");

// Blocks of columns, with gaps, that say where they come from and where they go.
std::string exchanges(Communicator& ranks, std::int64_t elements, Schedule schedule) {
  const auto size = static_cast<std::size_t>(ranks.size());
  const auto n = static_cast<std::size_t>(elements);
  const Layout column = LACUNA_END_TRY(Layout::vector(elements, 1, 2, LACUNA_END_TRY(Layout::bytes(4))));
  std::vector<std::uint32_t> out(2 * n * size, 7), in(2 * n * size, 9);
  std::vector<collective::Source> sends;
  std::vector<collective::Target> receives;
  const auto word = [](std::size_t from, std::size_t to, std::size_t i) {
    return static_cast<std::uint32_t>(from << 20 | to << 8 | i % 256);
  };
  for (std::size_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < n; ++i) out[2 * (peer * n + i)] = word(static_cast<std::size_t>(ranks.rank()), peer, i);
    sends.push_back({&out[2 * peer * n], column});
    receives.push_back({&in[2 * peer * n], column});
  }
  const auto exchange = collective::alltoallw_init(ranks, sends, receives, {.schedule = schedule});
  LACUNA_END_TRY(exchange->start());
  LACUNA_END_TRY(exchange->wait());
  for (std::size_t peer = 0; peer < size; ++peer) {
    for (std::size_t i = 0; i < n; ++i) {
      if (in[2 * (peer * n + i)] != word(peer, static_cast<std::size_t>(ranks.rank()), i) || in[2 * (peer * n + i) + 1] != 9)
        return fmt::format("element {} from rank {} is wrong, {}", i, peer, schedule_name(schedule));
    }
  }
  return {};
}

std::string by_every_schedule(Communicator& ranks, std::int64_t elements) {
  for (const Schedule schedule : {Schedule::at_once, Schedule::pairwise, Schedule::forward}) {
    if (std::string wrong = exchanges(ranks, elements, schedule); !wrong.empty()) return wrong;
  }
  return {};
}

TEST(ManyRanksInVirtualTime, ExchangeEverything) {
  EXPECT_EQ(in_model(64, {}, [](Communicator& ranks) { return by_every_schedule(ranks, 3); }), "");
  EXPECT_EQ(in_model(37, {}, [](Communicator& ranks) { return by_every_schedule(ranks, 40); }), "");
}

// Nearly all of its time is that of connecting 32 640 pairs, one after the other.
TEST(ManyRanksInVirtualTime, Are256) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "256 ranks take minutes under a sanitizer; 64 are above";
#endif
  EXPECT_EQ(in_model(256, {}, [](Communicator& ranks) { return exchanges(ranks, 2, Schedule::automatic); }), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
