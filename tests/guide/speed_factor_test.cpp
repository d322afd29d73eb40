// Peers of a class are not always equally quick: what is expected of them follows, what is chosen does not.
#include <gtest/gtest.h>

#include "tests/guide/mock.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Guide;
using guide::PeerClass;
using guide::Profile;

constexpr double kUsual = 3;

Profile measured() {
  Profile made = mock_profile({{nic::Path::wire, guide::usual_prices(nic::Path::wire)}});
  made.classes[0].message_us = kUsual;
  return made;
}

TEST(SpeedFactor, IsOfTheClass) {
  EXPECT_EQ(Profile::speed_factor(kUsual, kUsual), 1);
  EXPECT_NEAR(Profile::speed_factor(1.2 * kUsual, kUsual), 1.136, 0.001);
  EXPECT_NEAR(Profile::speed_factor(kUsual / 1.2, kUsual), 1 / 1.136, 0.001);
  EXPECT_EQ(Profile::speed_factor(0, kUsual), 1) << "unknown";
  EXPECT_EQ(Profile::speed_factor(kUsual, 0), 1);
}

TEST(SpeedFactor, IsInAllThatIsExpectedAndInNoChoice) {
  const Layout src = vector(64, 1024, 4096);
  const Layout dst = bytes(src.size());
  const layout::PairOutline pair = layout::outline(src, dst);
  Guide guide;
  const PeerClass& usual = guide.add(mock_nic({kWire}), measured(), kUsual);
  const guide::Explanation expected = guide.explain(src, dst, usual).value();
  for (const double message_us : {0.0, 2.0, 3.9}) {
    const PeerClass& peer = guide.add(mock_nic({kWire}), measured(), message_us);
    const double factor = Profile::speed_factor(message_us, kUsual);
    EXPECT_EQ(peer.speed_factor(), factor);
    const guide::Choice choice = guide.choose(src, dst, peer).value();
    EXPECT_EQ(choice.way, expected.candidates[0].way);
    EXPECT_DOUBLE_EQ(choice.plan.latency_ns, factor * expected.candidates[0].plan.latency_ns);
    EXPECT_DOUBLE_EQ(Guide::expect(choice.way, pair, peer, {}).latency_ns, choice.plan.latency_ns);
    const guide::Explanation now = guide.explain(src, dst, peer).value();
    ASSERT_EQ(now.candidates.size(), expected.candidates.size());
    for (std::size_t i = 0; i < now.candidates.size(); ++i) {
      EXPECT_EQ(now.candidates[i].way, expected.candidates[i].way);
      EXPECT_EQ(now.candidates[i].crossover, expected.candidates[i].crossover);
      EXPECT_DOUBLE_EQ(now.candidates[i].plan.latency_ns, factor * expected.candidates[i].plan.latency_ns);
      for (std::size_t k = 0; k < now.candidates[i].stages_ns.size(); ++k)
        EXPECT_DOUBLE_EQ(now.candidates[i].stages_ns.at(k), factor * expected.candidates[i].stages_ns.at(k));
    }
  }
}

// What a profile has measured, it has at the speed of its class.
TEST(SpeedFactor, IsInWhatWasMeasuredOnce) {
  const Layout src = vector(64, 1024, 4096);
  const Layout dst = bytes(src.size());
  const layout::PairOutline pair = layout::outline(src, dst);
  Guide guide;
  const guide::Way way = guide.choose(src, dst, guide.add(mock_nic({kWire}), measured(), kUsual)).value().way;
  const double billed_us = Guide::expect(way, pair, guide.add(mock_nic({kWire}), measured(), kUsual), {}).latency_ns / 1e3;
  Profile profile = measured();
  profile.classes[0].ways = {way};
  profile.classes[0].seen.assign(50, {.pair = pair, .cold = false, .us = {1.5 * billed_us}});
  for (const double message_us : {kUsual, 3.9}) {
    const PeerClass& peer = guide.add(mock_nic({kWire}), profile, message_us);
    const double expected_us = 1.5 * billed_us * Profile::speed_factor(message_us, kUsual);
    EXPECT_NEAR(Guide::expect(way, pair, peer, {}).latency_ns / 1e3, expected_us, 0.05 * expected_us);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
