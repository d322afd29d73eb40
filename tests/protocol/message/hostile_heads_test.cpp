// A peer whose heads, or rings, say what is not so: refused with an error, nothing written that no receive named, and
// other peers work on.
#include "tests/protocol/message/lies.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace lies;

// --- heads that no state makes right ---------------------------------------------------------------------------------

struct Lie {
  std::string name;
  bool shares = true;  ///< memory
  Head head;
  std::vector<std::byte> payload;
};
std::ostream& operator<<(std::ostream& out, const Lie& lie) { return out << lie.name; }

std::vector<Lie> lies() {
  std::vector<Lie> made;
  const auto both = [&](const std::string& name, const Head& what, std::size_t payload = 0) {
    made.push_back({name + "Shared", true, what, std::vector<std::byte>(payload)});
    made.push_back({name + "Queues", false, what, std::vector<std::byte>(payload)});
  };
  const auto sharing = [&](const std::string& name, const Head& what) { made.push_back({name, true, what, {}}); };
  sharing("KindZero", plain(HeadKind{}));
  both("KindFourteen", plain(static_cast<HeadKind>(14)));
  both("KindLast", plain(static_cast<HeadKind>(255)));
  both("AnswerToNothing", head(HeadKind::answer, Answer{1, 0, {}, AnswerKind::nothing}, 0, 77), 16);
  both("PartOfNothing", head(HeadKind::part, protocol::PartBody{1, {}, 0}, 0, 77), 16);
  both("ReadyForNothing", plain(HeadKind::ready, 0, 77), 16);
  both("DroppedNothing", plain(HeadKind::dropped, 0, 77));
  both("AccessOfNoLayout", head(HeadKind::access, protocol::Access{.offset = 0, .exposed = 1, .layout = 7, .gets = 0}, 100, 1));
  both("AccessOfNoBytes", head(HeadKind::access, protocol::Access{.offset = 0, .exposed = 1, .layout = 0, .gets = 1}, 0, 1));
  both("AccessedNothing", head(HeadKind::accessed, protocol::Accessed{.code = 0, .gets = 0}, 0, 77));
  both("AccessedNothingRefused", head(HeadKind::accessed, protocol::Accessed{.code = 1, .gets = 1}, 0, 77));
  both("EagerOfNoAccess", plain(HeadKind::eager, 8, 0, protocol::access_tag(3, false)));
  sharing("AnnounceOfNoAccess", head(HeadKind::announce, Announce{0, 0, 0}, 100'000, 1, protocol::access_tag(3, true)));
  both("EagerOfOtherBytes", plain(HeadKind::eager, 50), 100);
  both("EagerBeyondTheBody", plain(HeadKind::eager, protocol::kBody + 1));
  both("EagerHuge", plain(HeadKind::eager, ~0ull));
  both("EagerTagBelowZero", plain(HeadKind::eager, 8, 0, -1));
  both("AnnounceTagBelowZero", head(HeadKind::announce, Announce{0, 1, 0}, 100'000, 1, -1));
  both("AnnounceHuge", head(HeadKind::announce, Announce{0, 1, 0}, 1ull << 63, 1));
  both("AnnounceOfUnknownLayout", head(HeadKind::announce, Announce{3, 1, 0}, 100'000, 1));
  made.push_back({"AnnounceOfAStreamQueues", false, head(HeadKind::announce, Announce{0, 0, 0}, 100'000, 1), {}});
  made.push_back({"StreamQueues", false, head(HeadKind::stream, RingDescriptor{0, 0, 1, 4096, 0}, 100'000), {}});
  sharing("StreamFromNowhere", head(HeadKind::stream, RingDescriptor{0, 0, 1, 4096, 0}, 100'000));
  sharing("StreamToNoAnswer", head(HeadKind::stream, RingDescriptor{0, 0, 1, 4096, 5}, 100'000));
  for (const std::uint32_t layout : {0u, 257u, ~0u})
    both("LayoutNumber" + std::to_string(layout), head(HeadKind::layout, LayoutPart{layout, 0, 100, 0}), 100);
  both("LayoutFromTheMiddle", head(HeadKind::layout, LayoutPart{1, 0, 100, 50}), 50);
  both("LayoutOfNothing", head(HeadKind::layout, LayoutPart{1, 0, 0, 0}));
  both("LayoutOverlong", head(HeadKind::layout, LayoutPart{1, 0, 100, 0}), 101);
  both("LayoutHuge", head(HeadKind::layout, LayoutPart{1, 0, ~0ull, 0}), 100);
  both("LayoutOfZeros", head(HeadKind::layout, LayoutPart{1, 0, 100, 0}), 100);
  both("CreditForNothing", plain(HeadKind::credit, 1));
  both("CreditHuge", plain(HeadKind::credit, ~0ull));
  Lie long_payload{"PayloadBeyondAny", true, plain(HeadKind::eager, protocol::kMostPayload + 1), {}};
  long_payload.head.payload = protocol::kMostPayload + 1;
  made.push_back(long_payload);
  long_payload.name = "PayloadOfAllBits";
  long_payload.head.payload = ~0u;
  made.push_back(long_payload);
  return made;
}

class Lies : public testing::TestWithParam<Lie> {};
TEST_P(Lies, AreRefused) {
  Den den(GetParam().shares ? shared() : queues(), 0, 0);
  Guarded memory(bytes(200'000), 1);
  Request* receive = support::value(den.rank(0).irecv(memory.base(), memory.layout, 1, 9));
  Request* any = support::value(den.rank(0).irecv(memory.base(), memory.layout, protocol::kAnySource, 9));
  den.tap().say(GetParam().head, GetParam().payload);
  EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
  EXPECT_EQ(ended(den.rank(0), any), Code::malformed);
  const auto after = den.rank(0).isend(memory.base(), bytes(8), 1, 1);
  ASSERT_FALSE(after);
  EXPECT_EQ(after.error().code, Code::malformed);
  EXPECT_TRUE(memory.untouched());
}
INSTANTIATE_TEST_SUITE_P(Of, Lies, testing::ValuesIn(lies()), [](const auto& info) { return info.param.name; });

// A peer that says goodbye, and then nonsense: what it may be waited for by ends, though others are there.
TEST(Goodbye, IsNoneBeforeNonsense) {
  for (const bool shares : {true, false}) {
    Setting setting = shares ? shared() : queues();
    setting.ranks = 3;
    Den den(setting, 0, 0);
    Guarded memory(bytes(100), 1);
    Request* any = support::value(den.rank(0).irecv(memory.base(), memory.layout, protocol::kAnySource, 9));
    den.tap().say(plain(HeadKind::bye), {});
    den.tap().say(plain(static_cast<HeadKind>(255)), {});
    EXPECT_EQ(ended(den.rank(0), any), Code::malformed) << (shares ? "shared" : "queues");
  }
}

// --- streams ---------------------------------------------------------------------------------------------------------

// A ring that the test fills by hand, and a receive that waits for its message.
struct Ringed {
  Den den{shared(), 0, 0};
  nic::RegisteredBuffer buffer =
      support::value(nic::RegisteredBuffer::create(den.context(1), static_cast<std::int64_t>(sizeof(RingMemory) + StreamRings::kBytes)));
  RingMemory& memory = *reinterpret_cast<RingMemory*>(buffer.buffer.data());
  Guarded target{vector(1000, 100, 150), 1};
  Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
  RingDescriptor ring{reinterpret_cast<std::uint64_t>(&memory), 0, buffer.region.rkey(), 0, 0, StreamRings::kBytes / 4096, 128};

  Code say(std::uint64_t size = 100'000) {
    den.tap().say(head(HeadKind::stream, ring, size));
    return ended(den.rank(0), receive);
  }
};

TEST(HostileRing, ThatIsGoodIsTaken) {  // so that the others are refused for what is wrong with them
  Ringed at;
  at.memory.filled = 13;
  EXPECT_EQ(at.say(), kSuccess);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileRing, OutsideThePeersMemory) {
  for (const std::uint64_t by : {1ull << 40, 1ull << 63, ~0ull << 12}) {
    Ringed at;
    at.ring.addr += by;
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileRing, OverTheEndOfThePeersMemory) {
  Ringed at;
  at.ring.addr += 4096;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileRing, OfTheVictimsOwnMemory) {
  Ringed at;
  at.ring.addr = reinterpret_cast<std::uint64_t>(at.target.base()) / 4096 * 4096;
  EXPECT_EQ(at.say(), Code::malformed);
  EXPECT_TRUE(at.target.untouched());
}
TEST(HostileRing, Unaligned) {
  Ringed at;
  at.ring.addr -= 8;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileRing, OfAnotherKey) {
  Ringed at;
  at.ring.rkey = ~at.ring.rkey;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileRing, OfChunksThatAreNone) {
  for (const std::uint16_t lines : {0, 3, 65, 0x4000, 0xffff}) {
    Ringed at;
    at.ring.lines = lines;
    EXPECT_EQ(at.say(), Code::malformed) << lines;
  }
}
TEST(HostileRing, OfNoBytesOrMoreThanThereAre) {
  for (const std::uint16_t pages : {0U, 1U, 129U, 2 * StreamRings::kLongBytes / 4096, 0xffffU}) {
    Ringed at;
    at.ring.pages = pages;
    EXPECT_EQ(at.say(), Code::malformed) << pages;
  }
}
TEST(HostileRing, OfPlacesThatAreNone) {
  for (const std::uint32_t place : {1u, 4096u, StreamRings::kBytes, 1u << 31, ~0u}) {
    Ringed at;
    at.ring.at = place;
    EXPECT_EQ(at.say(), Code::malformed) << place;
  }
}
TEST(HostileRing, OfAnyChunksStaysInside) {
  for (const std::uint16_t lines : {1, 512, 0x2000}) {
    Ringed at;
    at.ring.lines = lines;
    at.ring.first = ~0ull - 3;  // it goes over the end of all numbers
    at.memory.filled = at.ring.first + StreamRings::kBytes / (lines * 64ull);
    const Code code = at.say();
    EXPECT_TRUE(code == kSuccess || code == kPending) << lines;
    EXPECT_TRUE(at.target.intact());
  }
}
TEST(HostileRing, OfBytesThatAreNone) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    Ringed at;
    EXPECT_EQ(at.say(size), Code::malformed) << size;
  }
}
TEST(HostileRing, FilledByMoreThanItHas) {
  for (const std::uint64_t filled : {65ull, 1ull << 40, ~0ull}) {
    Ringed at;
    at.memory.filled = filled;
    EXPECT_EQ(at.say(), Code::malformed) << filled;
  }
}
TEST(HostileRing, FilledBackwards) {
  Ringed at;
  at.memory.filled = 4;
  EXPECT_EQ(at.say(), kPending);
  at.memory.filled = 2;
  EXPECT_EQ(ended(at.den.rank(0), at.receive), Code::malformed);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileRing, MovedToOneThatIsNone) {
  for (const std::uint64_t by : {1ull << 40, 4096ull}) {
    Ringed at;
    at.memory.filled = 3;
    at.memory.moved = 3;
    at.memory.rest = at.ring;
    at.memory.rest.addr += by;
    EXPECT_EQ(at.say(), Code::malformed) << by;
    EXPECT_TRUE(at.target.intact());
  }
}
TEST(HostileRing, MovedInACircle) {
  Ringed at;
  at.memory.filled = 3;
  at.memory.moved = 3;
  at.memory.rest = at.ring;
  at.memory.rest.first = 2;
  EXPECT_EQ(at.say(), Code::malformed);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileRing, LongerThanTheReceive) {
  Ringed at;
  at.memory.filled = 16;
  EXPECT_EQ(at.say(131'072), Code::truncated);
  EXPECT_TRUE(at.target.intact());
}

// A get whose data is under way, and is refused all the same.
TEST(HostileAccess, RefusesWhatItSends) {
  Ringed at;
  std::vector<std::byte> memory(100'000);
  const Layout all = bytes(100'000);
  Request* get = support::value(at.den.rank(0).get(memory.data(), all, protocol::Exposed{1, 5, 1 << 20}, 0, all));
  at.den.tap().say(head(HeadKind::stream, at.ring, 100'000, 0, protocol::access_tag(1, true)));
  at.den.victim_moves();
  at.den.tap().say(head(HeadKind::accessed, protocol::Accessed{.code = 1, .gets = 1}, 0, 1));
  EXPECT_EQ(ended(at.den.rank(0), get), Code::malformed);
  EXPECT_EQ(ended(at.den.rank(0), at.receive), Code::malformed);
  EXPECT_TRUE(at.target.untouched());
}

// The victim's own ring, emptied of what never was in it.
TEST(HostileRing, EmptiedOfMoreThanWasFilled) {
  Den den(shared(), 0, 0);
  Guarded source(bytes(2'500'000), 1);  // more than a ring holds
  Request* send = support::value(den.rank(0).isend(source.base(), source.layout, 1, 1));
  ASSERT_TRUE(den.until([&] { return !den.tap().victims_rings().empty(); }));
  reinterpret_cast<RingMemory*>(den.tap().victims_rings().front().addr)->emptied = 1ull << 40;
  EXPECT_EQ(ended(den.rank(0), send), Code::malformed);
  EXPECT_TRUE(source.untouched());
}

// What streams to an answer, and is none: the receive that was answered ends too.
TEST(HostileRing, ToAnAnswer) {
  for (const bool other_bytes : {false, true}) {
    Den den(shared(), 0, 0);
    Guarded target(bytes(100'000), 1);
    Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
    den.tap().say(head(HeadKind::announce, Announce{0, 0, 0}, 100'000, 1));
    den.victim_moves();
    RingDescriptor ring{64, 0, 1, 0, 1, StreamRings::kBytes / 4096, 64};
    den.tap().say(head(HeadKind::stream, ring, other_bytes ? 100'001 : 100'000));
    EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
    EXPECT_TRUE(target.untouched());
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
