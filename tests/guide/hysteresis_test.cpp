// What is usually best is kept where a profile cannot tell that another way takes less, so that two profiles of one
// machine choose alike.
#include <gtest/gtest.h>

#include <cmath>

#include "lacuna/guide/learner.hpp"
#include "tests/guide/mock.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Choice;
using guide::Guide;
using guide::PeerClass;
using guide::Profile;
using guide::Way;
using method::Price;

const Layout kSrc = vector(64, 1024, 4096);
const Layout kDst = bytes(kSrc.size());

std::size_t place_of(const method::Method* method) { return static_cast<std::size_t>(method - method::methods().data()); }

// With the usual prices, but that `other` takes less than `usual` by so much, as a logarithm; it errs by so much.
Profile profile_of(double error_median, const Choice& usual, const Choice& other, double gain) {
  Profile made = mock_profile({{nic::Path::wire, guide::usual_prices(nic::Path::wire)}});
  Profile::Path& path = made.classes[0].paths[0];
  path.error_median = error_median;
  path.biases.resize(method::methods().size());
  path.biases[place_of(other.way.method)].at(static_cast<std::size_t>(other.way.notify))[0] =
      -std::log(other.plan.latency_ns / usual.plan.latency_ns) - gain;
  return made;
}

class Hysteresis : public testing::Test {
 protected:
  Hysteresis() {
    Guide guide;
    const PeerClass& peer = guide.add(mock_nic({kWire}), mock_profile({}));
    usual_ = guide.choose(kSrc, kDst, peer).value();
    const Way over[] = {usual_.way};
    other_ = guide.choose_beside(over, kSrc, kDst, peer, {}).value();
  }
  [[nodiscard]] Profile profile(double error_median, double gain) const { return profile_of(error_median, usual_, other_, gain); }
  [[nodiscard]] Way chosen(double error_median, double gain) const {
    Guide guide;
    const PeerClass& peer = guide.add(mock_nic({kWire}), profile(error_median, gain));
    return guide.choose(kSrc, kDst, peer).value().way;
  }
  Choice usual_, other_;
};

TEST_F(Hysteresis, GrowsWithWhatTheProfileErrsBy) {
  EXPECT_EQ(chosen(0, 0.001), other_.way) << "of a profile that does not err all is believed";
  EXPECT_EQ(chosen(0.02, 0.001), usual_.way);
  EXPECT_EQ(chosen(0.02, 0.029), usual_.way);
  EXPECT_EQ(chosen(0.02, 0.031), other_.way);
}

// A profile that saw the pair itself three times, by one way, just as it expects it.
Profile with_seen(Profile profile, const Way& way, bool cold = false) {
  Guide guide;
  const layout::PairOutline pair = layout::outline(kSrc, kDst);
  const double us = Guide::expect(way, pair, guide.add(mock_nic({kWire}), profile), {.cold = cold}).latency_ns / 1e3;
  profile.classes[0].ways = {way};
  profile.classes[0].seen.assign(3, {.pair = pair, .cold = cold, .us = {us}});
  return profile;
}

Way chosen_by(const Profile& profile, const guide::Placement& placement = {}) {
  Guide guide;
  return guide.choose(kSrc, kDst, guide.add(mock_nic({kWire}), profile), placement).value().way;
}

// Beside three pairs that were measured, a quarter of it is left, for the way by which they were.
TEST_F(Hysteresis, ShrinksBesidePairsThatWereMeasured) {
  for (const double gain : {0.01, 0.02}) {
    const Profile plain = profile(0.04, gain);
    const Way expected = gain < 0.015 ? usual_.way : other_.way;
    EXPECT_EQ(chosen_by(with_seen(plain, other_.way)), expected) << gain;
    EXPECT_EQ(chosen_by(with_seen(plain, usual_.way)), usual_.way) << "of the other way as little is known as before";
    EXPECT_EQ(chosen_by(with_seen(plain, other_.way, true)), usual_.way) << "cold ones say nothing of warm ones";
    EXPECT_EQ(chosen_by(plain), usual_.way);
  }
}

// What a profile errs by is known of latencies.
TEST_F(Hysteresis, IsOfLatenciesAlone) {
  const guide::Placement cpu{.objective = guide::Objective::cpu};
  const Way usual = chosen_by(profile(0, 0), cpu);
  for (const double less : {0.2, 0.5, 0.8, 0.9, 0.95, 0.99}) {  // wherever another way comes first, it is taken at once
    Profile exact = profile(0, 0);
    for (const method::Price price : {Price::pack_byte, Price::unpack_byte, Price::request, Price::entry})
      exact.classes[0].paths[0].prices[static_cast<std::size_t>(price)] *= less;
    Profile errs = exact;
    errs.classes[0].paths[0].error_median = 0.5;
    EXPECT_EQ(chosen_by(errs, cpu), chosen_by(exact, cpu)) << less;
  }
  Guide guide;
  const auto why = guide.explain(kSrc, kDst, guide.add(mock_nic({kWire}), profile(0.5, 0)), cpu).value();
  EXPECT_FALSE(why.usual.has_value());
  EXPECT_EQ(why.candidates[0].way, usual);
}

// Of several paths the one that errs most.
TEST_F(Hysteresis, IsThatOfTheWorstPath) {
  Profile two = profile(0.02, 0);
  two.classes[0].paths.push_back(
      {.path = nic::Path::kernel, .prices = guide::usual_prices(nic::Path::kernel), .biases = {}, .error_median = 0.06});
  Guide guide;
  EXPECT_EQ(guide.add(mock_nic({kWire, kKernel}), two).hysteresis(), 1.5 * 0.06);
}

// Of what a force leaves, too, one is usually best.
TEST_F(Hysteresis, IsOfWhatAForceLeaves) {
  Guide forced({.method = method::find("gather_write").value(), .path = {}});
  const PeerClass& plain = forced.add(mock_nic({kWire}), mock_profile({}));
  const Choice usual = forced.choose(kSrc, kDst, plain).value();
  const Way over[] = {usual.way};
  const Choice other = forced.choose_beside(over, kSrc, kDst, plain, {}).value();
  ASSERT_EQ(usual.way.method, other.way.method);
  const auto chosen = [&](double error_median) {
    return forced.choose(kSrc, kDst, forced.add(mock_nic({kWire}), profile_of(error_median, usual, other, 0.05))).value().way;
  };
  EXPECT_EQ(chosen(0.5), usual.way);
  EXPECT_EQ(chosen(0), other.way);
}

TEST_F(Hysteresis, IsBounded) {
  EXPECT_EQ(chosen(0.5, std::log(1 + PeerClass::kMostHysteresis) - 0.001), usual_.way);
  EXPECT_EQ(chosen(0.5, std::log(1 + PeerClass::kMostHysteresis) + 0.001), other_.way);
}

TEST_F(Hysteresis, IsThereWhereSomethingWasMeasured) {
  Guide guide;
  EXPECT_EQ(guide.add(mock_nic({kWire}), mock_profile({})).hysteresis(), 0);
  EXPECT_EQ(guide.add(mock_nic({kWire}), profile(0.04, 0)).hysteresis(), 1.5 * 0.04);
  EXPECT_EQ(guide.add(mock_nic({kWire}), profile(0.3, 0)).hysteresis(), PeerClass::kMostHysteresis);
}

// What a program found out for this pair is no expectation.
TEST_F(Hysteresis, IsNoneForWhatWasLearned) {
  Guide guide;
  const PeerClass& peer = guide.add(mock_nic({kWire}), profile(0.5, 0));
  const Layout unlike = vector(64, 256, 1024);
  const Way before = guide.choose(unlike, bytes(unlike.size()), peer).value().way;
  ASSERT_EQ(guide.choose(kSrc, kDst, peer).value().way, usual_.way);
  const guide::Learned learned{
      .pair = layout::outline(kSrc, kDst), .first = usual_.way, .second = other_.way, .log_ratio = -0.03, .samples = 20};
  guide.learn(peer, learned);
  EXPECT_EQ(guide.choose(kSrc, kDst, peer).value().way, other_.way);
  EXPECT_EQ(guide.choose(unlike, bytes(unlike.size()), peer).value().way, before) << "of another pair nothing was learned";
  EXPECT_TRUE(guide::describe(guide.explain(kSrc, kDst, peer).value()).starts_with("Chosen: " + std::string(other_.way.method->name)));
}

// A program that learns finds out that the other way takes less, though by less than the hysteresis, and keeps to it.
TEST_F(Hysteresis, IsNoHindranceToLearning) {
  Guide guide;
  const PeerClass& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.02));
  guide::Learner learner({.learning = guide::Learning::on, .one_in = 10});
  Way last;
  for (int i = 0; i < 5000; ++i) {
    const auto chosen = learner.choose(guide, kSrc, kDst, peer, {}).value();
    const double truth = chosen.choice.way == other_.way ? 0.95 : chosen.choice.way == usual_.way ? 1 : 1.2;
    if (chosen.trial != 0) learner.took(guide, chosen.trial, truth * usual_.plan.latency_ns);
    last = guide.choose(kSrc, kDst, peer).value().way;
    if (i == 0) {
      EXPECT_EQ(last, usual_.way);
    }
  }
  EXPECT_EQ(last, other_.way);
}

// A learner asks for what is expected to be best beside the chosen way, not for what is usual.
TEST_F(Hysteresis, IsNoneForTheNextBest) {
  Guide guide;
  const Way first[] = {usual_.way, other_.way};
  const Choice third = guide.choose_beside(first, kSrc, kDst, guide.add(mock_nic({kWire}), mock_profile({})), {}).value();
  Profile turned = profile(0.5, -0.05);
  turned.classes[0].paths[0].biases[place_of(third.way.method)].at(static_cast<std::size_t>(third.way.notify))[0] =
      -std::log(third.plan.latency_ns / usual_.plan.latency_ns);
  const Way over[] = {usual_.way};
  EXPECT_EQ(guide.choose_beside(over, kSrc, kDst, guide.add(mock_nic({kWire}), turned), {}).value().way, third.way);
  EXPECT_EQ(guide.choose_beside({}, kSrc, kDst, guide.add(mock_nic({kWire}), profile(0.5, 0.05)), {}).value().way, other_.way);
}

TEST_F(Hysteresis, IsExplained) {
  Guide guide;
  const PeerClass& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.1));
  const auto why = guide.explain(kSrc, kDst, peer);
  ASSERT_TRUE(why) << why.error().text();
  EXPECT_EQ(why->candidates[0].way, usual_.way);
  EXPECT_EQ(why->candidates[1].way, other_.way);
  const std::string text = guide::describe(*why);
  EXPECT_TRUE(text.contains("\n  kept as what is usually best: too little is known here of what seems to take less\n")) << text;
  EXPECT_TRUE(text.contains("9.5% less, within the profile's error")) << text;
  const PeerClass& exact = guide.add(mock_nic({kWire}), profile(0, 0.1));
  EXPECT_FALSE(guide::describe(guide.explain(kSrc, kDst, exact).value()).contains("kept as")) << "the best one needs no excuse";
}

// The other way wins where it takes less by more than the hysteresis, and nothing is said to win where the chosen one
// is kept.
TEST_F(Hysteresis, HoldsForCrossoversToo) {
  Guide guide;
  const PeerClass& peer = guide.add(mock_nic({kWire}), profile(0.5, 0.1));
  const auto why = guide.explain(kSrc, kDst, peer).value();
  EXPECT_EQ(why.candidates[0].way, usual_.way);
  EXPECT_EQ(why.candidates[0].crossover, "");
  ASSERT_EQ(why.candidates[1].way, other_.way);
  EXPECT_EQ(why.candidates[1].crossover, "would win from 1.41 KiB blocks")
      << "without hysteresis from 1.09 KiB on, the first that is looked at";
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
