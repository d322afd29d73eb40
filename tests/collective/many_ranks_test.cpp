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
