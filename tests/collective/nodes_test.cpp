// Ranks of nodes that share a NIC, connected when they first talk: every block arrives by every schedule, and what a
// rank needs does not grow with the ranks.
#include <bit>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Nodes.*");
LACUNA_TIER(test, "Nodes.*");
LACUNA_TIER(gate, "Nodes.Are1024Ranks");

constexpr Schedule kEvery[] = {Schedule::at_once, Schedule::pairwise, Schedule::forward};

LACUNA_LEFT_OUT(address, "Nodes.ExchangeEverything");  // a minute; other tests have fewer ranks
TEST(Nodes, ExchangeEverything) {
  for (const auto& [ranks, ranks_per_node] : {std::pair(64, 16), {37, 5}, {8, 8}, {7, 1}}) {
    for (const Schedule schedule : kEvery) {
      // The last one does not go at once, but by rendezvous
      for (const std::int64_t elements : {3, 300, 4000}) {
        if (elements == 4000 && ranks == 64) continue;
        EXPECT_EQ(in_nodes(ranks, ranks_per_node, {}, [&](Communicator& all) { return exchanges(all, elements, schedule); }), "")
            << ranks << " ranks, " << elements << " elements, " << schedule_name(schedule);
      }
    }
  }
}

TEST(Nodes, ExchangeWhatMessagesExchange) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    for (const bool all : {true, false}) {
      const int ranks = 3 + static_cast<int>(seed);
      const Sizes sizes{.most = seed % 2 == 0 ? 2000 : 40'000};
      const std::vector<Edge> edges = all ? everyone(ranks, seed, sizes) : some(ranks, seed, sizes);
      EXPECT_EQ(in_nodes(ranks, 3, {}, [&](Communicator& own) { return matches_messages(own, edges, all, {}); }), "") << seed;
    }
  }
}

// Memory that the NIC knows, and connections: of a rank, at most.
nic::World::Usage most(int ranks, int ranks_per_node, Schedule schedule) {
  std::vector<nic::World::Usage> all;
  EXPECT_EQ(in_nodes(ranks, ranks_per_node, {}, [&](Communicator& own) { return exchanges(own, 2, schedule); }, &all), "");
  nic::World::Usage found;
  for (const nic::World::Usage& one : all) {
    found.connections = std::max(found.connections, one.connections);
    found.registered = std::max(found.registered, one.registered);
    found.allocated = std::max(found.allocated, one.allocated);
    found.messages = std::max(found.messages, one.messages);
  }
  return found;
}

TEST(Nodes, NeedNoMoreMemoryForMoreRanks) {
  const nic::World::Usage few = most(4, 2, Schedule::at_once);
  EXPECT_LE(few.registered, 8 << 20);
  for (const Schedule schedule : kEvery) {
    for (const int ranks : {16, 64}) {
      const nic::World::Usage many = most(ranks, ranks / 4, schedule);
      EXPECT_EQ(many.registered, few.registered) << schedule_name(schedule);
      EXPECT_EQ(many.allocated, few.allocated) << schedule_name(schedule);
      const int rounds = std::bit_width(static_cast<unsigned>(ranks - 1));
      // Those before the exchange agree by r XOR 2^k, forwarding goes to r + 2^k and comes from r - 2^k
      EXPECT_LE(many.connections, schedule == Schedule::forward ? 3 * rounds : ranks - 1) << schedule_name(schedule);
    }
  }
}

// One that gives up ends all.
TEST(Nodes, AreToldOfARankThatGivesUp) {
  EXPECT_EQ(in_nodes(12, 4, {},
                     [](Communicator& all) -> std::string {
                       if (all.rank() == 5) {
                         const collective::Receive wrong{.from = 99, .where = {}};
                         const auto refused = collective::neighbor_exchange(all, {}, {&wrong, 1});
                         LACUNA_END_EXPECT(!refused && refused.error().code == base::Code::invalid_argument);
                         return {};
                       }
                       const auto told = collective::neighbor_exchange(all, {}, {});
                       LACUNA_END_EXPECT(!told && told.error().message.find("rank 5") != std::string::npos);
                       return {};
                     }),
            "");
}

TEST(Nodes, Are1024Ranks) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "1024 ranks take minutes under a sanitizer; 64 are above";
#endif
  EXPECT_EQ(in_nodes(1024, 64, {}, [](Communicator& all) { return exchanges(all, 2, Schedule::automatic); }), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
