// A peer whose answers, or what follows them, say what is not so; and what many layouts, and much memory, come to.
#include "tests/protocol/message/lies.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "ManyLayouts.*");

using namespace lies;

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
      // For the peer to say that its source is ready
      const bool waits = size == 3 * sizeof(method::Target::Part) && code == kPending;
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

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
