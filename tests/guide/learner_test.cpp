// A learner beside a world in which it is known what each way takes: it finds the best one, for a bounded price,
// whatever the profile says.
#include "lacuna/guide/learner.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/guide/profile_file.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Learner;
using guide::Learning;
using guide::LearnOptions;
using guide::Way;

const Prices kPrices = prices({{Price::pack_byte, 0.11},
                               {Price::write_byte, 0.1},
                               {Price::request, 100},
                               {Price::entry, 20},
                               {Price::write_flag, 300},
                               {Price::write_imm, 250}});

// The profile thinks that a request costs little and copying much; so the guide gathers. In truth a way takes what
// `truth` says, by method's name.
class Learns : public testing::Test {
 protected:
  Learns() {
    guide::Profile profile = mock_profile({{nic::Path::wire, kPrices}});
    profile.classes[0].message_us = 3;
    peer_ = &guide_.add(mock_nic({kWire}), profile, 3);
  }
  [[nodiscard]] std::string chosen(const Layout& src) {
    return std::string(guide_.choose(src, bytes(src.size()), *peer_).value().way.method->name);
  }
  // What a way really takes.
  double ns_of(const Layout& src, const guide::Choice& choice) {
    const auto found = truth_.find(std::string(choice.way.method->name));
    const double noise = 1 + noise_ * (static_cast<double>(next() % 2001) / 1000 - 1);
    return noise * (found != truth_.end() ? found->second : 1.4) * base_ns_ * static_cast<double>(src.size());
  }
  // Transfers, round and round; what they took together.
  double run(Learner& learner, const std::vector<Layout>& layouts, int rounds) {
    double all = 0;
    for (int i = 0; i < rounds; ++i) {
      for (const Layout& src : layouts) {
        const auto chosen = learner.choose(guide_, src, bytes(src.size()), *peer_, {});
        EXPECT_TRUE(chosen) << chosen.error().text();
        const double ns = ns_of(src, chosen->choice);
        all += ns;
        if (chosen->trial != 0) learner.took(guide_, chosen->trial, ns);
      }
    }
    return all;
  }
  std::uint64_t next() { return (state_ = state_ * 6364136223846793005 + 1442695040888963407) >> 33; }

  guide::Guide guide_;
  const guide::PeerClass* peer_ = nullptr;
  std::map<std::string, double> truth_;
  double base_ns_ = 0.2, noise_ = 0;
  std::uint64_t state_ = 7;
};

const Layout kOne = vector(64, 1024, 4096);

// The guide's order is by what it expects; the truth turns the first two round.
TEST_F(Learns, WhatIsReallyBest) {
  const std::string first = chosen(kOne);
  const guide::Choice best = guide_.choose(kOne, bytes(kOne.size()), *peer_).value();
  const Way over[] = {best.way};
  const guide::Choice second = guide_.choose_beside(over, kOne, bytes(kOne.size()), *peer_, {}).value();
  ASSERT_NE(best.way, second.way);
  truth_ = {{first, 1.2}};
  // Notifications and kinds of one method take the same; another method takes less.
  for (const method::Method& method : method::methods()) {
    if (method.name != first) truth_[std::string(method.name)] = 1.3;
  }
  std::string better;
  for (std::vector<Way> tried{best.way}; better.empty();) {
    const guide::Choice next = guide_.choose_beside(tried, kOne, bytes(kOne.size()), *peer_, {}).value();
    ASSERT_LT(next.plan.latency_ns, 1.5 * best.plan.latency_ns);
    if (next.way.method != best.way.method) better = next.way.method->name;
    tried.push_back(next.way);
  }
  truth_[better] = 1;
  noise_ = 0.05;
  Learner learner({.learning = Learning::on, .one_in = 20});
  run(learner, {kOne}, 100'000);
  EXPECT_EQ(chosen(kOne), better);
  const Learner::Statistics statistics = learner.statistics();
  EXPECT_GE(statistics.better, 1);
  EXPECT_GT(statistics.settled, statistics.better);
  EXPECT_EQ(statistics.transfers, 100'000);
  EXPECT_LT(statistics.extra_ns, 0.0051 * statistics.all_ns);
  EXPECT_TRUE(statistics.describe().contains("of 100000 transfers")) << statistics.describe();
  ASSERT_FALSE(learner.learned().empty());
  EXPECT_EQ(learner.learned()[0].message_us, 3);
}

// However bad what it tries is, a program hardly notices.
TEST_F(Learns, ForABoundedPrice) {
  const std::string first = chosen(kOne);
  for (const method::Method& method : method::methods()) truth_[std::string(method.name)] = 8;
  truth_[first] = 1;
  const std::vector<Layout> layouts{kOne, vector(100, 512, 700), vector(16, 8192, 20'000), vector(999, 64, 100)};
  double never = 0;
  for (const Layout& src : layouts) never += 50'000 * ns_of(src, guide_.choose(src, bytes(src.size()), *peer_).value());
  Learner learner({.learning = Learning::on, .one_in = 10});
  const double all = run(learner, layouts, 50'000);
  EXPECT_GT(learner.statistics().tried, 8);
  EXPECT_LT(all / never, 1.0051);
  EXPECT_NEAR(learner.statistics().extra_ns, all - never, 0.1 * (all - never) + 1e6);
  EXPECT_EQ(chosen(kOne), first);
}

TEST_F(Learns, OneInSoMany) {
  LearnOptions options{.learning = Learning::observe, .one_in = 50};
  Learner learner(options);
  run(learner, {kOne}, 10'000);
  EXPECT_LE(learner.statistics().tried, 10'000 / 50 + 2);
  EXPECT_GT(learner.statistics().tried, 10);
}

TEST_F(Learns, ButOnlyTellsWhenItObserves) {
  const std::string first = chosen(kOne);
  truth_ = {{first, 3}};
  for (const method::Method& method : method::methods()) truth_.try_emplace(std::string(method.name), 1);
  Learner learner({.learning = Learning::observe, .one_in = 10});
  run(learner, {kOne}, 50'000);
  EXPECT_GE(learner.statistics().better, 1);
  EXPECT_EQ(chosen(kOne), first);
}

TEST_F(Learns, NothingWhenItIsOff) {
  Learner learner({.one_in = 10});
  run(learner, {kOne}, 1000);
  EXPECT_EQ(learner.statistics().tried, 0);
  EXPECT_EQ(learner.statistics().transfers, 0);
}

// What nobody tells of, or tells too late, is no harm.
TEST_F(Learns, FromTrialsThatEnd) {
  Learner learner({.learning = Learning::on, .one_in = 10});
  std::uint32_t lost = 0;
  int trials = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto chosen = learner.choose(guide_, kOne, bytes(kOne.size()), *peer_, {});
    ASSERT_TRUE(chosen);
    if (chosen->trial == 0) continue;
    ++trials;
    if (lost != 0) learner.took(guide_, lost, 1);
    lost = chosen->trial;
  }
  EXPECT_GT(trials, 5);
  EXPECT_EQ(learner.statistics().settled, 0);
  EXPECT_TRUE(learner.learned().empty());
}

// Each takes now this time, now ten times as long: nothing is decided by chance.
TEST_F(Learns, LittleFromNoise) {
  const std::string first = chosen(kOne);
  for (const method::Method& method : method::methods()) truth_[std::string(method.name)] = 1;
  noise_ = 0.9;
  Learner learner({.learning = Learning::on, .one_in = 10});
  run(learner, {kOne}, 200'000);
  EXPECT_GT(learner.statistics().settled, 1);
  EXPECT_LE(learner.statistics().better, learner.statistics().settled / 4 + 1);
}

TEST(LearnOptions, AreTheEnvironments) {
  const Variable unset("LACUNA_LEARN");
  EXPECT_EQ(LearnOptions::from_environment()->learning, Learning::off);
  const auto said = [](const std::string& text) {
    const Variable set("LACUNA_LEARN", text);
    return LearnOptions::from_environment();
  };
  EXPECT_EQ(said("on")->learning, Learning::on);
  EXPECT_EQ(said("on")->one_in, 100);
  EXPECT_EQ(said("observe:1000")->learning, Learning::observe);
  EXPECT_EQ(said("observe:1000")->one_in, 1000);
  for (const std::string wrong : {"yes", "on:", "on:5", "on:10x", "on:9999999999999", "ON", ":10", "on:-20"}) {
    ASSERT_FALSE(said(wrong)) << wrong;
    EXPECT_EQ(said(wrong).error().code, base::Code::invalid_argument);
    EXPECT_TRUE(said(wrong).error().message.contains("\"" + wrong + "\"")) << said(wrong).error().message;
  }
}

// --- the file --------------------------------------------------------------------------------------------------------

class LearnedFile : public ProfileFile {
 protected:
  [[nodiscard]] std::string learned() const { return guide::learned_file(file()); }
  static guide::Learned one(std::int64_t count, double log_ratio, int samples = 4) {
    const Layout src = vector(count, 64, 128);
    return {.pair = layout::outline(src, bytes(src.size())),
            .first = {method::find("pack").value(), nic::Path::wire, method::Notify::none},
            .second = {method::find("pack_write").value(), nic::Path::wire, method::Notify::flag},
            .log_ratio = log_ratio,
            .samples = samples};
  }
  void merge(std::vector<guide::Learned> some) const {
    const auto merged = guide::merge_learned(learned(), some);
    ASSERT_TRUE(merged) << merged.error().text();
  }
};

TEST_F(LearnedFile, IsBesideTheProfile) {
  EXPECT_EQ(guide::learned_file("a/local.json"), "a/local.learned.json");
  EXPECT_EQ(guide::learned_file("a/.json/local"), "a/.json/local.learned.json");
}

TEST_F(LearnedFile, KeepsTheMean) {
  merge({one(10, 0.2, 4), one(20, -0.1)});
  guide::Learned turned = one(10, -0.5, 12);
  std::swap(turned.first, turned.second);
  merge({turned});
  const auto all = guide::read_learned(learned()).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].same(one(10, 0)));
  EXPECT_DOUBLE_EQ(all[0].log_ratio, (4 * 0.2 + 12 * 0.5) / 16);
  EXPECT_EQ(all[0].samples, 16);
  EXPECT_DOUBLE_EQ(all[1].log_ratio, -0.1);
}

TEST_F(LearnedFile, LosesNothingWhenManyEndAtOnce) {
  constexpr int kProcesses = 8, kRounds = 10;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      bool all = true;
      for (int round = 0; round < kRounds; ++round) {
        const guide::Learned own[] = {one(100 + process * kRounds + round, 0.1), one(7, 0.3, 1)};
        all = guide::merge_learned(learned(), own).has_value() && all;
      }
      _exit(all ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto all = guide::read_learned(learned()).value();
  EXPECT_EQ(all.size(), 1U + kProcesses * kRounds);
  const auto shared = std::ranges::find_if(all, [](const guide::Learned& each) { return each.same(one(7, 0)); });
  ASSERT_NE(shared, all.end());
  EXPECT_EQ(shared->samples, kProcesses * kRounds);
  EXPECT_NEAR(shared->log_ratio, 0.3, 1e-9);
}

TEST_F(LearnedFile, KeepsThoseWithMostSamples) {
  std::vector<guide::Learned> many;
  for (int i = 0; i < 600; ++i) many.push_back(one(10 + i, 0.1, 4 + i % 2));
  merge(many);
  const auto all = guide::read_learned(learned()).value();
  ASSERT_EQ(all.size(), guide::kMostLearned);
  EXPECT_EQ(std::ranges::count(all, 5, &guide::Learned::samples), 300);
}

TEST_F(LearnedFile, ThatCannotBeReadIsReplaced) {
  for (const std::string text : {"", "{", "[]", "{\"schema\": 1}", R"({"schema": 2, "machine": "", "learned": []})",
                                 R"({"schema": 1, "machine": 3, "learned": []})"}) {
    write(learned(), text);
    const auto read = guide::read_learned(learned());
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, base::Code::invalid_argument);
    EXPECT_TRUE(read.error().message.contains(learned())) << read.error().message;
    merge({one(10, 0.2)});
    EXPECT_EQ(guide::read_learned(learned()).value().size(), 1U) << text;
  }
}

TEST_F(LearnedFile, RefusesWhatIsNoComparison) {
  merge({one(10, 0.2)});
  std::ifstream in(learned());
  const Json right = Json::parse(in);
  const auto refused = [&](const std::string& member, const Json& value, std::string_view word) {
    Json wrong = right;
    wrong["learned"][0][member] = value;
    write(learned(), wrong.dump());
    const auto read = guide::read_learned(learned());
    ASSERT_FALSE(read) << member << value;
    EXPECT_TRUE(read.error().message.contains(word)) << read.error().message;
  };
  refused("pair", Json::array({1, 2}), "2 numbers");
  refused("pair", 3, "list");
  refused("ways", Json::array({"pack/wire/none"}), "1 ways");
  refused("ways", Json::array({"pack/wire/none", "pack"}), "no way");
  refused("log_ratio", 1e300, "log_ratio");
  refused("log_ratio", "much", "log_ratio");
  refused("samples", -1, "samples");
  refused("message_us", nullptr, "message_us");
  refused("cold", "yes", "boolean");
  // What another version knows is skipped; what another machine found out too.
  Json newer = right;
  newer["learned"][0]["ways"][1] = "teleport/wire/none";
  write(learned(), newer.dump());
  EXPECT_TRUE(guide::read_learned(learned()).value().empty());
  Json elsewhere = right;
  elsewhere["machine"] = "another";
  write(learned(), elsewhere.dump());
  EXPECT_TRUE(guide::read_learned(learned()).value().empty());
}

TEST_F(LearnedFile, SaysWhereItCannotBeWritten) {
  const std::string nowhere = "/proc/nowhere/local.learned.json";
  const guide::Learned some[] = {one(10, 0.2)};
  const auto merged = guide::merge_learned(nowhere, some);
  ASSERT_FALSE(merged);
  EXPECT_EQ(merged.error().code, base::Code::io);
  EXPECT_TRUE(merged.error().message.contains(nowhere)) << merged.error().message;
}

// What one process learned, the next one knows.
TEST_F(LearnedFile, IsPartOfTheProfile) {
  const Variable named("LACUNA_PROFILE", file());
  const Layout src = vector(64, 1024, 4096);
  const auto choose = [&](std::span<const Way> beside = {}, double message_us = 2.7) {
    guide::Guide guide;
    guide::Profile profile = guide::find_profile("local");
    profile.classes = mock_profile({{nic::Path::wire, kPrices}}).classes;
    profile.classes[0].message_us = message_us;
    const guide::PeerClass& peer = guide.add(mock_nic({kWire}), profile);
    return guide.choose_beside(beside, src, bytes(src.size()), peer, {}).value().way;
  };
  const Way first = choose();
  const Way over[] = {first};
  const Way second = choose(over);
  merge({{.pair = layout::outline(src, bytes(src.size())),
          .message_us = 2.7,
          .first = first,
          .second = second,
          .log_ratio = -0.3,
          .samples = 8}});
  EXPECT_EQ(choose(), second);
  EXPECT_EQ(choose({}, 3), second);  // measured again, and a message takes a little longer
  EXPECT_EQ(choose({}, 9), first);   // peers far apart
  write(learned(), "nothing");
  EXPECT_EQ(choose(), first);
  EXPECT_TRUE(guide::find_profile("local").warnings.back().contains("left out"));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
