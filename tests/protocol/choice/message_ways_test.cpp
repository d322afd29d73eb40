// The way of a message is asked for once for each layout and situation, until the options change.
#include <gtest/gtest.h>

#include "lacuna/protocol/choice/choice.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::MessagePrices;
using guide::MessageWay;
using layout::Layout;
using protocol::MessageWays;

Layout blocks(std::int64_t count, std::int64_t length) {
  return support::value(Layout::hvector(count, 1, 2 * length, support::value(Layout::bytes(length))));
}

// Whatever else was asked before: more layouts than are remembered, in any situation.
TEST(MessageWaysOfLayouts, AreThoseThatTheGuideChooses) {
  protocol::Options options{.eager_bytes = 3000};
  MessageWays ways(MessagePrices::usual(), options);
  support::Random random(3);
  std::vector<Layout> layouts;
  for (int i = 0; i < 600; ++i) layouts.push_back(blocks(random.between(1, 2000), random.between(1, 9000)));
  for (int i = 0; i < 20'000; ++i) {
    const Layout& layout = random.pick(layouts);
    const MessageWays::Situation situation{.offered = random.one_in(2), .left_behind = random.one_in(2), .copies = random.one_in(2)};
    const guide::MessageCase what{.piece = guide::Piece::of(layout, 1),
                                  .eager_bytes = 3000,
                                  .offered = situation.offered,
                                  .left_behind = situation.left_behind,
                                  .copies = situation.copies};
    const MessageWays::Chosen chosen = ways.choose(layout, situation);
    ASSERT_EQ(chosen.way, MessagePrices::usual().choose(what));
    ASSERT_EQ(chosen.stream, MessagePrices::usual().stream(what.piece));
    ASSERT_FALSE(chosen.forced);
  }
}

TEST(MessageWaysOfLayouts, AreForced) {
  protocol::Options options;
  MessageWays ways(MessagePrices::usual(), options);
  const Layout small = blocks(10, 100), large = blocks(1000, 100);
  EXPECT_EQ(ways.choose(large, {}).way, MessageWay::wide);
  EXPECT_EQ(ways.least(), MessagePrices::usual().eager_up_to() + 1);
  options.way = MessageWay::narrow;
  ways.forget();
  EXPECT_EQ(ways.least(), 1);
  for (const Layout& layout : {small, large}) {
    EXPECT_EQ(ways.choose(layout, {}).way, MessageWay::narrow);
    EXPECT_EQ(ways.choose(layout, {}).stream, MessageWay::narrow);
    EXPECT_TRUE(ways.choose(layout, {}).forced);
  }
  options.way = MessageWay::direct;  // of short runs, too, but not of what is left behind
  ways.forget();
  EXPECT_EQ(ways.choose(small, {.copies = true}).way, MessageWay::direct);
  EXPECT_EQ(ways.choose(small, {.copies = false}).way, MessageWay::eager);
  EXPECT_FALSE(ways.choose(small, {.copies = false}).forced);
  EXPECT_EQ(ways.choose(large, {.offered = true, .left_behind = true, .copies = true}).way, MessageWay::wide);
  options.way = MessageWay::eager;
  ways.forget();
  EXPECT_EQ(ways.choose(small, {}).way, MessageWay::eager);
  EXPECT_EQ(ways.choose(large, {}).way, MessageWay::wide);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
