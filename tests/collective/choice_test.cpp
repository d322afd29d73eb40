// Which schedule is chosen, and that it can be said why.
#include "lacuna/collective/collective.hpp"

#include <gtest/gtest.h>

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using collective::choose;
using collective::Load;
using collective::Schedule;

// Everyone to everyone, all blocks of the same size.
Load everyone(int ranks, std::int64_t block, bool shared_memory) {
  return {.ranks = ranks,
          .everyone = true,
          .largest = block,
          .most_bytes = block * (ranks - 1),
          .most_messages = block > 0 ? ranks - 1 : 0,
          .shared_memory = shared_memory};
}

Schedule chosen(const Load& load) { return choose(load)->schedule; }

TEST(Choice, TinyBlocksOfManyRanksAreForwarded) {
  EXPECT_EQ(chosen(everyone(256, 8, false)), Schedule::forward);
  EXPECT_EQ(chosen(everyone(256, 64 << 10, false)), Schedule::pairwise);
  EXPECT_EQ(chosen(everyone(2, 8, false)), Schedule::at_once);
  // As docs/design/exchanges.md says.
  EXPECT_EQ(chosen(everyone(256, 64, false)), Schedule::forward);
  EXPECT_EQ(chosen(everyone(256, 72, false)), Schedule::at_once);
  EXPECT_EQ(chosen(everyone(128, 1, false)), Schedule::at_once);
  EXPECT_EQ(chosen(everyone(32, 160, true)), Schedule::forward);
  EXPECT_EQ(chosen(everyone(16, 1, true)), Schedule::at_once);
  for (const bool shared : {false, true}) {
    for (const int ranks : {1, 2, 3}) EXPECT_NE(chosen(everyone(ranks, 8, shared)), Schedule::forward) << ranks;
    // With more ranks forwarding wins up to larger blocks, and beyond one size never.
    for (int ranks = 2; ranks <= 1024; ranks *= 2) {
      bool forwarded = true;
      for (std::int64_t block = 1; block <= 1 << 20; block *= 2) {
        const bool forward = chosen(everyone(ranks, block, shared)) == Schedule::forward;
        EXPECT_TRUE(forwarded || !forward) << ranks << " ranks, " << block << " bytes";
        forwarded = forward;
      }
      EXPECT_FALSE(forwarded);
    }
  }
}

// Ranks that share a NIC wait for one another there, for each message: the more they are, the larger the blocks that
// are forwarded, and the more each schedule is expected to take.
TEST(Choice, BlocksOfRanksThatShareANicAreForwardedSooner) {
  const auto sharing = [](int ranks, std::int64_t block, int share) {
    Load load = everyone(ranks, block, false);
    load.by_hub = true;
    load.sharing = share;
    return load;
  };
  EXPECT_EQ(chosen(sharing(1024, 64, 64)), Schedule::forward);
  EXPECT_EQ(chosen(sharing(1024, 4096, 64)), Schedule::at_once);
  EXPECT_EQ(chosen(sharing(64, 8, 1)), Schedule::at_once);
  EXPECT_EQ(chosen(sharing(64, 8, 4)), Schedule::forward);
  for (const int ranks : {32, 256, 1024}) {
    double before = 0;
    std::int64_t most_before = 0;
    for (int share = 1; share <= 64; share *= 2) {
      const double us = choose(sharing(ranks, 64, share))->expected_us[static_cast<std::size_t>(Schedule::at_once)];
      EXPECT_GE(us, before) << ranks << " ranks, " << share << " share";
      before = us;
      std::int64_t most = 0;
      for (std::int64_t block = 8; block <= 8192; block += 8)
        if (chosen(sharing(ranks, block, share)) == Schedule::forward) most = block;
      EXPECT_GE(most, most_before) << ranks << " ranks, " << share << " share";
      most_before = most;
    }
    EXPECT_GT(most_before, 0);
  }
}

// A CPU gathers and scatters the runs of blocks by any schedule. Where messages wait for a NIC that many share, it does
// so meanwhile, but not where it stores and forwards them.
TEST(Choice, RunsOfBlocksTakeTime) {
  const auto expected = [](const Load& load, Schedule schedule) { return choose(load)->expected_us[static_cast<std::size_t>(schedule)]; };
  for (const bool shared : {false, true}) {
    for (const int sharing : {1, 64}) {
      Load plain = everyone(64, 512, shared);
      plain.sharing = sharing;
      plain.most_runs = 2 * plain.most_messages;  // contiguous
      Load gaps = plain;
      gaps.most_runs = 2 * plain.most_messages + 4000;
      const double forward = expected(gaps, Schedule::forward) - expected(plain, Schedule::forward);
      const double direct = expected(gaps, Schedule::at_once) - expected(plain, Schedule::at_once);
      EXPECT_NEAR(forward, shared ? 40 : 52, 1e-6) << "4000 runs";
      EXPECT_NEAR(direct, sharing == 64 && !shared ? 0 : forward, 1e-6);
    }
  }
}

TEST(Choice, LargeBlocksOfManyRanksGoInPairs) {
  for (const bool shared : {false, true}) {
    EXPECT_EQ(chosen(everyone(64, 1 << 20, shared)), Schedule::pairwise);
    EXPECT_EQ(chosen(everyone(4, 1 << 20, shared)), Schedule::at_once);
    EXPECT_EQ(chosen(everyone(16, 4 << 10, shared)), Schedule::at_once);
  }
}

TEST(Choice, NeighboursNeverForward) {
  Load load = everyone(256, 8, false);
  load.everyone = false;
  EXPECT_EQ(chosen(load), Schedule::at_once);
  const auto forced = choose(load, Schedule::forward);
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().code, base::Code::invalid_argument);
}

TEST(Choice, ForwardingHasALimit) {
  const auto forced = choose(everyone(256, 1 << 20, false), Schedule::forward);
  ASSERT_FALSE(forced);
  EXPECT_EQ(forced.error().code, base::Code::limit);
  EXPECT_NE(forced.error().message.find("268435456"), std::string::npos) << forced.error().message;
  EXPECT_EQ(choose(everyone(256, 1 << 20, false))->expected_us[static_cast<std::size_t>(Schedule::forward)], 0);
}

TEST(Choice, IsExplained) {
  for (const std::int64_t block : {8, 1 << 20}) {
    const auto choice = choose(everyone(128, block, false));
    ASSERT_TRUE(choice);
    EXPECT_FALSE(choice->forced);
    EXPECT_GT(choice->why.size(), 20U);
    EXPECT_GT(choice->expected_us[static_cast<std::size_t>(Schedule::at_once)], 0);
    EXPECT_GT(choice->expected_us[static_cast<std::size_t>(Schedule::pairwise)], 0);
  }
  EXPECT_TRUE(choose(everyone(2, 8, true), Schedule::pairwise)->forced);
}

TEST(Choice, SchedulesHaveNames) {
  for (std::size_t i = 0; i < collective::kSchedules; ++i) {
    const auto schedule = static_cast<Schedule>(i);
    EXPECT_EQ(collective::schedule_from_name(collective::schedule_name(schedule)), schedule);
  }
  EXPECT_FALSE(collective::schedule_from_name("bruck"));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
