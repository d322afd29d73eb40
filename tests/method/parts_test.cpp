// Parts: however two layouts are cut, the parts follow one another to the end, each side of each fits a key, and what
// the key would hold is what the layout says.
#include "lacuna/method/parts.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "Parts.*");

using layout::Layout;
using layout::Run;
using method::KeyRoom;
using method::Shape;
using method::StreamRange;

// The runs of a shape, or of a part of a layout, with neighbours merged: blocks that touch are one to a walk and two to
// a loop.
void push(std::vector<Run>& runs, Run run) {
  if (!runs.empty() && runs.back().offset + runs.back().length == run.offset) {
    runs.back().length += run.length;
  } else {
    runs.push_back(run);
  }
}
std::vector<Run> runs_of(const Shape& shape) {
  std::vector<Run> runs;
  for (std::int64_t i = 0; i < shape.repeat; ++i) push(runs, {shape.runs[0].offset + i * shape.stride, shape.runs[0].length});
  if (shape.repeat == 0) {
    for (const Run& run : shape.runs) push(runs, run);
  }
  return runs;
}
std::vector<Run> runs_of(const Layout& layout, StreamRange part) {
  std::vector<Run> runs;
  layout::Cursor cursor(layout);
  cursor.seek(part.from);
  while (cursor.position() < part.from + part.bytes) push(runs, cursor.next_run(part.from + part.bytes - cursor.position()));
  return runs;
}

void expect_sound(const Layout& one, const Layout& other, const KeyRoom& room, std::int64_t most_bytes) {
  std::int64_t at = 0;
  for (const StreamRange& part : method::cut(one, other, room, most_bytes)) {
    ASSERT_EQ(part.from, at);
    ASSERT_GT(part.bytes, 0);
    ASSERT_LE(part.bytes, most_bytes);
    at += part.bytes;
    for (const Layout* side : {&one, &other}) {
      const Shape shape = method::shape_of(*side, part, room);
      ASSERT_LE(shape.entries(), shape.repeat > 0 ? room.strided_entries : room.entries);
      ASSERT_LE(shape.stride, room.stride);
      ASSERT_EQ(runs_of(shape), runs_of(*side, part)) << side->describe() << " from " << part.from << ", " << part.bytes << " bytes";
    }
  }
  ASSERT_EQ(at, one.size());
}

TEST(Parts, FitTheirKeysForRandomPairs) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    support::Random random(seed);
    const support::Limits limits{.runs = 500, .bytes = 8 << 10};
    const Layout one = support::random_layout(random, limits).layout;
    const Layout other = support::random_layout_of_size(random, one.size(), limits).layout;
    const KeyRoom room{static_cast<int>(1 + random.scaled(200)), static_cast<int>(random.below(2)), random.scaled(4000)};
    SCOPED_TRACE(seed);
    expect_sound(one, other, room, 1 + random.scaled(10'000));
    expect_sound(one, one, room, 1 + random.scaled(10'000));
    if (HasFatalFailure()) return;
  }
}

Layout loop(std::int64_t count, std::int64_t bytes, std::int64_t stride) {
  return Layout::hvector(count, 1, stride, Layout::bytes(bytes).value()).value();
}

TEST(Parts, AreFewAndLarge) {
  const KeyRoom room{52, 51, 65535};
  EXPECT_EQ(method::cut(loop(1000, 8, 24), loop(1000, 8, 24), room, 1 << 30).size(), 1U);
  EXPECT_EQ(method::cut(loop(1000, 8, 24), loop(250, 32, 96), room, 1 << 30).size(), 1U);
  // 16 bits hold no such stride: lists of 52
  EXPECT_EQ(method::cut(loop(1000, 8, 24), loop(1000, 8, 70'000), room, 1 << 30).size(), 20U);
  EXPECT_EQ(method::cut(loop(104, 8, 24), Layout::bytes(832).value(), {52, 0, 0}, 1 << 30).size(), 2U);
  EXPECT_TRUE(method::cut(Layout(), Layout(), room, 100).empty());
}

TEST(Parts, AStrideOfSixteenBitsIsTheLast) {
  const KeyRoom room{4, 1, 65535};
  EXPECT_EQ(method::shape_of(loop(100, 8, 65535), {0, 800}, room).repeat, 100);
  EXPECT_EQ(method::cut(loop(100, 8, 65536), loop(100, 8, 65536), room, 1 << 30).size(), 25U);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna
