// Notifications wait in the order in which they came, and take no more room than they may, whatever their lengths.
#include <gtest/gtest.h>

#include <string>

#include "lacuna/nixl/inbox.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nixl::Inbox;

TEST(NixlInbox, HasRoomForSoManyBytesWithNamesAndEntries) {
  constexpr std::size_t kEntry = sizeof(notif_list_t::value_type);
  for (const std::size_t name : {1UL, 1000UL}) {
    for (const std::size_t text : {0UL, 100'000UL}) {
      SCOPED_TRACE(testing::Message() << name << " bytes of name, " << text << " of text");
      Inbox inbox;
      const std::size_t most = Inbox::kMostBytes / (kEntry + name + text);
      for (int round = 0; round < 2; ++round) {  // what is taken leaves room
        std::size_t taken = 0;
        while (taken <= most && inbox.put(std::string(name, 'a'), std::string(text, 'x'))) ++taken;
        EXPECT_EQ(taken, most);
        EXPECT_EQ(inbox.put("a", std::string(Inbox::kMostBytes, 'x')).error().code, base::Code::limit);
        EXPECT_EQ(inbox.take().size(), most);
      }
    }
  }
}

TEST(NixlInbox, KeepsTheOrder) {
  Inbox inbox;
  for (const char* text : {"one", "", "two"}) EXPECT_TRUE(inbox.put("a", text));
  EXPECT_EQ(inbox.take(), (notif_list_t{{"a", "one"}, {"a", ""}, {"a", "two"}}));
  EXPECT_TRUE(inbox.take().empty());
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
