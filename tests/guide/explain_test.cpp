// What a guide remembers, and what it says: the same as it chose, of every way, with times that add up.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "tests/guide/mock.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(gate, "WayBytes.AnyBytesAreAWayOrMalformed");
LACUNA_TIER(gate, "Memo.KnowsPlacementsAndPeersApart");
LACUNA_LEFT_OUT(thread, "WayBytes.*");
LACUNA_LEFT_OUT(thread, "Memo.*");
LACUNA_LEFT_OUT(thread, "Explain.*");
LACUNA_TIER(gate, "Memo.MorePairsThanItHolds");

using guide::Candidate;
using guide::Choice;
using guide::Explanation;
using guide::Guide;
using guide::Objective;
using guide::PeerClass;
using guide::Placement;
using guide::Way;
using method::Method;
using support::Random;

constexpr Objective kObjectives[] = {Objective::latency, Objective::bandwidth, Objective::cpu};

double merit(const guide::ExpectedCost& plan, Objective objective) {
  return objective == Objective::latency     ? plan.latency_ns
         : objective == Objective::bandwidth ? plan.busiest_ns
                                             : plan.cpu_ns[0] + plan.cpu_ns[1];
}

bool same(const Choice& a, const Choice& b) {
  return a.way == b.way && a.plan.latency_ns == b.plan.latency_ns && a.plan.busiest_ns == b.plan.busiest_ns;
}

nic::Limits usual_nic() { return mock_nic({kMapped, kKernel, kWire}, 1000); }

// --- what is remembered ----------------------------------------------------------------------------------------------

TEST(Memo, TheSameAgain) {
  Guide guide;
  const PeerClass& peer = guide.add(usual_nic(), {});
  const Layout src = vector(100, 8, 30);
  const Choice first = guide.choose(src, bytes(800), peer).value();
  EXPECT_TRUE(same(first, guide.choose(src, bytes(800), peer).value()));
  EXPECT_TRUE(same(first, guide.choose(vector(100, 8, 30), bytes(800), peer).value()));  // another way to write it
  guide.forget();
  EXPECT_TRUE(same(first, guide.choose(src, bytes(800), peer).value()));
}

// Every placement of every peer has an answer of its own, in whatever order they are asked for.
TEST(Memo, KnowsPlacementsAndPeersApart) {
  Guide guide;
  const PeerClass* peers[] = {&guide.add(usual_nic(), {}), &guide.add(usual_nic(), {}, 2.7), &guide.add(mock_nic({kWire}), {}),
                              &guide.add(mock_nic({kKernel}, 10), mock_profile({{nic::Path::kernel, prices({{Price::pack_run, 1000}})}}))};
  std::set<std::string> answers;
  for (int round = 0; round < 2; ++round) {
    for (const PeerClass* peer : peers) {
      for (int bits = 0; bits < 32; ++bits) {
        for (const Objective objective : kObjectives) {
          const Placement placement{.src_shared = (bits & 1) != 0,
                                    .dst_shared = (bits & 2) != 0,
                                    .cold = (bits & 4) != 0,
                                    .told = (bits & 8) != 0,
                                    .uses = (bits & 16) != 0 ? 1.0F : 0.0F,
                                    .objective = objective};
          const Choice kept = guide.choose(vector(100, 8, 30), bytes(800), *peer, placement).value();
          const Explanation fresh = guide.explain(vector(100, 8, 30), bytes(800), *peer, placement).value();
          ASSERT_EQ(kept.way, fresh.candidates.front().way);
          ASSERT_EQ(kept.plan.latency_ns, fresh.candidates.front().plan.latency_ns);
          answers.insert(std::to_string(kept.plan.latency_ns));
        }
      }
    }
  }
  EXPECT_GT(answers.size(), 10U);
}

TEST(Memo, TheWayBackIsAnotherWay) {
  Guide guide;
  const PeerClass& peer = guide.add(usual_nic(), mock_profile({{nic::Path::mapped, prices({{Price::pack_run, 1}})}}));
  const Choice there = guide.choose(vector(100, 8, 30), bytes(800), peer, {.objective = Objective::cpu}).value();
  const Choice back = guide.choose(bytes(800), vector(100, 8, 30), peer, {.objective = Objective::cpu}).value();
  EXPECT_EQ(there.way, guide.explain(vector(100, 8, 30), bytes(800), peer, {.objective = Objective::cpu})->candidates.front().way);
  EXPECT_EQ(back.way, guide.explain(bytes(800), vector(100, 8, 30), peer, {.objective = Objective::cpu})->candidates.front().way);
}

// More pairs than there is room for: who takes another's place leaves no trace of it.
TEST(Memo, MorePairsThanItHolds) {
  Guide guide;
  Guide forgetful;
  const PeerClass& peer = guide.add(usual_nic(), {});
  const PeerClass& alike = forgetful.add(usual_nic(), {});
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 12'000; ++i) {
      const Layout src = vector(2 + i % 400, 8 + i / 400, 1000);
      const Layout dst = bytes(src.size());
      forgetful.forget();
      ASSERT_TRUE(same(guide.choose(src, dst, peer).value(), forgetful.choose(src, dst, alike).value())) << i;
    }
  }
}

// An error is not remembered as an answer.
TEST(Memo, DoesNotKeepErrors) {
  Guide guide;
  const PeerClass& peer = guide.add(usual_nic(), {});
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(guide.choose(bytes(8), bytes(9), peer));
}

// --- what is said ----------------------------------------------------------------------------------------------------

guide::Profile random_profile(Random& random, const nic::Limits& limits) {
  guide::Profile profile = mock_profile({});
  for (const nic::PathInfo& info : limits.paths) {
    guide::Profile::Path path{.path = info.path, .prices = {}, .biases = {}, .error_median = random.one_in(2) ? 0.04 : 0};
    for (double& price : path.prices) price = random.one_in(6) ? 0 : std::exp2(static_cast<double>(random.between(-10, 20)));
    if (random.one_in(2)) {
      path.biases.resize(method::methods().size());
      for (auto& notifies : path.biases) {
        for (guide::Bias& bias : notifies) {
          for (double& x : bias) x = static_cast<double>(random.between(-100, 100)) / 300;
        }
      }
    }
    profile.classes[0].paths.push_back(path);
  }
  return profile;
}

void expect_sound(const Explanation& why, const Choice& choice, const PeerClass& peer) {
  const Objective objective = why.placement.objective;
  const Candidate& best = why.candidates.front();
  EXPECT_EQ(best.way, choice.way);
  EXPECT_EQ(best.plan.latency_ns, choice.plan.latency_ns);
  EXPECT_EQ(best.plan.busiest_ns, choice.plan.busiest_ns);
  EXPECT_EQ(best.plan.cpu_ns[0], choice.plan.cpu_ns[0]);
  EXPECT_EQ(best.plan.cpu_ns[1], choice.plan.cpu_ns[1]);
  EXPECT_EQ(best.crossover, "");
  EXPECT_EQ(best.refusal, "");
  std::map<std::tuple<const Method*, nic::Path, method::Notify>, int> seen;
  bool refused = false;
  double before = 0;
  for (const Candidate& c : why.candidates) {
    ++seen[{c.way.method, c.way.path, c.way.notify}];
    if (!c.refusal.empty()) {
      refused = true;
      continue;
    }
    EXPECT_FALSE(refused) << "those that cannot come last";
    const double cost = merit(c.plan, objective);
    EXPECT_GE(cost, before * (1 - 1e-9)) << "from best to worst";
    before = &c == &best && best.way == why.usual ? cost / (1 + peer.hysteresis()) : cost;
    const double stages = std::accumulate(c.stages_ns.begin(), c.stages_ns.end(), 0.0);
    EXPECT_NEAR(stages, c.plan.latency_ns, 1e-9 * stages);
    EXPECT_LE(c.factor, guide::kMostBias * 1.000001);
    EXPECT_GE(c.factor, 1 / guide::kMostBias / 1.000001);
    const guide::ExpectedCost alone = Guide::expect(c.way, why.pair, peer, why.placement);
    EXPECT_EQ(alone.latency_ns, c.plan.latency_ns);
    EXPECT_EQ(alone.busiest_ns, c.plan.busiest_ns);
  }
  std::size_t ways = 0;
  for (const nic::PathInfo& path : peer.limits().paths) {
    for (const Method& method : method::methods()) {
      for (const method::Notify notify : method.notifies) {
        const int times = seen[{&method, path.path, notify}];
        EXPECT_EQ(times, 1) << method.name << " on " << nic::path_name(path.path);
        ++ways;
      }
    }
  }
  EXPECT_EQ(why.candidates.size(), ways);
}

TEST(Explain, HasEveryWayOnceTheChosenOneFirst) {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    nic::Limits limits = usual_nic();
    limits.paths[1].available = !random.one_in(3);
    if (random.one_in(3)) limits.indirect = {};
    Guide guide;
    const PeerClass& peer = guide.add(limits, random_profile(random, limits));
    const support::Sample src = support::random_layout(random);
    const support::Sample dst = support::random_layout_of_size(random, src.layout.size());
    const Placement placement{.src_shared = random.one_in(2),
                              .dst_shared = random.one_in(2),
                              .cold = random.one_in(2),
                              .told = random.one_in(2),
                              .uses = random.one_in(2) ? 3.0F : 0.0F,
                              .objective = kObjectives[seed % 3]};
    const auto why = guide.explain(src.layout, dst.layout, peer, placement);
    ASSERT_TRUE(why) << why.error().text();
    expect_sound(*why, guide.choose(src.layout, dst.layout, peer, placement).value(), peer);
    EXPECT_EQ(why->profile, &peer.profile());
    const std::string text = guide::describe(*why);
    EXPECT_TRUE(text.starts_with("Chosen: " + std::string(why->candidates.front().way.method->name))) << text;
    for (const Candidate& c : why->candidates) {
      if (!c.refusal.empty()) {
        EXPECT_TRUE(text.contains(c.refusal)) << text;
      }
    }
  }
}

// A bias is bounded however large its numbers are, as those of a file may be.
TEST(Bias, IsBoundedForAnyNumbers) {
  const guide::Bias features = guide::bias_features(layout::outline(vector(1000, 8, 16), bytes(8000)), true);
  for (const guide::Bias& bias : {guide::Bias{}, guide::Bias{1e308, 1e308, 1e308, 1e308}, guide::Bias{-1e308, -1e308, -1e308},
                                  guide::Bias{1e308, 1e308, -1e308, -1e308, 1e308, 1e308, -1e308, -1e308},
                                  guide::Bias{1.7e308, -1.7e308, 1.7e308, 1.7e308, -1.7e308, -1.7e308, 1.7e308, -1.7e308}}) {
    for (const double sign : {1.0, -1.0}) {
      guide::Bias signed_bias = bias;
      for (double& x : signed_bias) x *= sign;
      const double factor = guide::bias_factor(signed_bias, features);
      EXPECT_TRUE(factor >= 1 / guide::kMostBias / 1.000001 && factor <= guide::kMostBias * 1.000001) << factor;
      // Features of other pairs have other signs.
      guide::Bias turned = features;
      for (std::size_t i = 0; i < turned.size(); i += 2) turned[i] = -3 * turned[i];
      const double other = guide::bias_factor(signed_bias, turned);
      EXPECT_TRUE(other >= 1 / guide::kMostBias / 1.000001 && other <= guide::kMostBias * 1.000001) << other;
    }
  }
  EXPECT_EQ(guide::bias_factor({}, features), 1);
}

// --- a way as bytes --------------------------------------------------------------------------------------------------

TEST(WayBytes, RoundTrip) {
  for (const Method& method : method::methods()) {
    for (const nic::Path path : {nic::Path::mapped, nic::Path::slots, nic::Path::kernel, nic::Path::wire}) {
      for (const method::Notify notify : method.notifies) {
        const Way way{&method, path, notify};
        const auto again = Way::decode(way.encode());
        ASSERT_TRUE(again) << again.error().text();
        EXPECT_EQ(*again, way);
      }
    }
  }
}

TEST(WayBytes, AnyBytesAreAWayOrMalformed) {
  std::vector<std::byte> wire;
  const auto check = [&] {
    const auto way = Way::decode(wire);
    if (!way) {
      EXPECT_EQ(way.error().code, base::Code::malformed);
      return;
    }
    EXPECT_TRUE(std::ranges::equal(way->encode(), wire));
    EXPECT_NE(std::ranges::find(way->method->notifies, way->notify), way->method->notifies.end());
  };
  int valid = 0;
  check();
  for (int a = 0; a < 256; ++a) {
    wire = {std::byte(a)};
    check();
    for (int b = 0; b < 256; ++b) {
      wire = {std::byte(a), std::byte(b)};
      check();
      for (int c = 0; c < 256; ++c) {
        wire = {std::byte(a), std::byte(b), std::byte(c)};
        // Only errors have text to be made; a corner of all is enough of those.
        if (a > 20 && b > 8 && c > 8 && (a * b + c) % 97 != 0) continue;
        check();
        valid += Way::decode(wire) ? 1 : 0;
      }
    }
  }
  int ways = 0;
  for (const Method& method : method::methods()) ways += 4 * static_cast<int>(method.notifies.size());
  EXPECT_EQ(valid, ways);
  wire = {std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0}};
  check();
  EXPECT_FALSE(Way::decode(wire));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
