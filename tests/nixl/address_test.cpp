// Addresses of agents: what is encoded is decoded, and bytes from anywhere are an address or an error.
#include <gtest/gtest.h>

#include "lacuna/nixl/address.hpp"
#include "tests/support/random.hpp"

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

TEST(NixlAddress, StaysWithinItsLimitsWhateverTheBytes) {
  support::Random random(1);
  int taken = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text = encode(made());
    for (std::int64_t i = random.between(1, 3); i > 0; --i)
      text[static_cast<std::size_t>(random.below(static_cast<std::int64_t>(text.size())))] = static_cast<char>(random.below(256));
    const auto address = decode_address(text);
    if (!address) continue;
    ++taken;
    EXPECT_NE(address->port, 0);
    EXPECT_LE(address->nic.size(), nixl::kMostNicBytes);
    EXPECT_LE(address->hosts.size(), nixl::kMostHosts);
    EXPECT_EQ(address->secret.size(), nixl::kSecretBytes);
  }
  EXPECT_GT(taken, 1000);  // of secrets, most bytes
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
