// Memory for streams: within one bound for all peers, lent to those that are sent to, and given back.
#include "lacuna/protocol/stream/ring_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <random>
#include <set>
#include <thread>

#include "lacuna/protocol/stream/out_stream.hpp"
#include "lacuna/protocol/stream/stream_rings.hpp"
#include "tests/support/patience.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using protocol::LentRing;
using protocol::RingPool;
using protocol::StreamRing;
using protocol::StreamRings;
using protocol::Transit;

constexpr std::int64_t kBound = 4 << 20;

LACUNA_TIER(test, "RingPool.HasAThreadThatGivesIdlePagesBack");

struct Pool {
  explicit Pool(std::int64_t bound = kBound) : pool(*context, bound) {}
  std::unique_ptr<nic::Context> context = support::value(nic::open("local"));
  RingPool pool;
  StreamRings a, b, c;

  StreamRing* take(StreamRings& of, bool matched = true) { return support::value(of.take(pool, 1000, matched, Transit::wide)); }
  StreamRing* extra(StreamRings& of, std::int64_t bytes) { return support::value(of.take_extra(pool, bytes)); }
  static void done(StreamRing& ring) { ring.give_back(); }
  void idle_for_long() {
    for (const std::int64_t second : {1, 2, 3}) pool.tidy(1'100'000'000 * second);
  }
};

TEST(RingPool, LendsWithinItsBoundAndThenNothing) {
  Pool at;
  std::set<StreamRing*> rings;
  while (StreamRing* ring = at.extra(at.a, 100'000)) {
    EXPECT_GE(ring->bytes, 100'000u);
    EXPECT_TRUE(rings.insert(ring).second) << "lent twice";
  }
  EXPECT_GE(rings.size(), 25u);  // 128 KiB each
  EXPECT_LE(at.pool.count().bytes, kBound);
  EXPECT_EQ(at.extra(at.b, 1'000'000), nullptr);
  for (StreamRing* ring : rings) Pool::done(*ring);
  EXPECT_NE(at.extra(at.b, 1'000'000), nullptr);  // other rings went for it
  EXPECT_LE(at.pool.count().most, kBound);
}

TEST(RingPool, HoldsMemoryBackForMatchedMessages) {
  Pool at;
  while (at.take(at.a, false) != nullptr || at.take(at.b, false) != nullptr || at.take(at.c, false) != nullptr) {
  }
  while (support::value(at.pool.lend(at.a, at.pool.usual_ring(), nullptr, false, 1000)) != nullptr) {
  }
  EXPECT_NE(at.take(at.a, true), nullptr);
  EXPECT_NE(at.take(at.b, true), nullptr);
  EXPECT_EQ(support::value(at.pool.lend(at.c, at.pool.usual_ring(), nullptr, false, 1000)), nullptr);
}

TEST(RingPool, TakesOnlyEmptyRingsFromOtherPeers) {
  Pool at(RingPool::kLeastBytes);
  std::vector<StreamRing*> rings;
  while (StreamRing* ring = at.take(at.a)) rings.push_back(ring);
  ASSERT_GE(rings.size(), 2u);
  while (at.extra(at.c, at.pool.usual_ring()) != nullptr) {
  }
  EXPECT_EQ(at.take(at.b), nullptr);
  rings[0]->memory->filled = 1;  // what is in it was not read
  Pool::done(*rings[0]);
  EXPECT_EQ(at.take(at.b), nullptr);
  Pool::done(*rings[1]);
  EXPECT_EQ(at.take(at.b), rings[1]);
  EXPECT_FALSE(at.pool.empty(at.a));
  EXPECT_TRUE(at.pool.empty(at.b));
  rings[0]->memory->emptied = 1;
  EXPECT_EQ(at.take(at.a), rings[0]);  // the one that it has still
  EXPECT_EQ(at.take(at.a), nullptr);
}

// Once what was sent has paid for their pages.
TEST(RingPool, GivesAPeerItsOwnRingsInTurn) {
  Pool at(64 << 20);
  const auto rings_of = [&](int messages) {
    std::set<StreamRing*> rings;
    for (int i = 0; i < messages; ++i) {
      StreamRing* const ring = support::value((i % 2 == 0 ? at.b : at.a).take(at.pool, 300'000, true, Transit::wide));
      if (i % 2 == 1) rings.insert(ring);
      Pool::done(*ring);
    }
    return rings.size();
  };
  EXPECT_EQ(rings_of(8), 1u);
  rings_of(2000);
  EXPECT_EQ(rings_of(40), StreamRings::kKept - 1);
  EXPECT_LE(at.pool.resident(), std::int64_t{2 * (StreamRings::kKept - 1)} * StreamRings::kBytes);
}

// A message that waits needs pages for all of it, one whose receiver keeps pace those of a part, which become more.
TEST(RingPool, GivesPagesToWhatIsSent) {
  Pool at(64 << 20);
  constexpr std::int64_t kMessage = 256 << 10;
  const auto take = [&](StreamRings& of, bool keeps_pace) {
    StreamRing& ring = *support::value(of.take(at.pool, kMessage, true, Transit::wide, keeps_pace));
    EXPECT_LE(ring.ring_bytes(), static_cast<LentRing&>(ring).extent);
    Pool::done(ring);
    return ring.ring_bytes();
  };
  EXPECT_EQ(take(at.a, true), StreamRings::kStep);
  EXPECT_EQ(at.pool.resident(), StreamRings::kStep);
  EXPECT_EQ(take(at.b, false), kMessage);
  std::uint32_t part = 0;
  for (int i = 0; i < 20; ++i) {
    const std::uint32_t now = take(at.a, true);
    EXPECT_GE(now, std::min<std::uint32_t>(part, kMessage));
    EXPECT_LE(now, part + 2 * StreamRings::kStep);
    part = now;
  }
  EXPECT_GE(part, kMessage);
  EXPECT_LE(at.pool.resident(), 2 * std::int64_t{StreamRings::kBytes});
}

// Rings that a peer does without are the other peers' where memory is scarce.
TEST(RingPool, TakesNoFurtherRingsWhereMemoryIsScarce) {
  Pool at;
  while (at.extra(at.b, 100'000) != nullptr && at.pool.roomy()) {
  }
  for (int i = 0; i < 3000; ++i) Pool::done(*at.take(at.a));
  EXPECT_EQ(at.a.kept_rings, 1);
}

// Of messages of any lengths each goes round a part that has pages, of a whole number of its chunks, and with room for
// all of it if it waits.
TEST(RingPool, HasPagesAndWholeChunksForEachMessage) {
  Pool at(8 << 20);
  std::mt19937 random(5);
  protocol::Stores stores;
  std::vector<StreamRings> peers(12);
  for (int i = 0; i < 4000; ++i) {
    const std::int64_t bytes = std::int64_t{1} << (random() % 22) | static_cast<std::int64_t>(random() % 5000);
    const bool keeps_pace = random() % 2 == 0;
    const auto transit = static_cast<Transit>(random() % 2);
    StreamRing* const ring = support::value(peers.at(random() % peers.size()).take(at.pool, bytes, true, transit, keeps_pace));
    if (ring == nullptr) continue;
    const protocol::OutStream stream(*ring, stores, bytes);
    const protocol::RingDescriptor said = stream.describe(0);
    EXPECT_EQ(said.pages * protocol::kPage % (said.lines * protocol::kLine), 0u) << bytes;
    EXPECT_TRUE(std::has_single_bit(said.lines)) << bytes;
    EXPECT_LE(ring->part, static_cast<LentRing*>(ring)->extent) << bytes;
    if (!keeps_pace && transit == Transit::wide) {
      EXPECT_GE(ring->part, std::min<std::int64_t>(bytes, ring->bytes)) << bytes;
    }
    Pool::done(*ring);
  }
}

TEST(RingPool, HasShorterRingsAsItFills) {
  Pool at(16 << 20);
  EXPECT_EQ(at.pool.usual_ring(), StreamRings::kBytes);
  EXPECT_EQ(at.pool.long_ring(), StreamRings::kLongBytes);
  std::vector<StreamRings> peers(127);
  int with_ring = 0;
  std::uint32_t last = StreamRings::kBytes;
  for (StreamRings& peer : peers) {
    StreamRing* const ring = at.take(peer);
    if (ring == nullptr) continue;
    ++with_ring;
    EXPECT_LE(ring->bytes, last) << with_ring;
    last = ring->bytes;
  }
  EXPECT_GE(with_ring, 100);
  EXPECT_LT(last, 64u << 10);
  EXPECT_LE(at.pool.count().bytes, 16 << 20);
}

// A ring from when there was little memory does not stay when there is much.
TEST(RingPool, GivesLongerRingsWhenThereIsRoomAgain) {
  Pool at(16 << 20);
  std::vector<StreamRing*> others;
  while (StreamRing* const ring = at.extra(at.b, 1'000'000)) others.push_back(ring);
  Pool::done(*others.back());
  others.pop_back();
  StreamRing* const shorter = at.take(at.a);
  ASSERT_NE(shorter, nullptr);
  EXPECT_LT(shorter->bytes, StreamRings::kBytes);
  Pool::done(*shorter);
  for (StreamRing* ring : others) Pool::done(*ring);
  at.idle_for_long();
  StreamRing* const longer = support::value(at.a.take(at.pool, 400'000, true, Transit::wide));
  ASSERT_NE(longer, nullptr);
  EXPECT_GE(longer->bytes, 256u << 10);
}

TEST(RingPool, GivesIdleMemoryBack) {
  Pool at(64 << 20);
  for (int i = 0; i < 8; ++i) Pool::done(*at.extra(at.a, 4'000'000 << (i % 2)));
  const std::int64_t before = at.pool.count().bytes;
  StreamRing* const used = at.extra(at.b, 100'000);
  at.idle_for_long();
  EXPECT_LT(at.pool.count().bytes, before);
  EXPECT_LE(at.pool.count().bytes, 6 << 20);
  EXPECT_TRUE(used->taken());
  used->memory->filled = 5;  // it is there still
  EXPECT_EQ(used->memory->filled, 5u);
}

// A message of 256 KiB waits for each of 63 peers: what they keep is not much longer than what waits.
TEST(RingPool, KeepsLittleMoreThanWaitsForManyPeers) {
  constexpr std::int64_t kMessage = 256 << 10;
  Pool at(32 << 20);
  std::vector<StreamRings> peers(63);
  for (int round = 0; round < 3; ++round) {
    std::vector<StreamRing*> taken;
    for (StreamRings& peer : peers) {
      taken.push_back(support::value(peer.take(at.pool, kMessage, true, Transit::wide)));
      ASSERT_NE(taken.back(), nullptr) << round;
      EXPECT_GE(taken.back()->bytes, kMessage);
    }
    for (StreamRing* ring : taken) Pool::done(*ring);
  }
  EXPECT_LE(at.pool.count().most, 20 << 20);
}

// Two looks at idle memory, as the thread has them, between which no ring was used.
TEST(RingPool, GivesIdlePagesBackWithoutACall) {
  Pool at(64 << 20);
  StreamRing* const used = at.extra(at.a, 1'000'000);
  std::vector<StreamRing*> idle;
  for (int i = 0; i < 12; ++i) idle.push_back(at.extra(at.b, 1'000'000));
  for (StreamRing* ring : idle) *ring->memory->data() = std::byte{7};
  *used->memory->data() = std::byte{7};
  for (StreamRing* ring : idle) {
    ring->memory->filled = ring->memory->emptied = 3;
    Pool::done(*ring);
  }
  idle.front()->memory->filled = 4;  // its receiver has not read it
  EXPECT_TRUE(at.pool.look_at_idle());
  EXPECT_EQ(at.pool.resident(), std::int64_t{13} << 20);
  EXPECT_FALSE(at.pool.look_at_idle());
  EXPECT_LE(at.pool.resident(), 4 << 20);
  EXPECT_EQ(*used->memory->data(), std::byte{7});
  EXPECT_EQ(*idle.front()->memory->data(), std::byte{7});
  EXPECT_EQ(*idle.at(1)->memory->data(), std::byte{0});
  EXPECT_EQ(idle.at(1)->memory->filled, 3u);
  std::set<StreamRing*> again;
  while (at.pool.resident() < std::int64_t{13} << 20) ASSERT_TRUE(again.insert(at.extra(at.b, 1'000'000)).second);
}

TEST(RingPool, HasAThreadThatGivesIdlePagesBack) {
  auto context = support::value(nic::open("local"));
  RingPool pool(*context, 64 << 20, true);
  StreamRings peer;
  for (int round = 0; round < 2; ++round) {  // the thread ends, and comes again
    std::vector<StreamRing*> rings;
    for (int i = 0; i < 8; ++i) rings.push_back(support::value(peer.take_extra(pool, 1'000'000)));
    EXPECT_GT(pool.resident(), 4 << 20);
    for (StreamRing* ring : rings) ring->give_back();
    EXPECT_EQ(await("idle memory that goes back", [&] { return pool.resident() <= 4 << 20; }), "");
  }
}

// A ring is a message's or the thread's, never both's.
TEST(RingPool, LooksAtIdleMemoryBesideMessages) {
  Pool at(16 << 20);
  std::atomic<bool> over = false;
  std::thread thread([&] {
    while (!over) at.pool.look_at_idle();
  });
  std::vector<StreamRings> peers(8);
  for (int round = 0; round < 300; ++round) {
    for (StreamRings& peer : peers) {
      StreamRing* const ring = support::value(peer.take(at.pool, 700'000, true, Transit::wide));
      if (ring == nullptr) continue;
      std::byte* const last = ring->memory->data() + ring->bytes - 1;
      *last = static_cast<std::byte>(round);
      sched_yield();
      EXPECT_EQ(*last, static_cast<std::byte>(round));
      Pool::done(*ring);
    }
  }
  over = true;
  thread.join();
}

TEST(RingPool, KeepsMemoryThatAPeerMayReach) {
  auto context = support::value(nic::open("local"));
  nic::SharedBuffer kept;
  {
    RingPool pool(*context, kBound);
    StreamRings peer, other;
    StreamRing* const ring = support::value(peer.take(pool, 1000, true, Transit::wide));
    ASSERT_NE(ring, nullptr);
    EXPECT_TRUE(pool.memory(other).empty());
    ASSERT_EQ(pool.memory(peer).size(), 1u);
    kept = pool.memory(peer).front();
    EXPECT_EQ(static_cast<void*>(kept->buffer.data()), static_cast<void*>(ring->memory));
    ring->memory->filled = 7;
  }
  EXPECT_EQ(reinterpret_cast<protocol::RingMemory*>(kept->buffer.data())->filled, 7u);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
