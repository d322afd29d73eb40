// The checks of hand-overs find what is wrong, and their layouts say what their addresses do.
#include <gtest/gtest.h>

#include "tests/support/random_layout.hpp"
#include "tests/support/walk.hpp"
#include "tools/handover/cache.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

using namespace handover;
using support::Random;
using support::value;

Cache random_cache(Random& random) {
  const Contents what{.layers = random.between(1, 3),
                      .kv = random.between(1, 2),
                      .tokens = random.between(1, 60),
                      .heads = random.between(1, 5),
                      .head_bytes = random.between(1, 40)};
  const Order order = random.one_in(2) ? Order::tokens_first : Order::heads_first;
  const Kv kv = random.one_in(3) ? Kv::pools : random.one_in(2) ? Kv::pages : Kv::tokens;
  const Cache cache = paged_cache(what, random.between(1, 9), order, kv, random.between(1, 3), random.next());
  if (random.one_in(2)) return cache;
  const std::int64_t from = random.below(what.heads);
  return heads_of(cache, from, random.between(1, what.heads - from));
}

TEST(Cache, LayoutNamesTheAddressesInOrder) {
  Random random(1);
  for (int i = 0; i < 500; ++i) {
    const Cache cache = random_cache(random);
    const Contents& what = cache.what;
    std::vector<layout::Run> expected;
    for (std::int64_t layer = 0; layer < what.layers; ++layer)
      for (std::int64_t kv = 0; kv < what.kv; ++kv)
        for (std::int64_t token = 0; token < what.tokens; ++token)
          for (std::int64_t head = 0; head < what.heads; ++head) {
            const std::int64_t at = cache.address(layer, kv, token, head);
            ASSERT_GE(at, 0);
            ASSERT_LE(at + what.head_bytes, cache.memory_bytes);
            if (!expected.empty() && expected.back().offset + expected.back().length == at) {
              expected.back().length += what.head_bytes;
            } else {
              expected.push_back({at, what.head_bytes});
            }
          }
    const layout::Layout made = value(cache.layout());
    ASSERT_EQ(support::runs_of(made), expected) << made.describe();
    ASSERT_FALSE(value(made.overlaps()));
  }
}

TEST(Cache, CheckFindsEveryWrongByte) {
  Random random(2);
  int gaps = 0;
  int vectors = 0;
  for (int i = 0; i < 300; ++i) {
    const Cache cache = random_cache(random);
    const Placed placed{&cache, random.between(0, 100)};
    std::vector<std::byte> memory(static_cast<std::size_t>(cache.memory_bytes));
    fill_gaps(memory);
    ASSERT_NE(check({&placed, 1}, memory), "") << "nothing arrived";
    fill(cache, memory, placed.first_head);
    ASSERT_EQ(check({&placed, 1}, memory), "");
    const std::int64_t at = random.below(cache.memory_bytes);
    memory[static_cast<std::size_t>(at)] ^= std::byte{1} << random.below(8);
    const std::string wrong = check({&placed, 1}, memory);
    ASSERT_TRUE(wrong.starts_with("byte " + std::to_string(at) + " ")) << wrong;
    (wrong.find("gap") != std::string::npos ? gaps : vectors) += 1;
    memory[static_cast<std::size_t>(at)] ^= std::byte{0xff};
    ASSERT_NE(check({&placed, 1}, memory), "");
  }
  EXPECT_GT(gaps, 30);
  EXPECT_GT(vectors, 30);
}

// Right bytes in a wrong place: two tokens, two heads, K and V, or two layers changed for one another.
TEST(Cache, CheckFindsWhatIsMixedUp) {
  const Contents what{.layers = 2, .kv = 2, .tokens = 20, .heads = 3, .head_bytes = 16};
  const Cache cache = paged_cache(what, 4, Order::heads_first, Kv::pages, 2, 5);
  const Placed placed{&cache, 0};
  struct Place {
    std::int64_t layer, kv, token, head;
  };
  for (const Place& other : {Place{0, 0, 1, 0}, Place{0, 0, 0, 1}, Place{0, 1, 0, 0}, Place{1, 0, 0, 0}}) {
    std::vector<std::byte> memory(static_cast<std::size_t>(cache.memory_bytes));
    fill_gaps(memory);
    fill(cache, memory, 0);
    std::byte* one = memory.data() + cache.address(0, 0, 0, 0);
    std::swap_ranges(one, one + what.head_bytes, memory.data() + cache.address(other.layer, other.kv, other.token, other.head));
    EXPECT_NE(check({&placed, 1}, memory), "");
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
