// Prices of exchanges: in a profile, in one without them, and in files from anywhere.
#include "lacuna/guide/exchange_prices.hpp"

#include <cmath>
#include <limits>

#include "tests/guide/profile_file.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::ExchangePrice;
using guide::ExchangePrices;

Json exchanges() { return {{"latency", 700.5}, {"message", 150}, {"large", 2500}, {"block", 4}, {"byte", 0.125}}; }

Json with(const Json& exchanges, const std::string& machine = guide::machine_name()) {
  Json profile = small();
  profile["machine"] = machine;
  profile["exchanges"] = exchanges;
  return profile;
}

class ExchangeProfiles : public ProfileFile {};

TEST_F(ExchangeProfiles, HaveEveryPrice) {
  Json made = exchanges();
  made["of a newer library"] = 3;
  const base::Result<Profile> profile = read(with(made));
  ASSERT_TRUE(profile) << profile.error().message;
  EXPECT_TRUE(profile->warnings.empty());
  ASSERT_TRUE(profile->exchanges);
  const ExchangePrices& prices = *profile->exchanges;
  EXPECT_EQ(prices[ExchangePrice::latency], 700.5);
  EXPECT_EQ(prices[ExchangePrice::message], 150);
  EXPECT_EQ(prices[ExchangePrice::large], 2500);
  EXPECT_EQ(prices[ExchangePrice::block], 4);
  EXPECT_EQ(prices[ExchangePrice::byte], 0.125);
  EXPECT_EQ(prices.describe(), "latency 700 ns, message 150 ns, large 2.5e+03 ns, block 4 ns, byte 0.125 ns");
}

TEST_F(ExchangeProfiles, OfAnotherMachineOrWithoutPricesDoNotHold) {
  const auto found = [&](const Json& profile, const std::string& nic) {
    write(file(), profile.dump());
    const Set named("LACUNA_PROFILE", file().c_str());
    return guide::find_profile(nic).exchanges.has_value();
  };
  EXPECT_TRUE(found(with(exchanges()), "local"));
  EXPECT_FALSE(found(with(exchanges(), "another"), "local"));
  EXPECT_FALSE(found(small(), "local"));
  EXPECT_TRUE(found(with(exchanges(), "simulated"), "model")) << "a simulated NIC is the same everywhere";
}

// The rest of the profile holds.
TEST_F(ExchangeProfiles, ThatAreWrongAreLeftOutAndNamed) {
  const auto spoilt = [&](const Json& wrong, std::string_view word) {
    const base::Result<Profile> profile = read(with(wrong));
    ASSERT_TRUE(profile) << profile.error().message;
    EXPECT_FALSE(profile->exchanges);
    EXPECT_EQ(profile->classes.size(), small()["classes"].size());
    ASSERT_EQ(profile->warnings.size(), 1U);
    for (const std::string& said : {file(), std::string("exchanges"), std::string(word), std::string("usual prices of exchanges")})
      EXPECT_TRUE(profile->warnings[0].contains(said)) << said << " in: " << profile->warnings[0];
  };
  spoilt(3, "an object");
  const Json good = exchanges();
  for (const auto& [name, value] : good.items()) {
    Json wrong = good;
    wrong.erase(name);
    spoilt(wrong, name);
    for (const Json& price : {Json(0), Json(-1), Json(1e-4), Json(1.1e9), Json(1e300), Json("fast"), Json(nullptr), Json::array()}) {
      wrong[name] = price;
      spoilt(wrong, name);
    }
  }
}

// Whatever bytes a file has, it is a profile or an error; and its prices are possible.
TEST_F(ExchangeProfiles, OfAnyBytesDoNoHarm) {
  const std::string good = with(exchanges()).dump();
  support::Random random(7);
  int held = 0;
  for (int round = 0; round < 400; ++round) {
    std::string text = good;
    for (int k = 0; k < 2; ++k) text[static_cast<std::size_t>(random.below(std::ssize(text)))] = static_cast<char>('0' + random.below(10));
    const base::Result<Profile> profile = read(text);
    if (!profile || !profile->exchanges) continue;
    ++held;
    EXPECT_TRUE(profile->exchanges->possible()) << text;
  }
  EXPECT_GT(held, 20);
}

TEST(ExchangePrices, ArePossibleBetweenTheirBounds) {
  ExchangePrices prices;
  EXPECT_FALSE(prices.possible());
  prices.ns.fill(ExchangePrices::kLeast);
  EXPECT_TRUE(prices.possible());
  constexpr float infinite = std::numeric_limits<float>::infinity();
  for (float& price : prices.ns) {
    for (const float wrong : {0.0F, -1.0F, infinite, -infinite, std::nanf(""), std::nextafter(ExchangePrices::kLeast, 0.0F),
                              std::nextafter(ExchangePrices::kMost, infinite)}) {
      price = wrong;
      EXPECT_FALSE(prices.possible()) << wrong;
    }
    price = ExchangePrices::kMost;
    EXPECT_TRUE(prices.possible());
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
