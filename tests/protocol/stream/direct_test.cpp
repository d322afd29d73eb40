// What a peer may write where direct copies are agreed on: the message comes all the same, or somebody says why not.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "tests/protocol/message/hostile_rig.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using layout::Layout;
using protocol::DirectCopy;
using protocol::DirectEnd;
using protocol::DirectState;
using protocol::Request;
using protocol::RingDescriptor;
using protocol::RingMemory;
using protocol::StreamRings;
using protocol::Ticket;

constexpr std::int64_t kBytes = 300'000;
constexpr std::uint32_t kAsTold = ~0U - 1;

Layout message() { return support::value(Layout::bytes(kBytes)); }

// A ring of the hostile rank's with the whole message in it, and an offer to copy it directly, that the victim accepts.
struct Offered {
  Den den{{}, 0, 0};
  nic::RegisteredBuffer buffer =
      support::value(nic::RegisteredBuffer::create(den.context(1), static_cast<std::int64_t>(sizeof(RingMemory) + StreamRings::kBytes)));
  RingMemory& memory = *reinterpret_cast<RingMemory*>(buffer.buffer.data());
  Guarded source{message(), 1};
  Guarded target{message(), 2};
  DirectEnd end{.addr = reinterpret_cast<std::uint64_t>(source.base()), .digest = message().digest(), .wire = kAsTold};

  std::vector<std::byte> wire;
  void tell(const Layout& layout) { wire = layout::encode(layout); }
  Request* accept() {
    std::memset(memory.data(), 0x5a, StreamRings::kBytes);
    std::ranges::copy(wire, memory.data());
    if (end.wire == kAsTold) end.wire = static_cast<std::uint32_t>(wire.size());
    memory.direct.offer(1, end);
    const RingDescriptor ring{reinterpret_cast<std::uint64_t>(&memory), 0, buffer.region.rkey(), 0, 0, StreamRings::kBytes / 4096, 256};
    Ticket ticket;
    std::memcpy(ticket.bytes.data(), &ring, sizeof ring);
    return support::value(den.rank(0).accept(target.base(), target.layout, 1, kBytes, ticket));
  }
  // What became of it: copied, or streamed.
  testing::AssertionResult received(const std::function<void()>& meanwhile = [] {}) {
    Request* receive = accept();
    meanwhile();
    std::memset(memory.data(), 0x5a, wire.size());  // it packs
    memory.filled = (kBytes + 256 * 64 - 1) / (256 * 64);
    den.victim_moves();
    const auto ended = den.rank(0).test(receive);
    if (!target.intact()) return testing::AssertionFailure() << "it wrote elsewhere";
    if (!ended) return testing::AssertionFailure() << "it is not over";
    if (!*ended) return testing::AssertionFailure() << ended->error().text();
    return testing::AssertionSuccess();
  }
  [[nodiscard]] bool copied() { return std::memcmp(target.base(), source.base(), kBytes) == 0; }
  [[nodiscard]] bool streamed() { return target.base()[0] == std::byte{0x5a} && target.base()[kBytes - 1] == std::byte{0x5a}; }
};

// An offer of the victim's, to be copied directly.
struct Sent {
  Den den{setting(), 0, 0};
  Guarded source{message(), 1};
  Ticket ticket;
  Request* offer = support::value(den.rank(0).offer(source.base(), source.layout, 1, protocol::Behind::no, ticket));

  static Setting setting() {
    Setting made;
    made.options.force.path = nic::Path::kernel;
    return made;
  }
  [[nodiscard]] RingMemory& memory() const {
    RingDescriptor ring;
    std::memcpy(&ring, ticket.bytes.data(), sizeof ring);
    return *reinterpret_cast<RingMemory*>(ring.addr);
  }
};

constexpr const char* kNotPossible = "this system lets no process copy out of another one's memory";
bool possible() { return support::value(nic::open("local"))->limits().path(nic::Path::kernel)->available; }

TEST(HostileDirect, ThatIsGoodIsCopied) {  // so that the others are refused for what is wrong with them
  if (!possible()) GTEST_SKIP() << kNotPossible;
  Offered at;
  at.tell(message());
  EXPECT_TRUE(at.received());
  EXPECT_TRUE(at.copied());
}
TEST(HostileDirect, OfALayoutThatWasNotTold) {
  for (const std::uint32_t number : {0U, 1U, 2U, 257U, ~0U}) {
    Offered at;
    at.end.wire = number;
    EXPECT_TRUE(at.received());
    EXPECT_TRUE(at.streamed()) << number;
    EXPECT_EQ(at.memory.direct.of(1), DirectState::refused);
  }
}
TEST(HostileDirect, OfAnotherLayoutThanTold) {
  Offered at;
  at.tell(support::value(Layout::bytes(kBytes + 1)));
  EXPECT_TRUE(at.received());
  EXPECT_TRUE(at.streamed());
  Offered size;
  size.tell(support::value(Layout::bytes(kBytes + 1)));
  size.end.digest = support::value(Layout::bytes(kBytes + 1)).digest();
  EXPECT_TRUE(size.received());
  EXPECT_TRUE(size.streamed());
}
TEST(HostileDirect, OfMemoryThatIsNotThere) {
  for (const std::uint64_t addr : {std::uint64_t{0}, std::uint64_t{4096}, ~std::uint64_t{0} - 100, std::uint64_t{1} << 63}) {
    Offered at;
    at.tell(message());
    at.end.addr = addr;
    EXPECT_TRUE(at.received());
    EXPECT_TRUE(at.streamed()) << addr;
  }
}
// What the sender cannot know: each of the receiver's runs would cost the kernel as much as some KiB.
TEST(HostileDirect, IntoShortRunsIsStreamed) {
  Offered at;
  at.target = Guarded(support::value(Layout::hvector(kBytes / 16, 1, 32, support::value(Layout::bytes(16)))), 2);
  at.tell(message());
  EXPECT_TRUE(at.received());
  EXPECT_EQ(at.memory.direct.of(1), DirectState::refused);
  EXPECT_EQ(at.target.base()[0], std::byte{0x5a});
}
// Pieces that the peer says it copies, and never does, are waited for as bytes are that never come.
TEST(HostileDirect, WhosePeerTakesPiecesAndCopiesNone) {
  for (const std::uint64_t counted : {std::uint64_t{1}, std::uint64_t{1000}, ~std::uint64_t{0}}) {
    Offered at;
    at.tell(message());
    const auto received = at.received([&] { at.memory.direct.begun = counted; });
    EXPECT_STREQ(received.message(), possible() ? "it is not over" : "");
    EXPECT_TRUE(at.target.intact());
  }
}
// A message is given up while its peer copies a piece: the memory is the caller's again once that piece has ended, and
// no other one begins.
bool ends_before_it_returns(RingMemory& memory, const std::function<void()>& give_up) {
  constexpr std::uint64_t kNoMore = kBytes / guide::usual::kDirectBytes;
  std::atomic<bool> given_up = false;
  bool in_time = false;
  std::jthread peer([&] {
    while (memory.direct.begun < kNoMore && !given_up) std::this_thread::yield();
    in_time = !given_up;
    ++memory.direct.ended;
  });
  give_up();
  given_up = true;
  peer.join();
  return in_time;
}
TEST(HostileDirect, ThatIsGivenUpLeavesTheReceiversMemoryAlone) {
  if (!possible()) GTEST_SKIP() << kNotPossible;
  Offered at;
  at.tell(message());
  Request* receive = at.accept();
  ASSERT_EQ(at.memory.direct.of(1), DirectState::taken);
  at.memory.direct.begun = 1;
  EXPECT_TRUE(ends_before_it_returns(at.memory, [&] { at.den.rank(0).give_up(receive); }));
}
TEST(HostileDirect, ThatIsGivenUpLeavesTheSendersMemoryAlone) {
  if (!possible()) GTEST_SKIP() << kNotPossible;
  Sent at;
  ASSERT_TRUE(at.memory().direct.settle(1, DirectState::taken));
  at.memory().direct.begun = 1;
  EXPECT_TRUE(ends_before_it_returns(at.memory(), [&] { at.den.rank(0).give_up(at.offer); }));
}
// Both ends give it up: neither waits for pieces that were not begun.
TEST(HostileDirect, ThatTheOtherEndHasGivenUpTooIsNotWaitedFor) {
  if (!possible()) GTEST_SKIP() << kNotPossible;
  Offered at;
  at.tell(message());
  Request* receive = at.accept();
  DirectCopy::stop(at.memory.direct);
  EXPECT_FALSE(DirectCopy::at_work(at.memory.direct, kBytes));
  at.den.victim_moves();
  EXPECT_FALSE(DirectCopy::at_work(at.memory.direct, kBytes));
  at.den.rank(0).give_up(receive);
  EXPECT_EQ(at.memory.direct.ended, 0);
}
TEST(HostileDirect, ThatIsGivenUpIsOfferedNoMore) {
  Sent at;
  at.den.rank(0).give_up(at.offer);
  EXPECT_FALSE(at.memory().direct.settle(1, DirectState::taken));
}
TEST(HostileDirect, ThatFailedIsStreamed) {
  Offered at;
  at.tell(message());
  EXPECT_TRUE(at.received([&] { at.memory.direct.failed = at.memory.direct.ended = 1000; }));
  EXPECT_TRUE(at.streamed());
}

// The victim sends; whoever should receive writes `said` where the copy is agreed on.
testing::AssertionResult sent(const std::function<void(RingMemory&)>& said) {
  Sent at;
  at.den.victim_moves();
  if (at.den.rank(0).test(at.offer)) return testing::AssertionFailure() << "the offer was not taken";
  said(at.memory());
  at.den.victim_moves();
  const bool over = at.den.rank(0).test(at.offer).has_value();
  if (!at.source.untouched()) return testing::AssertionFailure() << "the source was written";
  return over ? testing::AssertionSuccess() : testing::AssertionFailure() << "it is not over";
}

TEST(HostileDirect, ThatIsRefusedIsPacked) {
  for (const std::uint64_t state : {std::uint64_t{1} << 3 | 4, std::uint64_t{0}, ~std::uint64_t{0}})
    EXPECT_TRUE(sent([&](RingMemory& memory) { memory.direct.state = state; })) << state;
}
TEST(HostileDirect, TakenByNonsenseEndsOnceThatSaysSo) {
  if (!possible()) GTEST_SKIP() << kNotPossible;
  EXPECT_FALSE(sent([](RingMemory& memory) { memory.direct.settle(1, DirectState::taken); }));
  EXPECT_TRUE(sent([](RingMemory& memory) {
    memory.direct.receiver = {.addr = ~std::uint64_t{0}, .digest = {1, 2}, .wire = 77};
    memory.direct.settle(1, DirectState::taken);
    memory.direct.ended = ~std::uint64_t{0};
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
