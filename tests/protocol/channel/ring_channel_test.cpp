// The channel through shared memory: what it carries, and what a peer can do who writes anything anywhere in what he is
// given to write.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <thread>

#include "lacuna/protocol/channel/channel.hpp"
#include "tests/support/fuzz.hpp"
#include "tests/support/random.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "Ring.*");

using base::Code;
using protocol::Channel;
using protocol::Head;
using protocol::HeadKind;

// Remembers what was said last: where the inbox is.
class Listening final : public nic::Bootstrap {
 public:
  explicit Listening(base::Fd socket) : socket_(std::move(socket)) {}
  base::Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override {
    said_ = mine.bytes;
    return socket_.exchange(mine, timeout_ns);
  }
  [[nodiscard]] std::byte* inbox() const {
    std::uint64_t address = 0;
    std::memcpy(&address, said_.data(), sizeof address);
    return reinterpret_cast<std::byte*>(address);
  }

 private:
  nic::UnixBootstrap socket_;
  std::vector<std::byte> said_;
};

// Both ends in one process.
struct Rings {
  std::unique_ptr<nic::Context> context[2];
  std::unique_ptr<Listening> bootstrap[2];
  std::unique_ptr<Channel> end[2];

  Rings() {
    auto sockets = support::value(nic::UnixBootstrap::socket_pair());
    bootstrap[0] = std::make_unique<Listening>(std::move(sockets.first));
    bootstrap[1] = std::make_unique<Listening>(std::move(sockets.second));
    for (auto& one : context) one = support::value(nic::open("local"));
    std::thread other([&] { end[1] = support::value(protocol::make_ring_channel(*context[1], *bootstrap[1])); });
    end[0] = support::value(protocol::make_ring_channel(*context[0], *bootstrap[0]));
    other.join();
  }
  bool send(int from, std::uint64_t number, std::size_t bytes) {
    std::byte* to = end[from]->claim(bytes);
    if (to == nullptr) return false;
    for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<std::byte>(number * 31 + i);
    Head head;
    head.kind = HeadKind::eager;
    head.bytes = number;
    head.payload = static_cast<std::uint32_t>(bytes);
    end[from]->commit(head);
    return true;
  }
};

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

// The same ones each time, unless seconds are asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 5;
#else
constexpr int kRounds = 20;
#endif

// Bytes of the inbox become anything while both ends go on. Whatever arrives lies in the inbox, and an error is one of
// those there are.
TEST(Ring, FuzzOfItsMemory) {
  constexpr std::size_t kInbox = 64 + 256 * 64 + (256 << 10);
  const auto round = [](std::uint64_t seed) {
    support::Random random(seed);
    Rings rings;
    std::byte* inbox = rings.bootstrap[0]->inbox();
    std::uint64_t sum = 0;
    for (int i = 0; i < 2000; ++i) {
      const int at = static_cast<int>(random.below(2));
      rings.send(at, 1, random.one_in(2) ? 0 : static_cast<std::size_t>(random.scaled(16'384)));
      if (random.one_in(3)) {
        const std::size_t where = random.one_in(4) ? random.next() % 16 : random.next() % (64 + 16 * 64);
        inbox[where] = static_cast<std::byte>(random.next());
      }
      Channel::Arrival arrival;
      const auto came = rings.end[0]->next(arrival);
      if (!came) {
        ASSERT_EQ(came.error().code, Code::malformed);
        break;
      }
      if (!*came) continue;
      if (arrival.head.payload > 0) {
        ASSERT_TRUE(arrival.payload >= inbox && arrival.payload + arrival.head.payload <= inbox + kInbox);
        for (std::uint32_t k = 0; k < arrival.head.payload; ++k) sum += static_cast<std::uint64_t>(arrival.payload[k]);
      }
      rings.end[0]->pop();
    }
    EXPECT_LT(sum, ~std::uint64_t{0});
  };
  support::fuzz(kRounds, round, 1.0 / 20);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
