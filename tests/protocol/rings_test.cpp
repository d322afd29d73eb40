#include "lacuna/protocol/rings.hpp"

#include <gtest/gtest.h>

#include <memory>

namespace lacuna::test {
namespace {

using protocol::OutStream;
using protocol::Ring;
using protocol::WindowMemory;
using protocol::Windows;

// A window whose receiver takes as long for each message as it is told to.
class Pair {
 public:
  // One message, and how it went; `narrow_ns` and `wide_ns` are what it takes.
  Ring send(std::int64_t bytes, std::uint64_t narrow_ns, std::uint64_t wide_ns, std::uint64_t of = 1) {
    const Ring ring = rings_.choose(bytes, layout::Digest{of, 0});
    place_.ring = ring;
    const OutStream stream(place_, stores_, bytes);
    rings_.sent(place_, stream);
    memory_->filled.store(stream.last());
    memory_->took_ns.store(ring == Ring::narrow ? narrow_ns : wide_ns);
    memory_->took_of.store(stream.last());
    memory_->emptied.store(stream.last());
    return ring;
  }
  // How many of so many messages went narrowly.
  int narrow(int messages, std::int64_t bytes, std::uint64_t narrow_ns, std::uint64_t wide_ns) {
    int count = 0;
    for (int i = 0; i < messages; ++i) count += send(bytes, narrow_ns, wide_ns) == Ring::narrow ? 1 : 0;
    return count;
  }
  WindowMemory& memory() { return *memory_; }

 private:
  std::unique_ptr<WindowMemory> memory_ = std::make_unique<WindowMemory>();
  Windows::Place place_{.memory = memory_.get(), .bytes = Windows::kBytes};
  protocol::Stores stores_;
  protocol::Rings rings_;
};

TEST(Rings, AreTheFasterOnes) {
  for (const std::int64_t bytes : {64 << 10, 1 << 20, 16 << 20}) {
    Pair pair;
    pair.narrow(40, bytes, 1000, 1500);
    EXPECT_GT(pair.narrow(1000, bytes, 1000, 1500), 950) << bytes;
    pair.narrow(1000, bytes, 1500, 1000);
    EXPECT_LT(pair.narrow(1000, bytes, 1500, 1000), 50) << bytes;
  }
}

TEST(Rings, StayWhereNothingIsGained) {
  Pair pair;
  EXPECT_LT(pair.narrow(1000, 1 << 20, 1000, 1010), 50);
}

TEST(Rings, LearnOfEachLengthAlone) {
  Pair pair;
  pair.narrow(400, 1 << 20, 1000, 1500);
  pair.narrow(400, 64 << 10, 1500, 1000);
  EXPECT_GT(pair.narrow(400, 1 << 20, 1000, 1500), 350);
  EXPECT_LT(pair.narrow(400, 64 << 10, 1500, 1000), 50);
}

TEST(Rings, CompareOnlyWhatIsAlike) {
  Pair pair;
  int narrow = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) narrow += pair.send(1 << 20, 1000, 1500, i) == Ring::narrow ? 1 : 0;
  EXPECT_LT(narrow, 300);  // trials that come to nothing
}

TEST(Rings, AreWideForShortMessages) {
  Pair pair;
  EXPECT_EQ(pair.narrow(1000, WindowMemory::kTimed - 1, 1, 1000), 0);
}

// A peer may write anything there: it only gets what it asked for.
TEST(Rings, BearWhatAPeerWrites) {
  Pair pair;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    pair.send(1 << 20, i % 3 == 0 ? 0 : ~std::uint64_t{0} - i, i % 5 == 0 ? 0 : i << 40);
    if (i % 7 == 0) pair.memory().took_of.store(i);
  }
  EXPECT_GT(pair.narrow(2000, 1 << 20, 1000, 1500), 1000);
}

}  // namespace
}  // namespace lacuna::test
