// The schedules themselves, without a network: the rounds of all ranks are played against one another, and each block
// ends where it belongs.
#include "lacuna/collective/schedules.hpp"

#include <fmt/format.h>

#include <map>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Schedules.*");

using collective::Round;
using collective::Work;

// One rank: the word that it has for each rank, and what it gets.
struct Player {
  std::vector<std::uint32_t> out, in;
  Work work;
  Round direct;
  collective::Forwarding forwarding;
  std::vector<const Round*> rounds;
};

std::uint32_t word(int from, int to) { return static_cast<std::uint32_t>(from) << 16 | static_cast<std::uint32_t>(to); }

std::vector<Player> players(int size) {
  std::vector<Player> made(static_cast<std::size_t>(size));
  const Layout four = support::value(Layout::bytes(4));
  for (int rank = 0; rank < size; ++rank) {
    Player& player = made[static_cast<std::size_t>(rank)];
    player.work = {.rank = rank, .size = size, .sends = {}, .receives = {}};
    player.in.assign(made.size(), 0xffff'ffff);
    for (int peer = 0; peer < size; ++peer) player.out.push_back(word(rank, peer));
    for (int peer = 0; peer < size; ++peer) {
      player.work.sends.push_back({peer, {&player.out[static_cast<std::size_t>(peer)], four}});
      player.work.receives.push_back({peer, {&player.in[static_cast<std::size_t>(peer)], four}});
    }
  }
  return made;
}

base::Result<void> call(const std::function<base::Result<void>()>& what) { return what ? what() : base::Result<void>(); }

// Plays the i-th rounds of all ranks: all messages are on their way before any is received.
std::string play(std::vector<Player>& all, std::size_t i) {
  std::map<std::pair<int, int>, std::vector<std::vector<std::byte>>> sent;
  for (Player& player : all) {
    const Round& round = *player.rounds[i];
    LACUNA_END_TRY(call(round.before));
    for (const collective::Post& post : round.sends) {
      std::vector<std::byte> bytes(static_cast<std::size_t>(post.layout.size()));
      copy::pack(post.layout, post.base, 0, post.layout.size(), bytes.data());
      sent[{player.work.rank, post.peer}].push_back(std::move(bytes));
    }
  }
  for (Player& player : all) {
    const Round& round = *player.rounds[i];
    for (const collective::Post& post : round.receives) {
      auto& waiting = sent[{post.peer, player.work.rank}];
      if (waiting.empty()) return fmt::format("rank {} waits for rank {}, round {}", player.work.rank, post.peer, i);
      if (std::cmp_not_equal(waiting.front().size(), post.layout.size())) return "a message of another size";
      copy::unpack(post.layout, post.base, 0, post.layout.size(), waiting.front().data());
      waiting.erase(waiting.begin());
    }
    LACUNA_END_TRY(call(round.meanwhile));
    LACUNA_END_TRY(call(round.after));
  }
  for (const auto& [pair, left] : sent) {
    if (!left.empty()) return fmt::format("nobody receives what rank {} sends rank {}", pair.first, pair.second);
  }
  return {};
}

std::string check(const std::vector<Player>& all) {
  for (const Player& player : all) {
    for (int from = 0; from < player.work.size; ++from) {
      if (player.in[static_cast<std::size_t>(from)] != word(from, player.work.rank))
        return fmt::format("of {} ranks, rank {} has another block from rank {}", player.work.size, player.work.rank, from);
    }
  }
  return {};
}

constexpr int kSizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 100, 256, 300};

TEST(Schedules, ForwardingTakesEachBlockToItsRank) {
  const auto context = support::value(nic::open("local"));
  for (const int size : kSizes) {
    std::vector<Player> all = players(size);
    std::size_t rounds = 0;
    for (Player& player : all) {
      ASSERT_TRUE(player.forwarding.make(player.work, 4, *context));
      for (const Round& round : player.forwarding.rounds()) player.rounds.push_back(&round);
      rounds = player.rounds.size();
    }
    std::size_t wanted = 1;
    while (1 << wanted < size) ++wanted;
    EXPECT_EQ(rounds, wanted);
    for (std::size_t i = 0; i < rounds; ++i) ASSERT_EQ(play(all, i), "") << size;
    ASSERT_EQ(check(all), "");
  }
}

TEST(Schedules, DirectOnesTakeEachBlockToItsRank) {
  const auto context = support::value(nic::open("local"));
  for (const int size : kSizes) {
    std::vector<Player> all = players(size);
    for (Player& player : all) {
      player.direct = collective::direct(player.work, 1, *context);
      player.rounds.push_back(&player.direct);
    }
    ASSERT_EQ(play(all, 0), "");
    ASSERT_EQ(check(all), "");
  }
}

// In each step every rank sends to one rank, and receives from one.
TEST(Schedules, StepsArePermutations) {
  for (const int size : kSizes) {
    const auto context = support::value(nic::open("local"));
    std::vector<Player> all = players(size);
    for (std::size_t step = 0; std::cmp_less(step + 1, size); ++step) {
      std::vector<int> received(static_cast<std::size_t>(size));
      for (Player& player : all) {
        if (step == 0) player.direct = collective::direct(player.work, 1, *context);
        ASSERT_EQ(player.direct.sends.size(), static_cast<std::size_t>(size - 1));
        const int to = player.direct.sends[step].peer;
        ++received[static_cast<std::size_t>(to)];
        EXPECT_EQ(collective::step_of(player.work.rank, to, size), static_cast<int>(step + 1));
      }
      EXPECT_EQ(std::ranges::count(received, 1), size) << size << " ranks, step " << step;
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
