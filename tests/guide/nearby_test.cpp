// What measured pairs say of others: as numbers in a file, as means, and as choices.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/guide/profile_file.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Nearby;
using layout::PairOutline;

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();

PairOutline pair_of(std::int64_t count, std::int64_t block) {
  return layout::outline(vector(count, block, 2 * block), bytes(count * block));
}

std::vector<float> means(const Nearby& nearby, const PairOutline& pair, std::size_t ways, bool cold = false) {
  const auto gaps = nearby.means(pair, cold).gaps;
  return {gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(ways)};
}

// --- numbers ---------------------------------------------------------------------------------------------------------

TEST(PairNumbers, ComeBack) {
  for (const PairOutline& pair : {pair_of(10, 64), layout::outline(vector(7, 3, 100), vector(3, 7, 11))}) {
    const auto back = guide::pair_from_numbers(guide::numbers_of(pair));
    ASSERT_TRUE(back) << back.error().text();
    EXPECT_EQ(guide::numbers_of(*back), guide::numbers_of(pair));
    EXPECT_EQ(back->src.lines, pair.src.lines);
    EXPECT_EQ(back->dst.pages, pair.dst.pages);
  }
}

TEST(PairNumbers, OfNoPairAreRefused) {
  const auto right = guide::numbers_of(pair_of(10, 64));
  const auto refused = [&](std::size_t at, double value, std::string_view word) {
    auto numbers = right;
    numbers.at(at) = value;
    const auto pair = guide::pair_from_numbers(numbers);
    ASSERT_FALSE(pair) << at;
    EXPECT_TRUE(pair.error().message.contains(word)) << pair.error().message;
  };
  refused(0, 0, "no layout");
  refused(0, 1e300, "no count");
  refused(0, std::nan(""), "no count");
  refused(1, 0, "no layout");
  refused(1, 641, "641 runs");
  refused(2, 0, "no layout");
  refused(4, -0.1, "no layout");
  refused(4, 1.1, "no layout");
  refused(5, -1, "no layout");
  refused(6, 639, "640 bytes to 639");
  refused(12, 0, "piece");
  refused(13, 0, "piece");
  EXPECT_FALSE(guide::pair_from_numbers(std::span(right).first(13)));
}

// --- means -----------------------------------------------------------------------------------------------------------

TEST(NearbyMeans, AreNothingWhereNothingWasMeasured) { EXPECT_EQ(means(Nearby(2), pair_of(10, 64), 2), (std::vector<float>{0, 0})); }

TEST(NearbyMeans, AreWhatWasMeasuredThere) {
  Nearby nearby(3);
  nearby.add(pair_of(10, 64), false, std::array{0.3F, kNone, -0.2F});
  const auto found = means(nearby, pair_of(10, 64), 3);
  EXPECT_NEAR(found[0], 0.3F / 1.05F, 1e-6);
  EXPECT_EQ(found[1], 0);
  EXPECT_NEAR(found[2], -0.2F / 1.05F, 1e-6);
}

TEST(NearbyMeans, FadeWithDistance) {
  Nearby nearby(1);
  nearby.add(pair_of(16, 64), false, std::array{0.3F});
  float before = 0.3F;
  for (const std::int64_t count : {16, 32, 64, 128, 256}) {  // a factor of two more payload each time
    const float now = means(nearby, pair_of(count, 64), 1)[0];
    EXPECT_LT(now, before);
    before = now;
  }
  EXPECT_EQ(means(nearby, pair_of(16'000, 64), 1)[0], 0) << "too far to say anything";
}

TEST(NearbyMeans, AreOfTheNearerMostly) {
  Nearby nearby(1);
  for (const auto& [count, gap] : {std::pair{1000, -0.4F}, {16, 0.4F}, {100'000, -0.1F}})  // not in order
    nearby.add(pair_of(count, 64), false, std::array{gap});
  EXPECT_NEAR(means(nearby, pair_of(17, 64), 1)[0], 0.38, 0.01);
  EXPECT_NEAR(means(nearby, pair_of(990, 64), 1)[0], -0.38, 0.01);
}

TEST(NearbyMeans, OfColdPairsAreApart) {
  Nearby nearby(1);
  nearby.add(pair_of(16, 64), true, std::array{0.3F});
  EXPECT_EQ(means(nearby, pair_of(16, 64), 1)[0], 0);
  EXPECT_GT(means(nearby, pair_of(16, 64), 1, true)[0], 0.2F);
}

TEST(NearbyMeans, AreNeverMoreThanTwice) {
  Nearby nearby(2);
  nearby.add(pair_of(16, 64), false, std::array{50.0F, -50.0F});
  EXPECT_EQ(means(nearby, pair_of(16, 64), 2), (std::vector<float>{Nearby::kMost, -Nearby::kMost}));
}

// --- choices ---------------------------------------------------------------------------------------------------------

// By prices pack_write is a little better; where the pair was measured, sgrs was.
TEST(NearbyChoices, FollowWhatWasMeasured) {
  const Prices some = prices({{Price::post, 100}, {Price::pack_byte, 0.1}, {Price::pack_far_byte, 0.1}, {Price::entry, 12}});
  const auto choose = [&](const guide::Profile& profile, const Layout& src) {
    guide::Guide guide;
    const guide::PeerClass& peer = guide.add(mock_nic({kWire}), profile);
    const auto chosen = guide.choose(src, bytes(src.size()), peer);
    return std::pair(std::string(chosen->way.method->name), chosen->plan.latency_ns);
  };
  guide::Profile profile = mock_profile({{nic::Path::wire, some}});
  const Layout src = vector(20, 64, 128);
  const auto [by_prices, expected] = choose(profile, src);
  ASSERT_NE(by_prices, "sgrs");
  guide::Profile::Class& peers = profile.classes[0];
  const auto way = [](const char* method, method::Notify notify) {
    return guide::Way{method::find(method).value(), nic::Path::wire, notify};
  };
  peers.ways = {way(by_prices.c_str(), choose(profile, src).first == "pack" ? method::Notify::none : method::Notify::flag),
                way("sgrs", method::Notify::none)};
  peers.seen.push_back(
      {.pair = layout::outline(src, bytes(src.size())), .cold = false, .us = {1.5 * expected / 1e3, 0.8 * expected / 1e3}});
  const auto [seen, took] = choose(profile, src);
  EXPECT_EQ(seen, "sgrs");
  EXPECT_NEAR(took, 0.8 * expected, expected * 0.1);
  EXPECT_EQ(choose(profile, vector(20'000, 64, 128)).first, choose(mock_profile({{nic::Path::wire, some}}), vector(20'000, 64, 128)).first);
}

// --- in a file -------------------------------------------------------------------------------------------------------

Json with_seen() {
  Json json = small();
  const auto numbers = guide::numbers_of(pair_of(10, 64));
  json["classes"][0]["ways"] = {"pack/mapped/none", "teleport/mapped/none", "pack_write/mapped/flag"};
  json["classes"][0]["seen"] = Json::array({{{"pair", numbers}, {"cold", false}, {"us", {1.5, 0.1, 0}}}});
  return json;
}

TEST_F(ProfileFile, HasPairsThatWereMeasured) {
  const auto profile = read(with_seen());
  ASSERT_TRUE(profile) << profile.error().text();
  const Profile::Class& peers = profile->classes[0];
  ASSERT_EQ(peers.ways.size(), 2U) << "what another version has is left out";
  EXPECT_EQ(peers.ways[1].method->name, "pack_write");
  ASSERT_EQ(peers.seen.size(), 1U);
  EXPECT_EQ(peers.seen[0].us, (std::vector<double>{1.5, 0}));
  EXPECT_EQ(guide::numbers_of(peers.seen[0].pair), guide::numbers_of(pair_of(10, 64)));
}

TEST_F(ProfileFile, PairsThatAreNoneAreRefused) {
  const auto change = [](const auto& how) {
    Json json = with_seen();
    how(json["classes"][0]);
    return json;
  };
  refuse(change([](Json& c) { c["ways"] = 3; }), {"ways"});
  refuse(change([](Json& c) { c["ways"][0] = 3; }), {"ways"});
  refuse(change([](Json& c) { c["ways"][0] = "pack"; }), {"\"pack\" is no way"});
  refuse(change([](Json& c) { c["seen"] = Json::object(); }), {"seen"});
  refuse(change([](Json& c) { c["seen"][0] = 3; }), {"seen"});
  refuse(change([](Json& c) { c["seen"][0]["us"].push_back(3); }), {"4 times for 3 ways"});
  refuse(change([](Json& c) { c["seen"][0]["us"][0] = -3; }), {"-3"});
  refuse(change([](Json& c) { c["seen"][0]["us"][0] = "x"; }), {"x"});
  refuse(change([](Json& c) { c["seen"][0].erase("us"); }), {"lacks us"});
  refuse(change([](Json& c) { c["seen"][0]["pair"][0] = 0; }), {"no layout"});
  refuse(change([](Json& c) { c["seen"][0]["pair"].erase(3); }), {"13 numbers"});
  refuse(change([](Json& c) { c["seen"][0]["cold"] = 3; }), {});
  refuse(change([](Json& c) { c["seen"] = std::vector<Json>(Profile::Class::kMostSeen + 1, c["seen"][0]); }), {"4096"});
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
