#include "lacuna/protocol/stream/transits.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/protocol/stream/stream_rings.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using protocol::Advice;
using protocol::OutStream;
using protocol::RingMemory;
using protocol::StreamRing;
using protocol::StreamRings;
using protocol::Transit;

// A window whose receiver takes as long for each message as it is told to.
class Pair {
 public:
  Pair() {
    place_.memory = memory_.get();
    place_.bytes = place_.part = StreamRings::kBytes;
  }
  // One message, and how it went; what it takes, in ns.
  struct Message {
    std::int64_t bytes = 1 << 20;
    std::uint64_t narrow = 1000, wide = 1000, direct = 1000;
    std::uint64_t of = 1;
    Advice advice = Advice::impossible;
    bool in_vain = false;
    std::int64_t run = 0;
  };
  Transit send(const Message& message) {
    const Transit transit = transits_.choose(message.bytes, layout::Digest{message.of, 0}, message.advice, message.run);
    place_.transit = transit;
    const OutStream stream(place_, stores_, message.bytes);
    transits_.sent(place_, stream);
    memory_->filled.store(stream.last());
    memory_->emptied.store(stream.last());
    if (transit == Transit::direct) transits_.offered(!message.in_vain);
    if (transit == Transit::direct && message.in_vain) return transit;
    memory_->took_ns.store(transit == Transit::narrow ? message.narrow : transit == Transit::wide ? message.wide : message.direct);
    memory_->took_of.store(stream.last());
    return transit;
  }
  Transit send(std::int64_t bytes, std::uint64_t narrow_ns, std::uint64_t wide_ns, std::uint64_t of = 1) {
    return send({.bytes = bytes, .narrow = narrow_ns, .wide = wide_ns, .of = of});
  }
  // AnswerKind many of so many messages went narrowly.
  int narrow(int messages, std::int64_t bytes, std::uint64_t narrow_ns, std::uint64_t wide_ns) {
    int count = 0;
    for (int i = 0; i < messages; ++i) count += send(bytes, narrow_ns, wide_ns) == Transit::narrow ? 1 : 0;
    return count;
  }
  RingMemory& memory() { return *memory_; }

 private:
  std::unique_ptr<RingMemory> memory_ = std::make_unique<RingMemory>();
  StreamRing place_;
  protocol::Stores stores_;
  protocol::Transits transits_;
};

constexpr int kUntilKnown = 600;  // messages: a first trial is over

TEST(Transits, AreTheFasterOnes) {
  for (const std::int64_t bytes : {64 << 10, 1 << 20, 16 << 20}) {
    Pair pair;
    pair.narrow(bytes < 4 << 20 ? kUntilKnown : 40, bytes, 1000, 1500);
    EXPECT_GT(pair.narrow(1000, bytes, 1000, 1500), 950) << bytes;
    pair.narrow(10'000, bytes, 1500, 1000);  // a trial of wide windows is dear: it goes round them first
    EXPECT_LT(pair.narrow(1000, bytes, 1500, 1000), 50) << bytes;
  }
}

// Of messages that take tens of milliseconds, a program may send no more than some ten.
TEST(Transits, GiveUpSoonWhereNothingIsToBeHoped) {
  Pair pair;
  EXPECT_LE(pair.narrow(400, 16 << 20, 3000, 1000), 1);
  EXPECT_LE(pair.narrow(400, 1 << 20, 3000, 1000), 3);
}

// The sheets say what is best, and new windows are slow: a program of few messages goes by the sheets.
TEST(Transits, AreTheExpectedOnesForTheFirstMessages) {
  for (const std::int64_t bytes : {64 << 10, 1 << 20}) {
    Pair pair;
    EXPECT_EQ(pair.narrow(500, bytes, 100, 1000), 0);
  }
}

// Windows that were not in use lie in memory. A trial goes round them before it judges.
TEST(Transits, AreWideAgainWhereThatIsFasterOnceWindowsAreInTheCaches) {
  constexpr std::int64_t bytes = 64 << 10;
  constexpr int round = 3 * StreamRings::kBytes / bytes;
  Pair pair;
  pair.narrow(kUntilKnown, bytes, 1000, 1500);
  ASSERT_EQ(pair.narrow(20, bytes, 1000, 1000), 20);
  int wide = 0, last = 0;  // one after another, or nearly
  for (int i = 0; i < 10'000; ++i) {
    const bool went = pair.send(bytes, 1000, wide < round ? 1500 : 700) == Transit::wide;
    wide = went ? wide + 1 : i - last > 100 ? 0 : wide;
    last = went ? i : last;
  }
  EXPECT_EQ(pair.narrow(20, bytes, 1000, 700), 0);
}

// A receiver that comes late makes one message slow: here each so-manieth.
TEST(Transits, DoNotChangeForOneDisturbedMessage) {
  for (const int each : {11, 29, 40, 97}) {
    Pair pair;
    int narrow = 0;
    for (int i = 0; i < 50'000; ++i) narrow += pair.send(1 << 20, 1500, i % each == 0 ? 9000 : 1000) == Transit::narrow ? 1 : 0;
    EXPECT_LT(narrow, 1000) << each;
  }
}

// What trials cost stays below 0.5 % of the messages, however bad the other ways are.
TEST(Transits, CostLittle) {
  constexpr int kMessages = 100'000;
  for (const std::int64_t bytes : {1 << 20, 16 << 20}) {
    for (const std::uint64_t worse : {1100U, 1300U, 2000U, 8000U}) {
      Pair pair;
      double extra = 0;
      for (int i = 0; i < kMessages; ++i)
        extra += pair.send(bytes, worse, 1000) == Transit::narrow ? static_cast<double>(worse) / 1000 - 1 : 0;
      EXPECT_LT(extra, 0.0055 * kMessages) << bytes << " " << worse;
      EXPECT_GT(extra, 0) << bytes << " " << worse;
    }
  }
}

// A pair of messages that ends before its second half costs as well, though nobody knows how much.
TEST(Transits, CostLittleWhereFewMessagesAreAlike) {
  constexpr int kMessages = 100'000;
  for (const std::uint64_t worse : {1500U, 8000U}) {
    for (int alike = 1; alike <= 12; ++alike) {
      Pair pair;
      double extra = 0;
      for (int i = 0; i < kMessages; ++i) {
        const auto layout = static_cast<std::uint64_t>(i / alike) % 7;
        extra += pair.send(1 << 20, worse, 1000, layout) == Transit::narrow ? static_cast<double>(worse) / 1000 - 1 : 0;
      }
      EXPECT_LT(extra, 0.01 * kMessages) << worse << " " << alike;
    }
  }
}

TEST(Transits, StayWhereNothingIsGained) {
  Pair pair;
  EXPECT_LT(pair.narrow(1000, 1 << 20, 1000, 1010), 50);
}

TEST(Transits, LearnOfEachLengthAlone) {
  Pair pair;
  pair.narrow(kUntilKnown, 1 << 20, 1000, 1500);
  pair.narrow(kUntilKnown, 64 << 10, 1500, 1000);
  EXPECT_GT(pair.narrow(400, 1 << 20, 1000, 1500), 350);
  EXPECT_LT(pair.narrow(400, 64 << 10, 1500, 1000), 50);
}

TEST(Transits, CompareOnlyWhatIsAlike) {
  Pair pair;
  int narrow = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) narrow += pair.send(1 << 20, 1000, 1500, i) == Transit::narrow ? 1 : 0;
  EXPECT_LT(narrow, 300);  // trials that come to nothing
}

// What direct copies take, and what became of an offer.
TEST(Transits, AreDirectWhereThatIsFaster) {
  for (const Advice advice : {Advice::two_copies, Advice::one_copy}) {
    Pair pair;
    const auto direct = [&](int messages, std::uint64_t direct_ns) {
      int count = 0;
      for (int i = 0; i < messages; ++i)
        count += pair.send({.narrow = 1500, .wide = 1000, .direct = direct_ns, .advice = advice}) == Transit::direct;
      return count;
    };
    direct(1100, 700);
    EXPECT_GT(direct(1000, 700), 950);
    direct(1100, 2000);
    EXPECT_LT(direct(1000, 2000), 50);
  }
}

TEST(Transits, AreTheAdvisedOnesAtFirst) {
  Pair pair;
  EXPECT_EQ(pair.send({.advice = Advice::one_copy}), Transit::direct);
  EXPECT_EQ(pair.send({.advice = Advice::two_copies}), Transit::wide);
  EXPECT_EQ(pair.send({.advice = Advice::impossible}), Transit::wide);
}

// Whichever is tried last may be the best.
TEST(Transits, AreTheBestOfThreeSoon) {
  for (const Advice advice : {Advice::two_copies, Advice::one_copy}) {
    for (const Transit best : {Transit::wide, Transit::narrow, Transit::direct}) {
      Pair pair;
      const auto send = [&] {
        const auto ns = [&](Transit way) { return way == best ? 1000U : 1900U; };
        return pair.send({.narrow = ns(Transit::narrow), .wide = ns(Transit::wide), .direct = ns(Transit::direct), .advice = advice});
      };
      for (int i = 0; i < 1100; ++i) send();  // two first trials, each after 512 messages
      for (int i = 0; i < 400; ++i) EXPECT_EQ(send(), best);
    }
  }
}

TEST(Transits, LearnOfLongRunsAlone) {
  Pair pair;
  const auto direct = [&](int messages, std::int64_t run, std::uint64_t direct_ns) {
    int count = 0;
    for (int i = 0; i < messages; ++i) {
      const Transit went = pair.send({.narrow = 1500,
                                      .wide = 1000,
                                      .direct = direct_ns,
                                      .of = static_cast<std::uint64_t>(run),
                                      .advice = Advice::one_copy,
                                      .run = run});
      count += went == Transit::direct;
    }
    return count;
  };
  direct(kUntilKnown, 64 << 10, 700);
  direct(kUntilKnown, 4 << 10, 2000);
  EXPECT_GT(direct(100, 64 << 10, 700), 95);
  EXPECT_LT(direct(100, 4 << 10, 2000), 5);
}

// Which windows are better has to do with the CPUs, not with the layout.
TEST(Transits, BeginWithTheWindowsThatOthersFound) {
  Pair pair;
  pair.narrow(kUntilKnown, 1 << 20, 1000, 1500);
  EXPECT_EQ(pair.send({.narrow = 1000, .wide = 1500, .direct = 3000, .of = 2, .advice = Advice::two_copies}), Transit::narrow);
  EXPECT_EQ(pair.send({.narrow = 1000, .wide = 1500, .direct = 3000, .of = 2, .advice = Advice::one_copy}), Transit::direct);
  EXPECT_EQ(pair.send({.bytes = 16 << 20, .narrow = 1000, .wide = 1500}), Transit::wide);
}

TEST(Transits, AreNeverDirectWhereThatIsImpossible) {
  Pair pair;
  for (int i = 0; i < 3000; ++i) EXPECT_NE(pair.send({.narrow = 1000, .wide = 1000, .direct = 1}), Transit::direct);
}

// Receivers that come late, or whose layouts have short runs.
TEST(Transits, AreSeldomDirectWhereOffersAreInVain) {
  for (const Advice advice : {Advice::two_copies, Advice::one_copy}) {
    Pair pair;
    int count = 0;
    for (int i = 0; i < 3000; ++i)
      count += pair.send({.narrow = 1500, .wide = 1000, .direct = 1, .advice = advice, .in_vain = true}) == Transit::direct;
    EXPECT_LT(count, 60);
  }
}

TEST(Transits, AreWideForShortMessages) {
  Pair pair;
  EXPECT_EQ(pair.narrow(1000, guide::usual::kTimedMessage - 1, 1, 1000), 0);
}

// A peer may write anything there: it only gets what it asked for, and after a while what is best again.
TEST(Transits, BearWhatAPeerWrites) {
  Pair pair;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    pair.send(1 << 20, i % 3 == 0 ? 0 : ~std::uint64_t{0} - i, i % 5 == 0 ? 0 : i << 40);
    if (i % 7 == 0) pair.memory().took_of.store(i);
  }
  pair.narrow(10'000, 1 << 20, 1000, 1500);  // it is believed that trials cost much
  EXPECT_GT(pair.narrow(2000, 1 << 20, 1000, 1500), 1900);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
