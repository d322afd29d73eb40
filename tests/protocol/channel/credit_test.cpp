// Credit: a sender stops where the receiver's room ends, goes on when it is told of more, and neither end believes what
// cannot be.
#include <gtest/gtest.h>

#include "lacuna/protocol/channel/channel.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using protocol::Credit;
using protocol::kEagerCost;

constexpr std::int64_t kBytes = 1000, kEach = kBytes + kEagerCost, kRoom = 10 * kEach;

TEST(Credit, EndsWithTheRoomAndComesBackWithReceives) {
  Credit sender, receiver;
  EXPECT_FALSE(sender.allows(0));
  sender.grant(kRoom);
  int sent = 0, told = 0;
  for (int round = 0; round < 100; ++round) {
    for (; sender.allows(kBytes); ++sent) {
      sender.sent(kBytes);
      EXPECT_TRUE(receiver.came(kBytes, kRoom));
    }
    for (bool tell = false; !tell;) {
      tell = receiver.receive(kBytes, kRoom);
      if (!tell) continue;
      EXPECT_TRUE(sender.freed(static_cast<std::uint64_t>(receiver.received())));
      ++told;
    }
  }
  EXPECT_EQ(sent, 10 + 3 * 99);  // told after each quarter of the room, in whole messages
  EXPECT_EQ(told, 100);
}

TEST(Credit, IsNotBelievedBeyondWhatWasSent) {
  Credit credit;
  credit.grant(kRoom);
  credit.sent(kBytes);
  EXPECT_FALSE(credit.freed(kEach + 1));
  EXPECT_FALSE(credit.freed(~std::uint64_t{0}));
  EXPECT_TRUE(credit.freed(kEach));
  EXPECT_FALSE(credit.freed(kEach - 1));
  EXPECT_TRUE(credit.freed(kEach));
}

TEST(Credit, RefusesMoreThanThereIsRoomFor) {
  Credit credit;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(credit.came(kBytes, kRoom));
  EXPECT_FALSE(credit.came(0, kRoom));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
