// Orders: what the ranks of a communicator decide together, and whose entries are whose.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "lacuna/mpi/process/order.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Orders.*");

constexpr std::size_t kMembers = 3;

// Tables of a few ranks in one process, and their orders.
struct Members {
  std::unique_ptr<std::array<mpi::OrderTable, kMembers>> tables = std::make_unique<std::array<mpi::OrderTable, kMembers>>();
  [[nodiscard]] std::unique_ptr<mpi::Order> member(std::uint64_t key, std::size_t rank) const {
    std::vector<mpi::OrderTable*> places;
    for (mpi::OrderTable& table : *tables) places.push_back(&table);
    return std::make_unique<mpi::Order>(key, places, rank);
  }
  [[nodiscard]] std::size_t taken() const {
    std::size_t all = 0;
    for (const mpi::OrderTable& table : *tables)
      all += static_cast<std::size_t>(std::ranges::count_if(table.entries, [](const auto& one) { return one.key != 0; }));
    return all;
  }
};

// What ranks decide who come in any order is one decision for all, and each is of somebody who has begun that call.
// Where ranks are far from one another all leave a call; once they are near again they decide.
TEST(Orders, DecideOnceForAll) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 by(seed);
    constexpr std::size_t kCalls = 1200, kFar = 800;
    const Members all;
    std::vector<std::unique_ptr<mpi::Order>> members;
    for (std::size_t rank = 0; rank < kMembers; ++rank) members.push_back(all.member(5, rank));
    std::array<std::vector<mpi::Decision>, kMembers> decided;
    std::vector<mpi::Decision> first(kCalls);
    const std::size_t most = seed % 3 == 0 ? kFar : 1 + by() % 200;  // of the first before the last, until kFar calls
    while (std::ranges::any_of(decided, [](const auto& one) { return one.size() < kCalls; })) {
      const std::size_t rank = by() % kMembers;
      const std::size_t call = decided.at(rank).size();
      const auto& last = *std::ranges::min_element(decided, {}, [](const auto& one) { return one.size(); });
      const std::size_t lead = call < kFar ? most : 8;
      if (call == kCalls || call > last.size() + lead || (call >= kFar && last.size() < kFar - lead)) continue;
      const auto mine = [&] {
        EXPECT_EQ(first[call], mpi::Decision{}) << "decided twice";
        return first[call] = by() % 2 == 0 ? mpi::Decision::wished : mpi::Decision::board;
      };
      decided.at(rank).push_back(members[rank]->begin() ? members[rank]->decide(mine) : mpi::Decision::left);
    }
    for (std::size_t call = 0; call < kCalls; ++call) {
      const mpi::Decision wanted = first[call] != mpi::Decision{} ? first[call] : mpi::Decision::left;
      for (const auto& one : decided) ASSERT_EQ(one[call], wanted) << "call " << call;
      if (most < 32 || call >= kFar + 64) {
        ASSERT_NE(first[call], mpi::Decision{}) << "call " << call;
      }
    }
  }
}

// Each entry is free once all ranks have left, in any order; so there are as many orders as there are entries
// at a time, and any number one after another. A rank may leave before another has come.
TEST(Orders, GiveEntriesBack) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 by(seed);
    const Members all;
    struct One {
      std::uint64_t key;
      std::array<std::unique_ptr<mpi::Order>, kMembers> members;
      std::array<bool, kMembers> came{}, left{};
    };
    std::vector<One> some;
    std::uint64_t keys = 0;
    for (int step = 0; step < 3000 || !some.empty(); ++step) {
      if (step < 3000 && some.size() < 60 && by() % 4 == 0) some.push_back({.key = ++keys, .members = {}});
      if (some.empty()) continue;
      One& one = some.at(by() % some.size());
      const std::size_t rank = by() % kMembers;
      if (!one.came.at(rank)) {
        one.members.at(rank) = all.member(one.key, rank);
        ASSERT_TRUE(one.members.at(rank)->is_there());
        ASSERT_TRUE(one.members.at(rank)->begin());
        one.came.at(rank) = true;
      } else if (!one.left.at(rank)) {
        one.members.at(rank)->leave();
        one.left.at(rank) = true;
      }
      std::erase_if(some, [](const One& each) { return std::ranges::all_of(each.left, [](bool left) { return left; }); });
    }
    EXPECT_GT(keys, 100U);
    EXPECT_EQ(all.taken(), 0U);
  }
}

// A rank that finds a table full has no order. Once all ranks have left, the entry of the others is free, too.
TEST(Orders, AreLeftByThoseThatFoundNoRoom) {
  const Members all;
  constexpr std::uint64_t kFirst = 100;
  const std::size_t room = all.tables->front().entries.size();
  for (std::uint64_t key = kFirst; key < kFirst + room; ++key) ASSERT_NE(mpi::entry_in(all.tables->at(1), key), nullptr);
  std::vector<std::unique_ptr<mpi::Order>> members;
  for (std::size_t rank = 0; rank < kMembers; ++rank) members.push_back(all.member(5, rank));
  EXPECT_TRUE(members[0]->is_there());
  EXPECT_FALSE(members[1]->is_there());
  EXPECT_TRUE(members[2]->is_there());
  for (const auto& member : members) member->leave();
  EXPECT_EQ(all.taken(), room);
}

// The rank that has a table may lose its CPU: the others wait. They do not wait for one that has ended, except once.
TEST(Orders, WaitForARankThatHasATable) {
  using namespace std::chrono_literals;
  constexpr std::int64_t kMinute = 60'000'000'000, kShort = 1'000'000;
  const auto table = std::make_unique<mpi::OrderTable>();
  table->taken = mpi::OrderTable::kTaken;
  mpi::OrderEntry* found = nullptr;
  std::thread other([&] { found = mpi::entry_in(*table, 5, kMinute); });
  std::this_thread::sleep_for(100ms);
  table->taken = mpi::OrderTable::kFree;
  other.join();
  EXPECT_EQ(found, table->entries.data());
  table->taken = mpi::OrderTable::kTaken;
  EXPECT_EQ(mpi::entry_in(*table, 5, kShort), nullptr);
  EXPECT_EQ(table->taken, mpi::OrderTable::kLost);
  EXPECT_EQ(mpi::entry_in(*table, 5, kMinute), nullptr);
  table->taken = mpi::OrderTable::kFree;  // it had not ended
  EXPECT_EQ(mpi::entry_in(*table, 5), found);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
