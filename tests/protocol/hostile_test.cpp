// A peer that says what is not so: refused with an error, nothing written that no receive named, and other peers work on.
#include "lacuna/protocol/channel/head.hpp"
#include "tests/protocol/hostile_rig.hpp"
#include "tests/support/fuzz.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "ManyLayouts.*");

using base::Code;
using layout::Layout;
using protocol::Announce;
using protocol::Answer;
using protocol::AnswerKind;
using protocol::Communicator;
using protocol::Head;
using protocol::HeadKind;
using protocol::LayoutPart;
using protocol::Request;
using protocol::RingDescriptor;
using protocol::RingMemory;
using protocol::StreamRings;
using support::Random;

Layout bytes(std::int64_t n) { return support::value(Layout::bytes(n)); }
Layout vector(std::int64_t count, std::int64_t length, std::int64_t stride) {
  return support::value(Layout::vector(count, length, stride, bytes(1)));
}

Setting shared() { return {}; }
Setting queues() {
  Setting made;
  made.nic.forbidden_paths = {nic::Path::mapped};
  return made;
}
Setting forced(const char* method) {
  Setting made;
  made.options.force.method = support::value(method::find(method));
  return made;
}

template <class Body>
Head head(HeadKind kind, const Body& body, std::uint64_t size = 0, std::uint32_t number = 0, std::int32_t tag = 1) {
  Head made;
  made.kind = kind;
  made.tag = tag;
  made.number = number;
  made.bytes = size;
  protocol::put_body(made, body);
  return made;
}
Head plain(HeadKind kind, std::uint64_t size = 0, std::uint32_t number = 0, std::int32_t tag = 1) {
  return head(kind, std::uint8_t{0}, size, number, tag);
}

// What became of it, as a code; io where it did not end, unsupported where it succeeded.
constexpr Code kPending = Code::io;
constexpr Code kSuccess = Code::unsupported;
Code ended(Communicator& ranks, Request* request, int turns = 300) {
  for (int i = 0; i < turns; ++i) {
    const auto result = ranks.test(request);
    if (result) return *result ? kSuccess : result->error().code;
  }
  return kPending;
}

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
  both("KindThirteen", plain(static_cast<HeadKind>(13)));
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

// --- streams ---------------------------------------------------------------------------------------------------------

// A window that the test fills by hand, and a receive that waits for its message.
struct Windowed {
  Den den{shared(), 0, 0};
  nic::RegisteredBuffer buffer =
      support::value(nic::RegisteredBuffer::create(den.context(1), static_cast<std::int64_t>(sizeof(RingMemory) + StreamRings::kBytes)));
  RingMemory& memory = *reinterpret_cast<RingMemory*>(buffer.buffer.data());
  Guarded target{vector(1000, 100, 150), 1};
  Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
  RingDescriptor window{reinterpret_cast<std::uint64_t>(&memory), 0, buffer.region.rkey(), 0, 0, StreamRings::kBytes / 4096, 128};

  Code say(std::uint64_t size = 100'000) {
    den.tap().say(head(HeadKind::stream, window, size));
    return ended(den.rank(0), receive);
  }
};

TEST(HostileWindow, ThatIsGoodIsTaken) {  // so that the others are refused for what is wrong with them
  Windowed at;
  at.memory.filled = 13;
  EXPECT_EQ(at.say(), kSuccess);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileWindow, OutsideThePeersMemory) {
  for (const std::uint64_t by : {1ull << 40, 1ull << 63, ~0ull << 12}) {
    Windowed at;
    at.window.addr += by;
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileWindow, OverTheEndOfThePeersMemory) {
  Windowed at;
  at.window.addr += 4096;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileWindow, OfTheVictimsOwnMemory) {
  Windowed at;
  at.window.addr = reinterpret_cast<std::uint64_t>(at.target.base()) / 4096 * 4096;
  EXPECT_EQ(at.say(), Code::malformed);
  EXPECT_TRUE(at.target.untouched());
}
TEST(HostileWindow, Unaligned) {
  Windowed at;
  at.window.addr -= 8;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileWindow, OfAnotherKey) {
  Windowed at;
  at.window.rkey = ~at.window.rkey;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileWindow, OfChunksThatAreNone) {
  for (const std::uint16_t lines : {0, 3, 65, 0x4000, 0xffff}) {
    Windowed at;
    at.window.lines = lines;
    EXPECT_EQ(at.say(), Code::malformed) << lines;
  }
}
TEST(HostileWindow, OfNoBytesOrMoreThanThereAre) {
  for (const std::uint16_t pages : {0U, 1U, 129U, 2 * StreamRings::kLongBytes / 4096, 0xffffU}) {
    Windowed at;
    at.window.pages = pages;
    EXPECT_EQ(at.say(), Code::malformed) << pages;
  }
}
TEST(HostileWindow, OfPlacesThatAreNone) {
  for (const std::uint32_t place : {1u, 4096u, StreamRings::kBytes, 1u << 31, ~0u}) {
    Windowed at;
    at.window.at = place;
    EXPECT_EQ(at.say(), Code::malformed) << place;
  }
}
TEST(HostileWindow, OfAnyChunksStaysInside) {
  for (const std::uint16_t lines : {1, 512, 0x2000}) {
    Windowed at;
    at.window.lines = lines;
    at.window.first = ~0ull - 3;  // it goes over the end of all numbers
    at.memory.filled = at.window.first + StreamRings::kBytes / (lines * 64ull);
    const Code code = at.say();
    EXPECT_TRUE(code == kSuccess || code == kPending) << lines;
    EXPECT_TRUE(at.target.intact());
  }
}
TEST(HostileWindow, OfBytesThatAreNone) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{1} << 63, ~std::uint64_t{0}}) {
    Windowed at;
    EXPECT_EQ(at.say(size), Code::malformed) << size;
  }
}
TEST(HostileWindow, FilledByMoreThanItHas) {
  for (const std::uint64_t filled : {65ull, 1ull << 40, ~0ull}) {
    Windowed at;
    at.memory.filled = filled;
    EXPECT_EQ(at.say(), Code::malformed) << filled;
  }
}
TEST(HostileWindow, FilledBackwards) {
  Windowed at;
  at.memory.filled = 4;
  EXPECT_EQ(at.say(), kPending);
  at.memory.filled = 2;
  EXPECT_EQ(ended(at.den.rank(0), at.receive), Code::malformed);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileWindow, MovedToOneThatIsNone) {
  for (const std::uint64_t by : {1ull << 40, 4096ull}) {
    Windowed at;
    at.memory.filled = 3;
    at.memory.moved = 3;
    at.memory.rest = at.window;
    at.memory.rest.addr += by;
    EXPECT_EQ(at.say(), Code::malformed) << by;
    EXPECT_TRUE(at.target.intact());
  }
}
TEST(HostileWindow, MovedInACircle) {
  Windowed at;
  at.memory.filled = 3;
  at.memory.moved = 3;
  at.memory.rest = at.window;
  at.memory.rest.first = 2;
  EXPECT_EQ(at.say(), Code::malformed);
  EXPECT_TRUE(at.target.intact());
}
TEST(HostileWindow, LongerThanTheReceive) {
  Windowed at;
  at.memory.filled = 16;
  EXPECT_EQ(at.say(131'072), Code::truncated);
  EXPECT_TRUE(at.target.intact());
}

// A get whose data is under way, and is refused all the same.
TEST(HostileAccess, RefusesWhatItSends) {
  Windowed at;
  std::vector<std::byte> memory(100'000);
  const Layout all = bytes(100'000);
  Request* get = support::value(at.den.rank(0).get(memory.data(), all, protocol::Exposed{1, 5, 1 << 20}, 0, all));
  at.den.tap().say(head(HeadKind::stream, at.window, 100'000, 0, protocol::access_tag(1, true)));
  at.den.victim_moves();
  at.den.tap().say(head(HeadKind::accessed, protocol::Accessed{.code = 1, .gets = 1}, 0, 1));
  EXPECT_EQ(ended(at.den.rank(0), get), Code::malformed);
  EXPECT_EQ(ended(at.den.rank(0), at.receive), Code::malformed);
  EXPECT_TRUE(at.target.untouched());
}

// The victim's own window, emptied of what never was in it.
TEST(HostileWindow, EmptiedOfMoreThanWasFilled) {
  Den den(shared(), 0, 0);
  Guarded source(bytes(2'500'000), 1);  // more than a window holds
  Request* send = support::value(den.rank(0).isend(source.base(), source.layout, 1, 1));
  ASSERT_TRUE(den.until([&] { return !den.tap().victims_windows().empty(); }));
  reinterpret_cast<RingMemory*>(den.tap().victims_windows().front().addr)->emptied = 1ull << 40;
  EXPECT_EQ(ended(den.rank(0), send), Code::malformed);
  EXPECT_TRUE(source.untouched());
}

// What streams to an answer, and is none: the receive that was answered ends too.
TEST(HostileWindow, ToAnAnswer) {
  for (const bool other_bytes : {false, true}) {
    Den den(shared(), 0, 0);
    Guarded target(bytes(100'000), 1);
    Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
    den.tap().say(head(HeadKind::announce, Announce{0, 0, 0}, 100'000, 1));
    den.victim_moves();
    RingDescriptor window{64, 0, 1, 0, 1, StreamRings::kBytes / 4096, 64};
    den.tap().say(head(HeadKind::stream, window, other_bytes ? 100'001 : 100'000));
    EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
    EXPECT_TRUE(target.untouched());
  }
}

// --- answers ---------------------------------------------------------------------------------------------------------

// A send of the victim's that is announced, and answered by the test.
struct Announced {
  Den den;
  Guarded source{vector(1000, 100, 150), 1};
  Request* send = support::value(den.rank(0).isend(source.base(), source.layout, 1, 1));
  Answer answer{1, 0, {}, AnswerKind::method, 100'000, {0, 0}};

  explicit Announced(const Setting& setting = queues()) : den(setting, 0, 0) {
    set({support::value(method::find("pack")), nic::Path::slots, {}});
    for (int i = 0; i < 20; ++i) den.victim_moves(1);
  }
  void set(const guide::Way& way) {
    const auto wire = way.encode();
    std::memcpy(answer.way, wire.data(), sizeof answer.way);
  }
  Code say(std::span<const std::byte> target) {
    den.tap().say(head(HeadKind::answer, answer, 0, 1), target);
    const Code code = ended(den.rank(0), send);
    EXPECT_TRUE(source.untouched());
    return code;
  }
  Code say() { return say(method::Target{}.encode()); }
};

TEST(HostileAnswer, OfWaysThatAreNone) {
  for (const std::array<std::uint8_t, 3> way : {std::array<std::uint8_t, 3>{255, 0, 0}, {0, 255, 0}, {0, 0, 255}}) {
    Announced at;
    std::ranges::copy(way, at.answer.way);
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileAnswer, OverAPathThatIsNotThere) {
  for (const nic::Path path : {nic::Path::mapped, nic::Path::wire}) {
    Announced at;
    at.set({support::value(method::find("pack")), path, {}});
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileAnswer, OfEveryWayWithATargetOfNothing) {
  for (const Setting& setting : {queues(), forced("pack")}) {
    for (const method::Method& method : method::methods()) {
      for (const nic::Path path : {nic::Path::mapped, nic::Path::slots, nic::Path::kernel}) {
        for (const method::Notify notify : method.notifies) {
          Announced at(setting);
          at.set({&method, path, notify});
          const Code code = at.say();
          EXPECT_TRUE(code == Code::malformed || code == Code::transfer || code == Code::peer_lost || code == kPending || code == kSuccess)
              << method.name << " " << nic::path_name(path) << " " << method::notify_name(notify) << ": " << static_cast<int>(code);
        }
      }
    }
  }
}
TEST(HostileAnswer, OfEveryWayWithATargetOfNonsense) {
  Random random(3);
  for (const method::Method& method : method::methods()) {
    for (const nic::Path path : {nic::Path::mapped, nic::Path::slots, nic::Path::kernel}) {
      Announced at(forced("pack"));
      at.set({&method, path, method.notifies.front()});
      std::vector<std::byte> target(16 * 64);
      for (std::byte& byte : target) byte = static_cast<std::byte>(random.next());
      target.resize(target.size() / sizeof(method::Target::Part) * sizeof(method::Target::Part));
      const Code code = at.say(target);
      EXPECT_TRUE(code == Code::malformed || code == Code::transfer || code == Code::peer_lost || code == kPending || code == kSuccess)
          << method.name << " " << nic::path_name(path) << ": " << static_cast<int>(code);
    }
  }
}
TEST(HostileAnswer, WithAMalformedTarget) {
  for (const std::size_t size : {1u, 15u, 17u}) {
    Announced at;
    EXPECT_EQ(at.say(std::vector<std::byte>(size)), Code::malformed);
  }
}
TEST(HostileAnswer, OfAStreamWhereThereIsNone) {
  Announced at;
  at.answer.how = AnswerKind::stream;
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileAnswer, OfNothing) {
  for (const AnswerKind how : {AnswerKind::nothing, static_cast<AnswerKind>(3), static_cast<AnswerKind>(255)}) {
    Announced at;
    at.answer.how = how;
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileAnswer, WithALayoutOfAnotherSizeOrNone) {
  for (const bool told : {false, true}) {
    Announced at;
    const auto wire = layout::encode(bytes(99'999));
    if (told) at.den.tap().say(head(HeadKind::layout, LayoutPart{1, 0, wire.size(), 0}), wire);
    at.answer.layout = 1;
    EXPECT_EQ(at.say(), Code::malformed);
  }
}
TEST(HostileAnswer, ThatCutsAsNobodyMay) {
  const auto cut = [](std::uint64_t part, std::uint32_t src, std::uint32_t dst) {
    Announced at;
    at.answer.part = part;
    at.answer.copied[0] = src;
    at.answer.copied[1] = dst;
    return at.say();
  };
  EXPECT_EQ(cut(0, 0, 0), Code::malformed);
  EXPECT_EQ(cut(100'001, 0, 0), Code::malformed);
  EXPECT_EQ(cut(~0ull, 0, 0), Code::malformed);
  EXPECT_EQ(cut(50'000, 3, 0), Code::malformed);
  EXPECT_EQ(cut(50'000, 0, 3), Code::malformed);
  EXPECT_EQ(cut(50'000, ~0u, ~0u), Code::malformed);
}
TEST(HostilePart, OutOfTurnOrOfAnotherKind) {
  const auto say = [](protocol::PartBody body) {
    Announced at;
    at.answer.part = 10'000;
    at.den.tap().say(head(HeadKind::answer, at.answer, 0, 1), method::Target{}.encode());
    at.den.victim_moves();
    const auto way = guide::Way{support::value(method::find("pack")), nic::Path::slots, {}}.encode();
    if (body.way[0] == 0) std::memcpy(body.way, way.data(), sizeof body.way);
    at.den.tap().say(head(HeadKind::part, body, 0, 1), method::Target{}.encode());
    return ended(at.den.rank(0), at.send);
  };
  for (const std::uint32_t index : {0u, 2u, 9u, 10u, ~0u}) EXPECT_EQ(say({index, {}, 0}), Code::malformed) << index;
  EXPECT_EQ(say({1, {}, 2}), Code::malformed);
  EXPECT_EQ(say({1, {255, 0, 0}, 0}), Code::malformed);
  EXPECT_EQ(say({1, {}, 0}), kPending) << "is as it should be";
}
TEST(HostilePart, TooManyAhead) {
  Announced at;
  at.answer.part = 10'000;
  at.den.tap().say(head(HeadKind::answer, at.answer, 0, 1), method::Target{}.encode());
  for (std::uint32_t index = 1; index < 5; ++index) {
    protocol::PartBody body{index, {}, 0};
    std::memcpy(body.way, at.answer.way, sizeof body.way);
    at.den.tap().say(head(HeadKind::part, body, 0, 1), method::Target{}.encode());
  }
  EXPECT_EQ(ended(at.den.rank(0), at.send), Code::malformed);
}
TEST(HostileAnswer, Twice) {
  Announced at;
  at.den.tap().say(head(HeadKind::answer, at.answer, 0, 1), method::Target{}.encode());
  EXPECT_EQ(at.say(), Code::malformed);
}
TEST(HostileAnswer, ToAMessageOfNoBytes) {
  for (const AnswerKind how : {AnswerKind::stream, AnswerKind::method}) {
    Setting setting = how == AnswerKind::stream ? shared() : queues();
    setting.options.unexpected_bytes = 0;  // so that it is announced
    Den den(setting, 0, 0);
    Request* send = support::value(den.rank(0).isend(nullptr, bytes(0), 1, 1));
    den.tap().say(head(HeadKind::answer, Answer{1, 0, {}, how, 1, {0, 0}}, 0, 1), method::Target{}.encode());
    EXPECT_EQ(ended(den.rank(0), send), Code::malformed);
  }
}

// --- what follows an answer, and the rest ----------------------------------------------------------------------------

TEST(HostileReady, BeforeItsAnswer) {
  Den den(forced("umr_read"), 0, 0);
  Guarded target(vector(1000, 100, 150), 1);
  Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
  den.tap().say(head(HeadKind::announce, Announce{0, 1, 0}, 100'000, 7));
  den.tap().say(plain(HeadKind::ready, 0, 1), method::Target{}.encode());
  EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
  EXPECT_TRUE(target.untouched());
}
TEST(HostileReady, MalformedOrForAWayThatReadsNothing) {
  for (const char* method : {"pack", "umr_read", "scatter_read"}) {
    for (const std::size_t size : {std::size_t{0}, std::size_t{5}, sizeof(method::Target::Part), 3 * sizeof(method::Target::Part)}) {
      Den den(forced(method), 0, 0);
      Guarded target(vector(1000, 100, 150), 1);
      Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
      den.tap().say(head(HeadKind::announce, Announce{0, 1, 0}, 100'000, 7));
      den.victim_moves();
      den.tap().say(plain(HeadKind::ready, 0, 1), std::vector<std::byte>(size));
      const Code code = ended(den.rank(0), receive);
      const bool waits = size == 3 * sizeof(method::Target::Part) && code == kPending;  // for the peer to say that its source is ready
      EXPECT_TRUE(code == Code::malformed || code == Code::transfer || code == Code::peer_lost || waits)
          << method << " " << size << ": " << static_cast<int>(code);
      EXPECT_TRUE(target.untouched()) << method;
    }
  }
}

TEST(HostileLayout, ThatChangesOnItsWay) {
  const auto wire = layout::encode(vector(1000, 100, 150));
  for (const LayoutPart second : {LayoutPart{2, 0, wire.size(), 10}, LayoutPart{1, 0, 5, 10}, LayoutPart{1, 0, wire.size() + 1, 10},
                                  LayoutPart{1, 0, wire.size(), 9}, LayoutPart{1, 0, wire.size(), ~0ull}}) {
    for (const bool shares : {false, true}) {
      Den den(shares ? shared() : queues(), 0, 0);
      Guarded target(bytes(100), 1);
      Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
      den.tap().say(head(HeadKind::layout, LayoutPart{1, 0, wire.size(), 0}), std::span(wire).first(10));
      den.tap().say(head(HeadKind::layout, second), std::span(wire).subspan(10));
      EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
    }
  }
}
TEST(HostileLayout, OfAnotherSizeThanItsMessage) {
  Den den(queues(), 0, 0);
  Guarded target(bytes(100'000), 1);
  Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
  const auto wire = layout::encode(bytes(100'001));
  den.tap().say(head(HeadKind::layout, LayoutPart{1, 0, wire.size(), 0}), wire);
  den.tap().say(head(HeadKind::announce, Announce{1, 1, 0}, 100'000, 1));
  EXPECT_EQ(ended(den.rank(0), receive), Code::malformed);
}

TEST(HostileCredit, ThatRunsBackwardsOrAhead) {
  for (const std::uint64_t second : {50ull, 10'000ull, 1ull << 63}) {
    Den den(shared(), 0, 0);
    Guarded memory(bytes(8), 1);
    Request* receive = support::value(den.rank(0).irecv(memory.base(), memory.layout, 1, 1));
    ASSERT_TRUE(den.rank(0).send(memory.base(), memory.layout, 1, 1));
    den.tap().say(plain(HeadKind::credit, 100));
    den.victim_moves();
    den.tap().say(plain(HeadKind::credit, second));
    EXPECT_EQ(ended(den.rank(0), receive), Code::malformed) << second;
  }
}

// A message that would need more memory than there is: an error of its receive alone, at once.
TEST(HostileAnnounce, OfMoreThanThereIsMemory) {
  for (const int shift : {30, 34, 46, 60}) {
    Den den(queues(), 0, 0);
    Guarded target(bytes(1000), 1);
    Request* receive = support::value(den.rank(0).irecv(target.base(), target.layout, 1, 1));
    den.tap().say(head(HeadKind::announce, Announce{0, 1, 0}, 1ull << shift, 1));
    EXPECT_EQ(ended(den.rank(0), receive), Code::truncated) << shift;
    EXPECT_TRUE(target.untouched());
    Guarded word(bytes(4), 2);
    Request* next = support::value(den.rank(0).irecv(word.base(), word.layout, 1, 2));
    ASSERT_TRUE(den.rank(1).send(word.base(), word.layout, 0, 2));
    EXPECT_EQ(ended(den.rank(0), next), kSuccess);
  }
}

// More layouts than have numbers, before the first of their answers goes.
TEST(ManyLayouts, ArriveWhereTheyShould) {
  constexpr int kMany = 300;
  Den den(forced("linked_write"), 0, 0);  // its sender goes by the receiver's layout
  std::vector<std::unique_ptr<Guarded>> out, in;
  std::vector<Request*> sends, receives;
  for (int i = 0; i < kMany; ++i) {
    out.push_back(std::make_unique<Guarded>(bytes(12'000), 1));
    in.push_back(std::make_unique<Guarded>(vector(1000, 12, 13 + i), 2));
    std::memcpy(out.back()->base(), &i, sizeof i);
    sends.push_back(support::value(den.rank(1).isend(out.back()->base(), out.back()->layout, 0, 1)));
  }
  den.until([] { return false; }, 100);  // all are announced
  for (const auto& one : in) receives.push_back(support::value(den.rank(0).irecv(one->base(), one->layout, 1, 1)));
  for (int i = 0; i < kMany; ++i) {
    std::optional<base::Result<protocol::Status>> result;
    const auto at = static_cast<std::size_t>(i);
    ASSERT_TRUE(den.until([&] { return (result = den.rank(0).test(receives[at])).has_value(); })) << i;
    ASSERT_TRUE(*result) << i << ": " << result->error().text();
    EXPECT_TRUE(in[at]->intact()) << i;
    int came = 0;
    std::memcpy(&came, in[at]->base(), sizeof came);
    EXPECT_EQ(came, i);
    ASSERT_TRUE(den.until([&] { return (result = den.rank(1).test(sends[at])).has_value(); })) << i;
    EXPECT_TRUE(*result);
  }
}

// --- the fuzzer ------------------------------------------------------------------------------------------------------

struct Field {
  std::string name;
  Setting setting;
};
std::ostream& operator<<(std::ostream& out, const Field& field) { return out << field.name; }

std::vector<Field> fields() {
  std::vector<Field> made;
  made.push_back({"Shared", shared()});
  made.push_back({"Queues", queues()});
  Setting slots = queues();
  slots.nic.forbidden_paths = {nic::Path::mapped, nic::Path::kernel};
  made.push_back({"Slots", slots});
  Setting three = shared();
  three.ranks = 3;
  made.push_back({"ThreeRanks", three});
  three.nic = queues().nic;
  made.push_back({"ThreeRanksQueues", three});
  Setting poor = shared();
  poor.options.unexpected_bytes = 4000;
  made.push_back({"LittleCredit", poor});
  for (const method::Method& method : method::methods()) made.push_back({std::string(method.name), forced(method.name.data())});
  return made;
}

// What may become of a message between the victim and a liar.
bool tolerable(Code code) {
  return code == Code::malformed || code == Code::peer_lost || code == Code::transfer || code == Code::truncated ||
         code == Code::out_of_memory;
}

struct Message {
  int rank;  ///< whose
  int other;
  bool sends;
  Guarded memory;
  Request* request = nullptr;
};

std::vector<std::unique_ptr<Message>> begin(Den& den, Random& random, std::string& wrong) {
  std::vector<std::unique_ptr<Message>> made;
  const auto add = [&](int rank, int other, bool sends, Layout layout, int tag) {
    auto one = std::make_unique<Message>(Message{rank, other, sends, Guarded(std::move(layout), random.next())});
    auto begun = sends ? den.rank(rank).isend(one->memory.base(), one->memory.layout, other, tag)
                       : den.rank(rank).irecv(one->memory.base(), one->memory.layout, other, tag);
    if (begun) one->request = *begun;
    if (!begun && !tolerable(begun.error().code)) wrong = "begun: " + begun.error().text();
    made.push_back(std::move(one));
  };
  const int messages = static_cast<int>(random.between(3, 9));
  for (int i = 0; i < messages; ++i) {
    const std::int64_t most = random.one_in(2) ? 300'000 : 20'000;
    const support::Sample from = support::random_layout(random, {.runs = 500, .bytes = most, .span = 1 << 20});
    const Layout to = random.one_in(4) ? bytes(random.scaled(most)) : support::random_receive_layout(random, from.layout.size()).layout;
    const int sender = random.one_in(2) ? 0 : 1;
    const int tag = static_cast<int>(random.below(3));
    const bool early = random.one_in(2);
    if (early) add(1 - sender, sender, false, to, tag);
    if (random.one_in(3)) den.victim_moves(2);
    add(sender, 1 - sender, true, from.layout, tag);
    if (random.one_in(3)) den.until([] { return false; }, 2);
    if (!early) add(1 - sender, sender, false, to, tag);
  }
  return made;
}

std::string round(const Setting& setting, std::uint64_t seed) {
  Random random(seed);
  std::string wrong;
  std::vector<std::unique_ptr<Message>> messages;
  Guarded out(vector(3000, 40, 60), 1), in(vector(3000, 40, 70), 2), word(bytes(1), 3);
  std::vector<std::unique_ptr<Message>> kept;  // longer than the communicators
  {
    Den den(setting, random.next(), static_cast<int>(random.pick(std::vector<int>{1, 2, 4, 12})));
    Request* aside[2] = {};
    if (setting.ranks > 2) {
      aside[0] = support::value(den.rank(0).irecv(in.base(), in.layout, 2, 5));
      aside[1] = support::value(den.rank(2).isend(out.base(), out.layout, 0, 5));
    }
    kept = begin(den, random, wrong);
    const auto all_ended = [&] {
      bool all = true;
      for (const auto& one : kept) {
        if (one->request == nullptr) continue;
        const auto result = den.rank(one->rank).test(one->request);
        if (!result) {
          all = false;
          continue;
        }
        one->request = nullptr;
        if (!*result && !tolerable(result->error().code)) wrong = "a message: " + result->error().text();
      }
      return all;
    };
    den.until(all_ended, 200);
    // Whoever lost the other is through with it.
    for (const int rank : {0, 1}) {
      if (den.rank(rank).isend(word.base(), word.layout, 1 - rank, 9)) continue;
      den.until(all_ended, 2);
      for (const auto& one : kept) {
        if (one->rank == rank && one->request != nullptr) wrong = "a request that goes on although its peer is lost";
      }
    }
    if (setting.ranks > 2) {
      for (int i = 0; i < 2; ++i) {
        std::optional<base::Result<protocol::Status>> result;
        const bool came = den.until([&] { return (result = den.rank(2 * i).test(aside[i])).has_value(); }, 20'000);
        if (!came) return "a message between others does not end";
        if (!*result) wrong = "a message between others: " + result->error().text();
      }
    }
  }
  for (const auto& one : kept) {
    if (one->sends ? !one->memory.untouched() : !one->memory.intact()) return "bytes were written that no receive named";
  }
  if (setting.ranks > 2) {
    if (!in.intact() || !out.untouched()) return "bytes of others were written";
    layout::Cursor from(out.layout), to(in.layout);
    for (std::int64_t i = 0; i < out.layout.size(); ++i) {
      if (out.base()[from.next_run(1).offset] != in.base()[to.next_run(1).offset]) return "a message between others came changed";
    }
  }
  return wrong;
}

// The same ones each time, unless seconds are asked for.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kRounds = 3;
#else
constexpr int kRounds = 10;
#endif

class Fuzz : public testing::TestWithParam<Field> {};
TEST_P(Fuzz, NothingButErrors) {
  const auto expect_no_harm = [](std::uint64_t seed) { EXPECT_EQ(round(GetParam().setting, seed), ""); };
  RecordProperty("rounds", support::fuzz(kRounds, expect_no_harm, 1.0 / static_cast<double>(fields().size())));
}
INSTANTIATE_TEST_SUITE_P(Of, Fuzz, testing::ValuesIn(fields()), [](const auto& info) { return info.param.name; });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
