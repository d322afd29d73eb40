// What is usually best is kept where a profile expects to gain no more than it errs by, so that two profiles of one machine choose alike.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/guide/mock.hpp"

namespace lacuna::test {
namespace {

using guide::Choice;
using guide::Guide;
using guide::Peer;
using guide::Profile;
using guide::Way;
using method::Price;

const Layout kSrc = vector(64, 1024, 4096);
const Layout kDst = bytes(kSrc.size());

std::size_t place_of(const method::Method* method) { return static_cast<std::size_t>(method - method::methods().data()); }

// A profile with the usual prices, which errs by so much, and by which one other way takes a little less than the usual one.
class Margin : public testing::Test {
 protected:
  Margin() {
    Guide guide;
    const Peer& peer = guide.add(mock_nic({kWire}), mock_profile({}));
    usual_ = guide.choose(kSrc, kDst, peer).value();
    const Way over[] = {usual_.way};
    other_ = guide.choose_beside(over, kSrc, kDst, peer, {}).value();
  }
  // `gain`: as the profile expects it, as a logarithm.
  [[nodiscard]] Profile profile(double error_median, double gain) const {
    Profile made = mock_profile({{nic::Path::wire, guide::usual_prices(nic::Path::wire)}});
    Profile::Path& path = made.classes[0].paths[0];
    path.error_median = error_median;
    path.leans.resize(method::methods().size());
    path.leans[place_of(other_.way.method)].at(static_cast<std::size_t>(other_.way.notify))[0] =
        -std::log(other_.plan.latency_ns / usual_.plan.latency_ns) - gain;
    return made;
  }
  [[nodiscard]] Way chosen(double error_median, double gain) const {
    Guide guide;
    const Peer& peer = guide.add(mock_nic({kWire}), profile(error_median, gain));
    return guide.choose(kSrc, kDst, peer).value().way;
  }
  Choice usual_, other_;
};

TEST_F(Margin, GrowsWithWhatTheProfileErrsBy) {
  EXPECT_EQ(chosen(0, 0.001), other_.way) << "of a profile that does not err all is believed";
  EXPECT_EQ(chosen(0.02, 0.001), usual_.way);
  EXPECT_EQ(chosen(0.02, 0.029), usual_.way);
  EXPECT_EQ(chosen(0.02, 0.031), other_.way);
}

// Beside three pairs that were measured and as expected, a quarter of it is left.
TEST_F(Margin, ShrinksBesidePairsThatWereMeasured) {
  for (const double gain : {0.01, 0.02}) {
    Profile known = profile(0.04, gain);
    known.classes[0].ways = {other_.way};
    Guide guide;
    const layout::PairOutline pair = layout::outline(kSrc, kDst);
    const double us = Guide::expect(other_.way, pair, guide.add(mock_nic({kWire}), known)).latency_ns / 1e3;
    known.classes[0].seen.assign(3, {.pair = pair, .us = {us}});
    EXPECT_EQ(guide.choose(kSrc, kDst, guide.add(mock_nic({kWire}), known)).value().way, gain < 0.015 ? usual_.way : other_.way) << gain;
    EXPECT_EQ(chosen(0.04, gain), usual_.way);
  }
}

TEST_F(Margin, IsBounded) {
  EXPECT_EQ(chosen(0.5, std::log(1 + Peer::kMostMargin) - 0.001), usual_.way);
  EXPECT_EQ(chosen(0.5, std::log(1 + Peer::kMostMargin) + 0.001), other_.way);
}

TEST_F(Margin, IsNoneWhereNothingWasMeasured) {
  Guide guide;
  EXPECT_EQ(guide.add(mock_nic({kWire}), mock_profile({})).margin(), 0);
  EXPECT_EQ(guide.add(mock_nic({kWire}), profile(0.04, 0)).margin(), 1.5 * 0.04);
  EXPECT_EQ(guide.add(mock_nic({kWire}), profile(0.3, 0)).margin(), Peer::kMostMargin);
}

// What a program found out for this pair is no expectation.
TEST_F(Margin, IsNoneForWhatWasLearned) {
  Guide guide;
  const Peer& peer = guide.add(mock_nic({kWire}), profile(0.5, 0));
  const Layout unlike = vector(64, 256, 1024);
  const Way before = guide.choose(unlike, bytes(unlike.size()), peer).value().way;
  ASSERT_EQ(guide.choose(kSrc, kDst, peer).value().way, usual_.way);
  const guide::Learned learned{
      .pair = layout::outline(kSrc, kDst), .first = usual_.way, .second = other_.way, .log_ratio = -0.03, .samples = 20};
  guide.learn(peer, learned);
  EXPECT_EQ(guide.choose(kSrc, kDst, peer).value().way, other_.way);
  EXPECT_EQ(guide.choose(unlike, bytes(unlike.size()), peer).value().way, before) << "of another pair nothing was learned";
}

// A learner asks for what is expected to be best beside the chosen way, not for what is usual.
TEST_F(Margin, IsNoneForTheNextBest) {
  Guide guide;
  const Peer& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.1));
  const Way over[] = {usual_.way};
  EXPECT_EQ(guide.choose_beside(over, kSrc, kDst, peer, {}).value().way, other_.way);
}

TEST_F(Margin, IsExplained) {
  Guide guide;
  const Peer& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.1));
  const auto why = guide.explain(kSrc, kDst, peer);
  ASSERT_TRUE(why) << why.error().text();
  EXPECT_EQ(why->candidates[0].way, usual_.way);
  EXPECT_EQ(why->candidates[1].way, other_.way);
  const std::string text = guide::describe(*why);
  EXPECT_TRUE(text.contains("\n  kept as what is usually best: less than 13.0% to gain cannot be told here\n")) << text;
  EXPECT_TRUE(text.contains("9.5% less, within the profile's error")) << text;
  const Peer& exact = guide.add(mock_nic({kWire}), profile(0, 0.1));
  EXPECT_FALSE(guide::describe(guide.explain(kSrc, kDst, exact).value()).contains("usually")) << "the best one needs no excuse";
}

// The other way wins where it takes less by more than the margin, and nothing is said to win where the chosen one is kept.
TEST_F(Margin, HoldsForCrossoversToo) {
  Guide guide;
  const Peer& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.1));
  const auto why = guide.explain(kSrc, kDst, peer).value();
  ASSERT_EQ(why.candidates[1].way, other_.way);
  EXPECT_EQ(why.candidates[1].crossover, "would win from 1.41 KiB blocks")
      << "without a margin from 1.09 KiB on, the first that is looked at";
}

}  // namespace
}  // namespace lacuna::test
