// Stacks that take turns: each keeps what it has, its exceptions too.
#include "lacuna/nic/model/fiber.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/nic/model_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::model::Fiber;
using Result = base::Result<void>;

TEST(ModelFiber, TakesTurns) {
  std::string order;
  Fiber caller, one, other;
  ASSERT_TRUE(one.make([&] {
    for (const char letter : {'a', 'b', 'c'}) {
      order += letter;
      one.switch_to(other);
    }
    one.leave(caller);
  }));
  ASSERT_TRUE(other.make([&] {
    for (int i = 0;; ++i) {
      order += std::to_string(i);
      other.switch_to(one);
    }
  }));
  caller.switch_to(one);
  EXPECT_EQ(order, "a0b1c2");
}

// Each handles an exception of its own while the other ones run, and rethrows it.
TEST(ModelFiber, HasExceptionsOfItsOwn) {
  constexpr std::size_t kFibers = 3;
  std::vector<std::string> caught;
  Fiber caller;
  std::vector<Fiber> all(kFibers);
  for (std::size_t i = 0; i < kFibers; ++i) {
    ASSERT_TRUE(all[i].make([&, i] {
      try {
        try {
          throw std::runtime_error(std::to_string(i));
        } catch (const std::runtime_error&) {
          all[i].switch_to(i + 1 < kFibers ? all[i + 1] : all[0]);
          throw;
        }
      } catch (const std::runtime_error& error) {
        caught.emplace_back(error.what());
      }
      all[i].leave(i + 1 < kFibers ? all[i + 1] : caller);
    }));
  }
  caller.switch_to(all[0]);
  EXPECT_EQ(caught, (std::vector<std::string>{"0", "1", "2"}));
  EXPECT_EQ(std::uncaught_exceptions(), 0);
  EXPECT_EQ(std::current_exception(), nullptr);
}

// `levels` pages of stack.
char deeper(volatile char* above, int levels) {
  volatile char here[4096];
  here[0] = *above;
  return levels == 0 ? here[0] : static_cast<char>(deeper(here, levels - 1) + here[0]);
}

TEST(ModelFiberDeathTest, EndsWithItsStack) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer reports a stack that is used up in its own way";
#endif
  const auto too_deep = [] {
    Fiber caller, deep;
    const bool made = deep.make([&] {
      volatile char first = 1;
      deeper(&first, 1 << 14);  // 64 MiB
      deep.leave(caller);
    });
    if (made) caller.switch_to(deep);
  };
  EXPECT_DEATH(too_deep(), "");
}

// As many as the most ranks of a communicator: all wait for their neighbours, around and around.
TEST(ModelFiber, IsCheap) {
  constexpr int kRanks = 1024;
  std::vector<int> rounds(kRanks);
  run(free_world({}, kRanks), [&](int rank, nic::World& world) -> Result {
    for (int i = 0; i < 3; ++i) {
      for (const int bit : {1, 2, 4}) LACUNA_TRY(barrier(world.bootstrap(rank, rank ^ bit)));
      ++rounds[static_cast<std::size_t>(rank)];
    }
    return {};
  });
  EXPECT_EQ(rounds, std::vector<int>(kRanks, 3));
}

// A world within a process of another one.
TEST(ModelFiber, MayBeNested) {
  int inner = 0;
  run(free_world({}, 2), [&](int rank, nic::World& world) -> Result {
    run(free_world({}, 3), [&](int own, nic::World& within) -> Result {
      inner += rank * 10 + own;
      if (own < 2) LACUNA_TRY(barrier(within.bootstrap(own, 1 - own)));
      return {};
    });
    LACUNA_TRY(barrier(world.bootstrap(rank, 1 - rank)));
    return {};
  });
  EXPECT_EQ(inner, 36);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
