// A plan is made at first use and shared by all copies of a layout, so several threads may make it at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <csignal>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "lacuna/copy/copy.hpp"
#include "tests/copy/memory.hpp"
#include "tests/copy/shapes.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/signals.hpp"

namespace lacuna::copy {
namespace LACUNA_TEST_FILE {

using copy_test::Bytes;
using copy_test::Dice;
using copy_test::Recipe;
using support::Random;

constexpr int kThreads = 4;

// Each thread does `work` with its own copy of a layout that nobody has used yet.
template <class Work>
void at_once(const Recipe& recipe, Work work) {
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, layout = recipe.layout, i] {
      start.arrive_and_wait();
      work(layout, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

Recipe fresh(std::uint64_t seed) {
  Dice dice(seed);
  dice.receive = true;
  dice.budget = 2 << 10;
  dice.reach = 64 << 10;
  return composition(dice, static_cast<int>(seed % 3));
}

TEST(CopyThreads, PackAtOnceWithALayoutThatHasNoPlanYet) {
  for (std::uint64_t seed = 600'000; seed < 600'150; ++seed) {
    const Recipe recipe = fresh(seed);
    Random random(seed);
    Bytes memory(static_cast<std::size_t>(recipe.span()));
    copy_test::fill(memory, random);
    const std::byte* base = memory.data() - recipe.low();
    Bytes expected(static_cast<std::size_t>(recipe.size()));
    reference::pack(recipe.layout, base, 0, recipe.size(), expected.data());
    std::vector<Bytes> packed(kThreads, Bytes(expected.size()));
    at_once(recipe, [&](const Layout& layout, int i) { pack(layout, base, 0, layout.size(), packed[static_cast<std::size_t>(i)].data()); });
    for (const Bytes& bytes : packed) ASSERT_EQ(bytes, expected) << "seed " << seed << ": " << recipe.text;
  }
}

TEST(CopyThreads, EachDoesSomethingElse) {
  for (std::uint64_t seed = 610'000; seed < 610'150; ++seed) {
    const Recipe recipe = fresh(seed);
    Random random(seed);
    Bytes source(static_cast<std::size_t>(recipe.span()));
    copy_test::fill(source, random);
    Bytes packed(static_cast<std::size_t>(recipe.size()));
    Bytes unpacked(source.size());
    Bytes moved(source.size());
    Bytes expected(source.size());
    Bytes stream(packed.size());
    reference::pack(recipe.layout, source.data() - recipe.low(), 0, recipe.size(), stream.data());
    reference::unpack(recipe.layout, expected.data() - recipe.low(), 0, recipe.size(), stream.data());
    at_once(recipe, [&](const Layout& layout, int i) {
      switch (i) {
        case 0: return pack(layout, source.data() - recipe.low(), 0, layout.size(), packed.data());
        case 1: return unpack(layout, unpacked.data() - recipe.low(), 0, layout.size(), stream.data());
        case 2: EXPECT_TRUE(transpack(layout, source.data() - recipe.low(), layout, moved.data() - recipe.low())); return;
        default:
          prepare(layout);
          EXPECT_FALSE(describe_kernels(layout).empty());
          return;
      }
    });
    ASSERT_EQ(packed, stream) << "seed " << seed << ": " << recipe.text;
    ASSERT_EQ(unpacked, expected) << "seed " << seed << ": " << recipe.text;
    ASSERT_EQ(moved, expected) << "seed " << seed << ": " << recipe.text;
  }
}

// Fragments of one layout, packed and unpacked by several threads into their parts of one stream and one memory.
TEST(CopyThreads, FragmentsOfOneLayout) {
  for (std::uint64_t seed = 620'000; seed < 620'150; ++seed) {
    const Recipe recipe = fresh(seed);
    Random random(seed);
    Bytes source(static_cast<std::size_t>(recipe.span()));
    copy_test::fill(source, random);
    Bytes stream(static_cast<std::size_t>(recipe.size()));
    Bytes expected(stream.size());
    Bytes target(source.size());
    Bytes expected_target(source.size());
    reference::pack(recipe.layout, source.data() - recipe.low(), 0, recipe.size(), expected.data());
    reference::unpack(recipe.layout, expected_target.data() - recipe.low(), 0, recipe.size(), expected.data());
    at_once(recipe, [&](const Layout& layout, int i) {
      const std::int64_t from = layout.size() * i / kThreads;
      const std::int64_t to = layout.size() * (i + 1) / kThreads;
      pack(layout, source.data() - recipe.low(), from, to - from, stream.data() + from);
      unpack(layout, target.data() - recipe.low(), from, to - from, stream.data() + from);
    });
    ASSERT_EQ(stream, expected) << "seed " << seed << ": " << recipe.text;
    ASSERT_EQ(target, expected_target) << "seed " << seed << ": " << recipe.text;
  }
}

// Sizes around those at which a Team takes another thread.
std::vector<Recipe> large() {
  constexpr std::int64_t share = 256 << 10;
  std::vector<Recipe> all;
  for (const std::int64_t size : {share - 8, 2 * share, 2 * share + 8, 3 * share - 8, 4 * share + 4096, 5 * share + 24})
    all.push_back(copy_test::hvector(size / 8, 12, copy_test::bytes(8)));
  all.push_back(copy_test::bytes(3 * share + 1));
  all.push_back(copy_test::hvector(800, 2000, copy_test::bytes(1001)));
  all.push_back(
      copy_test::hvector(20'000, 40, copy_test::structure({0, 10, 25}, {copy_test::bytes(7), copy_test::bytes(13), copy_test::bytes(9)})));
  all.push_back(copy_test::hvector(512, 8, copy_test::hvector(200, 4096, copy_test::bytes(8))));
  all.push_back(copy_test::bytes(100));
  return all;
}

// Positions and lengths that no share divides.
TEST(CopyThreads, ATeamMovesWhatOneThreadMoves) {
  const std::vector<Recipe> layouts = large();
  for (const int threads : {1, 2, 3, 4}) {
    Team team(threads);
    for (const Recipe& recipe : layouts) {
      Random random(static_cast<std::uint64_t>(recipe.size()));
      const Layout layout = support::value(Layout::resized(recipe.layout, 0, recipe.span()));  // one without a plan
      Bytes source(static_cast<std::size_t>(recipe.span()));
      copy_test::fill(source, random);
      Bytes stream(static_cast<std::size_t>(recipe.size()));
      reference::pack(layout, source.data(), 0, layout.size(), stream.data());
      const std::int64_t first = random.one_in(2) ? 0 : random.below(layout.size());
      for (const std::int64_t from : {std::int64_t{0}, first}) {
        const std::int64_t length = layout.size() - from - (from > 0 ? random.below(layout.size() - from) : 0);
        const auto begin = stream.begin() + from;
        Bytes packed(static_cast<std::size_t>(length));
        team.pack(layout, source.data(), from, length, packed.data());
        ASSERT_TRUE(std::equal(packed.begin(), packed.end(), begin)) << threads << " threads: " << recipe.text << " from " << from;
        Bytes target(source.size());
        Bytes expected(source.size());
        team.unpack(layout, target.data(), from, length, packed.data());
        reference::unpack(layout, expected.data(), from, length, packed.data());
        ASSERT_EQ(target, expected) << threads << " threads: " << recipe.text << " from " << from;
      }
    }
  }
}

// Each of these layouts into others of as many bytes: parts of loops, of equal and of unequal entries, and of no loop.
TEST(CopyThreads, ATeamMovesLayoutsToLayouts) {
  constexpr std::int64_t count = 90'000;
  std::vector<Recipe> layouts;
  layouts.push_back(copy_test::hvector(count, 20, copy_test::bytes(12)));
  layouts.push_back(copy_test::hvector(count / 300, 30 * 300, copy_test::hvector(300, 24, copy_test::bytes(12))));
  layouts.push_back(copy_test::hvector(360, 12, copy_test::hvector(250, 360 * 12, copy_test::bytes(12))));
  layouts.push_back(copy_test::hvector(2, 16 * count / 2, copy_test::hvector(count / 2, 16, copy_test::bytes(12))));
  layouts.push_back(copy_test::structure({0, 32}, {copy_test::bytes(7), copy_test::hvector(12 * count - 7, 2, copy_test::bytes(1))}));
  layouts.push_back(copy_test::bytes(12 * count));
  for (const int threads : {1, 2, 3, 4}) {
    Team team(threads);
    for (const Recipe& from : layouts) {
      Random random(static_cast<std::uint64_t>(threads));
      Bytes source(static_cast<std::size_t>(from.span()));
      copy_test::fill(source, random);
      for (const Recipe& to : layouts) {
        Bytes target(static_cast<std::size_t>(to.span()));
        Bytes expected(target.size());
        ASSERT_TRUE(reference::transpack(from.layout, source.data() - from.low(), to.layout, expected.data() - to.low()));
        ASSERT_TRUE(team.transpack(from.layout, source.data() - from.low(), to.layout, target.data() - to.low()));
        ASSERT_EQ(target, expected) << threads << " threads: " << from.text << " to " << to.text;
      }
    }
    EXPECT_FALSE(team.transpack(layouts[0].layout, nullptr, Layout(), nullptr));
  }
}

// A program's signals are for its own threads, but for those of a thread's own faults.
TEST(CopyThreads, ATeamTakesNoSignals) {
  const auto before = test::threads_that_take(SIGSEGV);
  const Team team(3);
  std::vector<std::string> own;
  const auto begun = [&] {
    own.clear();
    std::ranges::set_difference(test::threads_that_take(SIGSEGV), before, std::back_inserter(own));
    return own.size() == 2;
  };
  ASSERT_EQ(test::await("the team's two threads", begun), "");
  const auto take = test::threads_that_take(SIGUSR1);
  for (const std::string& thread : own) EXPECT_FALSE(take.contains(thread));
}

TEST(CopyThreads, TeamsThatDoNothing) {
  for (int threads = 1; threads <= 5; ++threads) {
    Team idle(threads);
    Team brief(threads);
    brief.pack(Layout(), nullptr, 0, 0, nullptr);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::copy
