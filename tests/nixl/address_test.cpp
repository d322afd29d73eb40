// Addresses of agents: what is encoded is decoded, and what is cut is an error. lacuna_fuzz's nixl_address does more.
#include <gtest/gtest.h>

#include "lacuna/nixl/address.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nixl::Address;
using nixl::decode_address;

Address made() {
  return {.machine = std::string(32, 'm'),
          .user = 1000,
          .secret = std::string(nixl::kSecretBytes, 's'),
          .port = 4711,
          .hosts = {"10.0.0.1", "127.0.0.1"},
          .nic = "ofi:tcp"};
}

TEST(NixlAddress, IsDecodedAsItWas) {
  const auto again = decode_address(encode(made()));
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(*again, made());
}

TEST(NixlAddress, IsWholeOrMalformed) {
  const std::string text = encode(made());
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto cut = decode_address(std::string_view(text).substr(0, length));
    ASSERT_FALSE(cut) << length;
    EXPECT_EQ(cut.error().code, base::Code::malformed);
  }
  EXPECT_FALSE(decode_address(text + "x"));
}

TEST(NixlAddress, OwnHostsEndWithTheLoopback) {
  const auto hosts = nixl::own_hosts();
  ASSERT_FALSE(hosts.empty());
  EXPECT_LE(hosts.size(), nixl::kMostHosts);
  EXPECT_TRUE(nixl::is_loopback(hosts.back()));
  EXPECT_EQ(nixl::at_port("::1", 5), "[::1]:5");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
