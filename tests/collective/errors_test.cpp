// What cannot be, or does not fit together, is an error on every rank; nothing was written, and the communicator goes
// on.
#include <fmt/format.h>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "CollectiveErrors.*");
LACUNA_TIER(test, "Exchange.*");

using collective::Options;
using collective::Receive;
using collective::Send;
using collective::Source;
using collective::Target;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }

// Memory of a rank: `to` holds 9s.
struct Memory {
  std::vector<std::byte> from = std::vector<std::byte>(50'000, std::byte{1});
  std::vector<std::byte> to = std::vector<std::byte>(50'000, std::byte{9});
  [[nodiscard]] bool untouched() const { return std::ranges::count(to, std::byte{9}) == std::ssize(to); }
};

std::string text_of(const base::Result<void>& ended) { return ended ? "no error" : ended.error().text(); }

// An alltoallw of blocks of `out[i]` and `in[i]` bytes.
base::Result<void> blocks(Communicator& ranks, Memory& memory, const std::vector<std::int64_t>& out, const std::vector<std::int64_t>& in,
                          const Options& options = {}) {
  std::vector<Source> sends;
  std::vector<Target> receives;
  for (const std::int64_t n : out) sends.push_back({memory.from.data(), bytes(n)});
  std::int64_t at = 0;
  for (const std::int64_t n : in) {
    receives.push_back({memory.to.data() + at, bytes(n)});
    at += n;
  }
  return collective::alltoallw(ranks, sends, receives, options);
}

std::string goes_on(Communicator& ranks) {
  Memory memory;
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size()), 8);
  LACUNA_END_TRY(blocks(ranks, memory, sizes, sizes));
  LACUNA_END_EXPECT(memory.to[0] == std::byte{1});
  return {};
}

// Runs a program in threads, and on the model, on four ranks.
void everywhere(const Program& program) {
  const auto both = [&](Communicator& ranks) -> std::string {
    if (std::string wrong = program(ranks); !wrong.empty()) return wrong;
    return goes_on(ranks);
  };
  EXPECT_EQ(in_ranks({.ranks = 4}, both), "");
  EXPECT_EQ(in_ranks({.ranks = 3}, both), "");
  EXPECT_EQ(in_model(4, {}, both), "");
}

TEST(CollectiveErrors, SizesThatDifferNameThePair) {
  for (const std::int64_t n : {10, 10'000}) {
    for (const Schedule schedule : {Schedule::automatic, Schedule::at_once, Schedule::pairwise, Schedule::forward}) {
      everywhere([&](Communicator& ranks) -> std::string {
        Memory memory;
        std::vector<std::int64_t> out(static_cast<std::size_t>(ranks.size()), n), in = out;
        if (ranks.rank() == 1) in[2] = n - 3;  // rank 2 sends n
        const std::string said = text_of(blocks(ranks, memory, out, in, {.schedule = schedule}));
        LACUNA_END_EXPECT(said.starts_with("invalid argument"));
        LACUNA_END_EXPECT(said.contains("rank 2 sends rank 1"));
        if (ranks.rank() == 1)
          LACUNA_END_EXPECT(said.contains(fmt::format("({} bytes)", n)) && said.contains(fmt::format("({} bytes)", n - 3)));
        LACUNA_END_EXPECT(memory.untouched());
        return {};
      });
    }
  }
}

TEST(CollectiveErrors, ListsThatDifferNameThePair) {
  everywhere([](Communicator& ranks) -> std::string {
    Memory memory;
    // Rank 0 sends rank 1 two blocks, and rank 1 expects one; then the other way round; then one that no rank expects;
    // then sums that are equal.
    const std::vector<std::vector<std::int64_t>> sent{{8, 8}, {8}, {30'000}, {8, 16}, {}};
    const std::vector<std::vector<std::int64_t>> expected{{8}, {8, 8}, {}, {16, 8}, {0}};
    for (std::size_t i = 0; i < sent.size(); ++i) {
      std::vector<Send> sends;
      std::vector<Receive> receives;
      if (ranks.rank() == 0) {
        for (const std::int64_t n : sent[i]) sends.push_back({1, {memory.from.data(), bytes(n)}});
      }
      if (ranks.rank() == 1) {
        for (const std::int64_t n : expected[i]) receives.push_back({0, {memory.to.data(), bytes(n)}});
      }
      const std::string said = text_of(collective::neighbor_exchange(ranks, sends, receives));
      if (!said.contains("rank 0 sends rank 1")) return fmt::format("lists {}: {}", i, said);
      LACUNA_END_EXPECT(memory.untouched());
    }
    return {};
  });
}

TEST(CollectiveErrors, OneRanksArgumentsAreAllRanksError) {
  everywhere([](Communicator& ranks) -> std::string {
    Memory memory;
    const Layout twice = support::value(Layout::hvector(2, 1, 4, bytes(8)));
    const auto exchange = [&](const std::vector<Send>& sends, const std::vector<Receive>& receives, Options options) {
      if (ranks.rank() != 1) return collective::neighbor_exchange(ranks, {}, {});
      return collective::neighbor_exchange(ranks, sends, receives, options);
    };
    struct Wrong {
      std::vector<Send> sends;
      std::vector<Receive> receives;
      Options options;
      std::string says;
    };
    const Wrong all[] = {
        {{{0, {nullptr, bytes(4)}}}, {}, {}, "send 0 (rank 0) has 4 bytes at a null pointer"},
        {{}, {{2, {nullptr, bytes(4)}}}, {}, "receive 0 (rank 2) has 4 bytes at a null pointer"},
        {{{ranks.size(), {memory.from.data(), bytes(4)}}}, {}, {}, fmt::format("ranks 0 to {}", ranks.size() - 1)},
        {{}, {{-1, {memory.to.data(), bytes(4)}}}, {}, "receive 0 names rank -1"},
        {{}, {{0, {memory.to.data(), twice}}}, {}, "names some bytes twice"},
        {{{1, {memory.from.data(), bytes(4)}}}, {}, {}, "sends itself 1 messages and receives 0"},
        {{{1, {memory.from.data(), bytes(4)}}}, {{1, {memory.to.data(), bytes(5)}}}, {}, "to itself has 4 bytes, and its receive 5"},
        {{}, {}, {.window = 0}, "window of 0"},
        {{}, {}, {.schedule = Schedule::unknown}, "no such schedule"},
    };
    for (const Wrong& wrong : all) {
      const std::string said = text_of(exchange(wrong.sends, wrong.receives, wrong.options));
      const std::string wanted = ranks.rank() == 1 ? wrong.says : "rank 1 cannot take part";
      if (!said.starts_with("invalid argument") || !said.contains(wanted)) return said + ", not: " + wanted;
      LACUNA_END_EXPECT(memory.untouched());
    }
    // The number of blocks is what alltoallw adds.
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size() + (ranks.rank() == 1 ? 1 : 0)), 4);
    LACUNA_END_EXPECT(text_of(blocks(ranks, memory, sizes, sizes)).starts_with("invalid argument"));
    return {};
  });
}

TEST(CollectiveErrors, RanksThatAskForDifferentThings) {
  everywhere([](Communicator& ranks) -> std::string {
    Memory memory;
    const std::vector<std::int64_t> sizes(static_cast<std::size_t>(ranks.size()), 8);
    const Schedule own = ranks.rank() == 0 ? Schedule::forward : Schedule::pairwise;
    const std::string said = text_of(blocks(ranks, memory, sizes, sizes, {.schedule = own}));
    LACUNA_END_EXPECT(said.contains("pairwise") && said.contains("forward"));
    const std::string other = text_of(ranks.rank() == 2 ? collective::transpose(ranks, {.rows = 0, .columns = 0}, nullptr, nullptr)
                                                        : blocks(ranks, memory, sizes, sizes));
    LACUNA_END_EXPECT(other.contains("alltoallw") && other.contains("transpose"));
    LACUNA_END_EXPECT(
        text_of(collective::neighbor_exchange(ranks, {}, {}, {.schedule = Schedule::forward})).contains("neighbours cannot forward"));
    LACUNA_END_EXPECT(memory.untouched());
    return {};
  });
}

TEST(CollectiveErrors, AreSaidAgain) {
  everywhere([](Communicator& ranks) -> std::string {
    const auto exchange = collective::neighbor_exchange_init(ranks, {}, {}, {.window = ranks.rank() == 0 ? 0 : 1});
    LACUNA_END_EXPECT(!exchange->start() || !exchange->wait());
    LACUNA_END_EXPECT(!exchange->test() && !exchange->start() && !exchange->wait());
    LACUNA_END_EXPECT(exchange->explain().contains("failed"));
    return {};
  });
}

TEST(CollectiveErrors, AnExchangeIsStartedOnceAtATime) {
  everywhere([](Communicator& ranks) -> std::string {
    Memory memory;
    const int next = (ranks.rank() + 1) % ranks.size(), previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
    const Send send{next, {memory.from.data(), bytes(30'000)}};
    const Receive receive{previous, {memory.to.data(), bytes(30'000)}};
    const auto exchange = collective::neighbor_exchange_init(ranks, {&send, 1}, {&receive, 1});
    LACUNA_END_EXPECT(LACUNA_END_TRY(exchange->test()));  // not started: nothing to do
    char word = 0;                                        // the others begin once rank 0 has tried twice
    if (ranks.rank() == 0) {
      LACUNA_END_TRY(exchange->start());
      LACUNA_END_EXPECT(!LACUNA_END_TRY(exchange->wait_for(1'000'000)));
      const auto again = exchange->start();
      LACUNA_END_EXPECT(!again && again.error().message.contains("under way"));
      for (int peer = 1; peer < ranks.size(); ++peer) LACUNA_END_TRY(ranks.send(&word, bytes(1), peer, 1));
    } else {
      LACUNA_END_TRY(ranks.recv(&word, bytes(1), 0, 1));
      LACUNA_END_TRY(exchange->start());
    }
    while (!LACUNA_END_TRY(exchange->test())) LACUNA_END_TRY(ranks.context().wait(ranks.context().now() + kPatience));
    LACUNA_END_EXPECT(memory.to[29'999] == std::byte{1} && memory.to[30'000] == std::byte{9});
    return {};
  });
}

// Who does not come is not waited for longer than was said, and hears of it when he comes.
TEST(CollectiveErrors, WhoDoesNotComeInTime) {
  const auto program = [](Communicator& ranks) -> std::string {
    Memory memory;
    const std::vector<std::int64_t> sizes(3, 8);
    if (ranks.rank() != 2) {
      const auto ended = blocks(ranks, memory, sizes, sizes, {.timeout_ns = 50'000'000});
      LACUNA_END_EXPECT(!ended);
      LACUNA_END_EXPECT(ended.error().code == base::Code::timeout || ended.error().message.contains("gave up"));
    }
    char word = 0;  // rank 2 comes once both have given up
    if (ranks.rank() != 2) LACUNA_END_TRY(ranks.send(&word, bytes(1), 2, 1));
    if (ranks.rank() == 2) {
      for (const int peer : {0, 1}) LACUNA_END_TRY(ranks.recv(&word, bytes(1), peer, 1));
      const auto ended = blocks(ranks, memory, sizes, sizes);
      LACUNA_END_EXPECT(!ended && ended.error().message.contains("gave up"));
      LACUNA_END_EXPECT(memory.untouched());
    }
    return {};
  };
  EXPECT_EQ(in_ranks({.ranks = 3}, program), "");
}

// Messages of the program, and wildcards, do not meet those of exchanges; exchanges that are under way together do not
// meet one another.
TEST(Exchange, KeepsItsMessagesToItself) {
  everywhere([](Communicator& ranks) -> std::string {
    std::vector<std::byte> anything(60'000);
    protocol::Request* wild = LACUNA_END_TRY(ranks.irecv(anything.data(), bytes(60'000), protocol::kAnySource, protocol::kAnyTag));
    const int next = (ranks.rank() + 1) % ranks.size(), previous = (ranks.rank() + ranks.size() - 1) % ranks.size();
    std::vector<Memory> memory(3);
    std::vector<std::unique_ptr<collective::Exchange>> exchanges;
    for (std::size_t i = 0; i < 3; ++i) {
      std::ranges::fill(memory[i].from, static_cast<std::byte>(i + 1));
      const std::int64_t n = i == 1 ? 40'000 : 40;
      const Send send{next, {memory[i].from.data(), bytes(n)}};
      const Receive receive{previous, {memory[i].to.data(), bytes(n)}};
      exchanges.push_back(collective::neighbor_exchange_init(ranks, {&send, 1}, {&receive, 1}));
    }
    // Begun in different orders, and waited for in others.
    const std::size_t first = static_cast<std::size_t>(ranks.rank()) % 3;
    for (std::size_t i = 0; i < 3; ++i) LACUNA_END_TRY(exchanges[(first + i) % 3]->start());
    bool over = false;
    while (!over) {
      over = true;
      for (const auto& one : exchanges) over = LACUNA_END_TRY(one->test()) && over;
      if (!over) LACUNA_END_TRY(ranks.context().wait(ranks.context().now() + kPatience));
    }
    for (std::size_t i = 0; i < 3; ++i) LACUNA_END_EXPECT(memory[i].to[0] == static_cast<std::byte>(i + 1));
    LACUNA_END_EXPECT(!LACUNA_END_TRY(ranks.probe(protocol::kAnySource, protocol::kAnyTag)));
    char word = 3;
    LACUNA_END_TRY(ranks.send(&word, bytes(1), next, 77));
    LACUNA_END_EXPECT(LACUNA_END_TRY(ranks.wait(wild)).tag == 77);
    return {};
  });
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
