// Prices that ranks agree on: all choose by the same ones, whatever each has measured, and what a peer says is checked.
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "lacuna/collective/agreement.hpp"
#include "tests/collective/blocks.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using collective::Choice;
using collective::Load;
using collective::Terms;
using guide::ExchangePrice;
using guide::ExchangePrices;

ExchangePrices prices_of(float latency, float message) { return {{latency, message, 20'000, 2, 0.05F}}; }
// Of a machine whose messages cost a CPU much beside what their way takes, and of one where that is nearly nothing.
const ExchangePrices kDear = prices_of(2000, 3000), kCheap = prices_of(5000, 20);

Load tiny(int ranks, bool shared_memory, const std::optional<ExchangePrices>& prices) {
  return {.ranks = ranks,
          .everyone = true,
          .largest = 8,
          .most_bytes = 8 * (ranks - 1),
          .most_messages = ranks - 1,
          .shared_memory = shared_memory,
          .by_hub = true,
          .prices = prices,
          .all_priced = prices.has_value()};
}

TEST(ExchangePrices, DecideWhetherSmallBlocksAreForwarded) {
  for (const bool shared : {false, true}) {
    const Choice dear = support::value(choose(tiny(64, shared, kDear))), cheap = support::value(choose(tiny(64, shared, kCheap)));
    EXPECT_EQ(dear.schedule, Schedule::forward);
    EXPECT_EQ(cheap.schedule, Schedule::at_once);
    const auto direct = [](const Choice& choice) { return choice.expected_us[static_cast<std::size_t>(Schedule::at_once)]; };
    EXPECT_GT(direct(dear), 63 * 3.0);
    EXPECT_LT(direct(cheap), 10);
  }
}

TEST(ExchangePrices, AreExplainedWithWhereTheyComeFrom) {
  Load load = tiny(64, true, kDear);
  EXPECT_TRUE(support::value(choose(load)).prices.contains("of the ranks' profiles: latency 2e+03 ns, message 3e+03 ns"));
  load.all_priced = false;
  EXPECT_TRUE(support::value(choose(load)).prices.contains("that have any: latency 2e+03 ns"));
  load.prices.reset();
  EXPECT_TRUE(support::value(choose(load)).prices.contains("usual prices")) << support::value(choose(load)).prices;
}

// What is asked for changes nothing of what would be best.
TEST(ExchangePrices, SayWhatIsBestWhateverIsForced) {
  for (const ExchangePrices& prices : {kDear, kCheap}) {
    const Choice free = support::value(choose(tiny(64, false, prices)));
    for (const Schedule schedule : {Schedule::at_once, Schedule::pairwise, Schedule::forward}) {
      const Choice forced = support::value(choose(tiny(64, false, prices), schedule));
      EXPECT_EQ(forced.schedule, schedule);
      EXPECT_EQ(forced.best, free.schedule);
      EXPECT_EQ(forced.expected_us, free.expected_us);
    }
  }
}

// Combined in any order they are the same, to the bit: the highest of each price.
TEST(ExchangePrices, AreCombinedTheSameInAnyOrder) {
  support::Random random(39);
  for (int round = 0; round < 300; ++round) {
    std::vector<Terms> ranks(static_cast<std::size_t>(1 + random.below(9)));
    Terms naive;
    naive.all_priced = 1;
    for (Terms& one : ranks) {
      if (random.one_in(3)) {
        naive.all_priced = 0;
        continue;
      }
      one.all_priced = 1;
      for (std::size_t i = 0; i < guide::kExchangePrices; ++i) {
        one.prices.ns.at(i) = ExchangePrices::kLeast + static_cast<float>(random.scaled(1'000'000)) / 7;
        if (one.prices.ns.at(i) > naive.prices.ns.at(i)) naive.prices.ns.at(i) = one.prices.ns.at(i);
      }
    }
    // Two of them, wherever they are, become one, until one is left.
    while (ranks.size() > 1) {
      const auto at = static_cast<std::ptrdiff_t>(random.below(std::ssize(ranks)));
      const Terms taken = ranks[static_cast<std::size_t>(at)];
      ranks.erase(ranks.begin() + at);
      ASSERT_TRUE(taken.check());
      ranks[static_cast<std::size_t>(random.below(std::ssize(ranks)))].combine(taken);
    }
    EXPECT_EQ(ranks[0].prices, naive.prices);
    EXPECT_EQ(ranks[0].all_priced, naive.all_priced);
    EXPECT_TRUE(ranks[0].check());
  }
}

std::vector<Terms> hostile() {
  std::vector<Terms> made;
  for (std::size_t i = 0; i < guide::kExchangePrices; ++i) {
    for (const float wrong :
         {0.0F, -1.0F, std::nanf(""), std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(), 2e9F, 1e-30F}) {
      Terms& one = made.emplace_back();
      one.all_priced = 1;
      one.prices = kDear;
      one.prices.ns.at(i) = wrong;
    }
  }
  for (const std::int32_t all : {-1, 2, INT32_MAX, INT32_MIN}) {
    made.emplace_back().prices = kDear;
    made.back().all_priced = all;
  }
  made.emplace_back().all_priced = 1;  // and no prices
  return made;
}

TEST(ExchangePrices, ThatAPeerMakesUpAreMalformed) {
  EXPECT_TRUE(Terms().check());
  for (const Terms& one : hostile()) {
    const auto checked = one.check();
    ASSERT_FALSE(checked) << one.prices.describe();
    EXPECT_EQ(checked.error().code, base::Code::malformed);
    EXPECT_TRUE(checked.error().message.contains("prices")) << checked.error().message;
  }
}

// Rank 1 speaks for itself, by the tags of an exchange; rank 0 is told that this cannot be, and writes nothing.
TEST(ExchangePrices, ThatAPeerMakesUpEndTheExchange) {
  for (const Terms& words : {hostile().front(), hostile().at(2), hostile().back()}) {
    const auto program = [&](Communicator& ranks) -> std::string {
      const Layout block = support::value(Layout::bytes(8)), said = support::value(Layout::bytes(sizeof(Terms)));
      if (ranks.rank() == 1) {
        const int tag = ranks.take_tag();
        Terms theirs;
        LACUNA_END_TRY(ranks.send(&words, said, 0, tag));
        LACUNA_END_TRY(ranks.recv(&theirs, said, 0, tag));
        return {};
      }
      std::array<std::uint64_t, 2> out{1, 2}, in{9, 9};
      const std::array<collective::Source, 2> sends{{{&out[0], block}, {&out[1], block}}};
      const std::array<collective::Target, 2> receives{{{&in[0], block}, {&in[1], block}}};
      const auto ended = collective::alltoallw(ranks, sends, receives, {.timeout_ns = kPatience});
      LACUNA_END_EXPECT(!ended && ended.error().code == base::Code::malformed);
      LACUNA_END_EXPECT(in[1] == 9);
      return {};
    };
    EXPECT_EQ(in_ranks({.ranks = 2}, program), "");
  }
}

// --- profiles of several ranks ---------------------------------------------------------------------------------------

LACUNA_TIER(test, "ExchangePricesTwoProcesses.*");
LACUNA_LEFT_OUT(thread, "ExchangePricesTwoProcesses.*");

// A profile for each rank; a rank without prices has one, too.
class ExchangePricesTwoProcesses : public testing::Test {
 protected:
  ExchangePricesTwoProcesses() {
    std::string name = (std::filesystem::temp_directory_path() / "lacuna-prices-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ExchangePricesTwoProcesses() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file(int rank) const { return (folder_ / fmt::format("{}.json", rank)).string(); }
  void write(int rank, const std::optional<ExchangePrices>& prices) const {
    std::string member;
    if (prices) {
      member = R"(, "exchanges": {"of a newer library": 1)";
      for (std::size_t i = 0; i < guide::kExchangePrices; ++i)
        member += fmt::format(R"(, "{}": {})", guide::exchange_price_name(static_cast<ExchangePrice>(i)), prices->ns.at(i));
      member += "}";
    }
    std::ofstream(file(rank)) << fmt::format(
        R"({{"schema": 3, "nic": "local", "peers": "same machine", "machine": "{}", "lacuna_version": "{}", "created": "", "classes": []{}}})",
        guide::machine_name(), base::version(), member);
  }
  // Every rank's schedule and prices, as its exchange explains them; "" where all ranks have `expected`.
  [[nodiscard]] std::string all_say(int ranks, const std::string& expected) const {
    const auto program = [&](Communicator& own) -> std::string {
      const auto size = static_cast<std::size_t>(own.size());
      const Layout block = support::value(Layout::bytes(8));
      std::vector<std::uint64_t> out(size), in(size);
      std::vector<collective::Source> sends;
      std::vector<collective::Target> receives;
      for (std::size_t i = 0; i < size; ++i) {
        out[i] = static_cast<std::uint64_t>(own.rank()) * 100 + i;
        sends.push_back({&out[i], block});
        receives.push_back({&in[i], block});
      }
      const auto exchange = collective::alltoallw_init(own, sends, receives);
      LACUNA_END_TRY(exchange->start());
      LACUNA_END_TRY(exchange->wait());
      for (std::size_t i = 0; i < size; ++i) LACUNA_END_EXPECT(in[i] == i * 100 + static_cast<std::uint64_t>(own.rank()));
      const std::string said = exchange->explain();
      return said.contains(expected) ? "" : said;
    };
    return in_ranks({.ranks = ranks, .processes = true, .before = [&](int rank) { setenv("LACUNA_PROFILE", file(rank).c_str(), 1); }},
                    program);
  }
  std::filesystem::path folder_;
};

TEST_F(ExchangePricesTwoProcesses, OfTwoMachinesAreOnesToAll) {
  constexpr int ranks = 6;
  // The highest of each: messages of the one, latencies of the other.
  for (int rank = 0; rank < ranks; ++rank) write(rank, rank == 4 ? kDear : kCheap);
  const ExchangePrices both{{5000, 3000, 20'000, 2, 0.05F}};
  EXPECT_EQ(all_say(ranks, "the highest of the ranks' profiles: " + both.describe()), "");
  for (int rank = 0; rank < ranks; ++rank) write(rank, rank == 2 ? std::nullopt : std::optional(rank == 5 ? kDear : kCheap));
  EXPECT_EQ(all_say(ranks, "the highest of those ranks' profiles that have any: " + both.describe()), "");
}

TEST_F(ExchangePricesTwoProcesses, OfDearMessagesForwardWhereCheapOnesGoAtOnce) {
  constexpr int ranks = 8;
  for (const ExchangePrices& prices : {kDear, kCheap}) {
    for (int rank = 0; rank < ranks; ++rank) write(rank, prices);
    EXPECT_EQ(all_say(ranks, prices == kDear ? "forward: 7 messages" : "at_once: 7 messages"), "");
  }
  for (int rank = 0; rank < ranks; ++rank) write(rank, std::nullopt);
  EXPECT_EQ(all_say(ranks, "by usual prices"), "");
  // One rank that has measured is enough for all.
  write(3, kDear);
  EXPECT_EQ(all_say(ranks, "forward: 7 messages"), "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
