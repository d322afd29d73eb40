// The channel through shared memory: what it carries, and what a peer can do who writes anything anywhere in what he is
// given to write.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "tests/protocol/channel/rings.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Ring.*");

using base::Code;
using protocol::Channel;
using protocol::Head;
using protocol::HeadKind;

TEST(Ring, CarriesEverythingInOrder) {
  Rings rings;
  support::Random random(1);
  std::deque<std::size_t> under_way[2];  // payloads, by sender
  std::uint64_t sent[2] = {}, taken[2] = {};
  for (int i = 0; i < 200'000; ++i) {
    const int at = static_cast<int>(random.below(2));
    if (random.one_in(2)) {
      const std::size_t bytes = random.one_in(3) ? 0 : static_cast<std::size_t>(random.scaled(random.one_in(4) ? 16'384 : 200));
      if (rings.send(at, sent[at], bytes)) {
        ++sent[at];
        under_way[at].push_back(bytes);
      }
      continue;
    }
    Channel::Arrival arrival;
    auto& coming = under_way[1 - at];
    const bool came = support::value(rings.end[at]->next(arrival));
    ASSERT_EQ(came, !coming.empty());
    if (!came) continue;
    ASSERT_EQ(arrival.head.bytes, taken[at]);
    ASSERT_EQ(arrival.head.payload, coming.front());
    for (std::size_t k = 0; k < coming.front(); ++k) ASSERT_EQ(arrival.payload[k], static_cast<std::byte>(taken[at] * 31 + k));
    rings.end[at]->pop();
    coming.pop_front();
    ++taken[at];
  }
  EXPECT_GT(sent[0] + sent[1], 50'000U);
}

// What was said long ago is less than what is known since, not more than was sent.
TEST(Ring, OldWordsAreNoLies) {
  Rings rings;
  Channel::Arrival arrival;
  ASSERT_TRUE(rings.send(0, 0, 0));
  ASSERT_TRUE(support::value(rings.end[1]->next(arrival)));
  rings.end[1]->pop();
  ASSERT_TRUE(rings.send(1, 0, 0));  // says that one was taken
  for (std::uint64_t i = 1; i < 70'000; ++i) {
    ASSERT_TRUE(rings.send(0, i, i % 300));
    ASSERT_TRUE(support::value(rings.end[1]->next(arrival)));
    ASSERT_EQ(arrival.head.bytes, i);
    rings.end[1]->pop();
  }
  EXPECT_TRUE(support::value(rings.end[0]->next(arrival)));
}

// Heads are 64 bytes, the first of them behind the line of what was read: 128 bytes.
TEST(Ring, WhatWasNotSentCannotHaveBeenRead) {
  for (const std::uint64_t said : {std::uint64_t{2}, std::uint64_t{1} << 40, ~std::uint64_t{0}}) {
    Rings rings;
    ASSERT_TRUE(rings.send(0, 0, 100));
    std::memcpy(rings.bootstrap[0]->inbox(), &said, sizeof said);
    for (int i = 0; i < 400 && rings.end[0]->fault() == nullptr; ++i) rings.send(0, 1, 200);
    ASSERT_NE(rings.end[0]->fault(), nullptr) << said;
    EXPECT_EQ(rings.end[0]->fault()->code, Code::malformed);
  }
  Rings rings;
  ASSERT_TRUE(rings.send(1, 0, 100));
  const std::uint16_t credits = 77;
  std::memcpy(rings.bootstrap[0]->inbox() + 64 + offsetof(Head, credits), &credits, sizeof credits);
  Channel::Arrival arrival;
  const auto came = rings.end[0]->next(arrival);
  ASSERT_FALSE(came);
  EXPECT_EQ(came.error().code, Code::malformed);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
