// What a preloaded program learns of its MPI's ways, in a world in which it is known what each way takes; and the file
// in which it is kept.
#include "lacuna/guide/mpi_learner.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/guide/mock.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Learning;
using guide::MpiLearned;
using guide::MpiLearner;
using guide::MpiLibrary;
using guide::MpiPrices;
using guide::MpiUse;
using guide::MpiWay;
using guide::Piece;
using Json = nlohmann::json;

constexpr Piece kPiece{.bytes = 16384, .run = 64};
constexpr MpiUse kUse = MpiUse::send;
constexpr std::array kWays{MpiWay::host, MpiWay::packed, MpiWay::offered};

// A program of rounds: a transfer, what its receiver does, what both compute, a wait. Time is a number.
class MpiLearns : public testing::Test {
 protected:
  // What all takes that goes a way, over what is expected of the chosen one.
  double slowness(MpiWay way) {
    const auto found = truth_.find(way);
    return (found != truth_.end() ? found->second : 1.3) * (1 + noise_ * static_cast<double>(random_.between(-1000, 1000)) / 1000);
  }
  // Rounds with one transfer to each of `peers`; what they took together.
  double run(MpiLearner& learner, int rounds, int peers = 1, bool waits = true) {
    const double began = now_;
    for (int round = 0; round < rounds; ++round) {
      for (int to = 0; to < peers; ++to) {
        MpiWay way = prices_.choose(kUse, piece_);
        if (!learner.rests()) way = learner.start(prices_, {.use = kUse, .piece = piece_, .to = to}, static_cast<std::int64_t>(now_)).way;
        now_ += base_ns_ * slowness(way) + computes_ns_;
      }
      if (waits) learner.waited();
    }
    return now_ - began;
  }
  // Of least time by what is expected; the next best.
  [[nodiscard]] std::pair<MpiWay, MpiWay> first_two() const {
    const MpiWay first = prices_.choose(kUse, piece_);
    return {first, *prices_.best_beside(std::array{first}, kUse, piece_, ~0U)};
  }

  // Of which the second best way is expected to take little longer.
  [[nodiscard]] Piece open_question() const {
    for (const std::int64_t bytes : guide::kMpiBytes) {
      for (const std::int64_t run : guide::kMpiRuns) {
        const Piece piece{.bytes = bytes, .run = run};
        const MpiWay first = prices_.choose(kUse, piece);
        const auto second = prices_.best_beside(std::array{first}, kUse, piece, ~0U);
        if (2 * run <= bytes && second && prices_.ns(kUse, *second, piece) < 1.3 * *prices_.ns(kUse, first, piece)) return piece;
      }
    }
    ADD_FAILURE() << "no two ways take nearly as long";
    return {.bytes = 4096, .run = 64};
  }

  MpiPrices prices_ = MpiPrices::usual(MpiLibrary::mpich, guide::Distance::near, guide::UsualCpu::zen4);
  Piece piece_ = open_question();
  double base_ns_ = *prices_.ns(kUse, prices_.choose(kUse, piece_), piece_);
  double now_ = 1, noise_ = 0, computes_ns_ = 0;
  std::map<MpiWay, double> truth_;
  support::Random random_{7};
};

TEST_F(MpiLearns, WhatIsReallyBest) {
  const auto [first, second] = first_two();
  truth_ = {{first, 1.2}, {second, 1}};
  noise_ = 0.05;
  MpiLearner learner({.learning = Learning::on, .one_in = 20}, "MPICH 9");
  run(learner, 100'000);
  EXPECT_EQ(prices_.choose(kUse, piece_), second);
  EXPECT_EQ(prices_.choose(kUse, {.bytes = piece_.bytes * 5 / 4, .run = piece_.run * 5 / 4}), second);  // near
  ASSERT_FALSE(learner.learned().empty());
  EXPECT_EQ(learner.learned()[0].version, "MPICH 9");
  EXPECT_TRUE(learner.describe().contains("of 100000 transfers")) << learner.describe();
}

// What a program computes between is in each round, by either way.
TEST_F(MpiLearns, WhatIsBestThoughMostIsComputing) {
  const auto [first, second] = first_two();
  truth_ = {{first, 1.3}, {second, 1}};
  computes_ns_ = 4 * base_ns_;
  MpiLearner learner({.learning = Learning::on, .one_in = 20}, "");
  run(learner, 100'000);
  EXPECT_EQ(prices_.choose(kUse, piece_), second);
}

TEST_F(MpiLearns, ForABoundedPrice) {
  const MpiWay first = prices_.choose(kUse, piece_);
  for (const MpiWay way : kWays) truth_[way] = way == first ? 1 : 8;
  constexpr int kRounds = 200'000;
  MpiLearner learner({.learning = Learning::on, .one_in = 10}, "");
  const double took = run(learner, kRounds);
  EXPECT_EQ(prices_.choose(kUse, piece_), first);
  EXPECT_GT(learner.tried(), 0);
  EXPECT_LT(took, 1.0055 * kRounds * base_ns_);
  EXPECT_LT(learner.extra_ns(), 0.0055 * learner.all_ns());
}

// A program whose sender never waits: no round tells what its messages take.
TEST_F(MpiLearns, NothingWhereNobodyWaits) {
  const auto [first, second] = first_two();
  truth_ = {{first, 1.5}, {second, 1}};
  MpiLearner learner({.learning = Learning::on, .one_in = 10}, "");
  run(learner, 100'000, 1, false);
  EXPECT_TRUE(learner.learned().empty());
  EXPECT_EQ(prices_.choose(kUse, piece_), first);
  EXPECT_LT(learner.tried(), 200);  // and it is seldom tried
}

// A round to one of several ranks is from its message to its next one.
TEST_F(MpiLearns, OfMessagesToSeveralRanks) {
  const auto [first, second] = first_two();
  truth_ = {{first, 1.4}, {second, 1}};
  MpiLearner learner({.learning = Learning::on, .one_in = 20}, "");
  run(learner, 100'000, 4);
  EXPECT_EQ(prices_.choose(kUse, piece_), second);
}

// A trial whose next transfer went another way says nothing.
TEST_F(MpiLearns, NothingOfTrialsThatAreBrokenOff) {
  const MpiWay first = first_two().first;
  MpiLearner learner({.learning = Learning::on, .one_in = 10}, "");
  int tried = 0;
  for (int round = 0; round < 50'000; ++round) {
    now_ += base_ns_;
    learner.waited();
    if (learner.rests()) continue;
    if (!learner.start(prices_, {.use = kUse, .piece = piece_}, static_cast<std::int64_t>(now_)).tries) continue;
    ++tried;
    learner.break_off();
  }
  EXPECT_GT(tried, 10);
  EXPECT_EQ(learner.settled(), 0);
  EXPECT_EQ(prices_.choose(kUse, piece_), first);
}

TEST_F(MpiLearns, LittleFromNoise) {
  for (const MpiWay way : kWays) truth_[way] = 1;
  noise_ = 0.9;
  MpiLearner learner({.learning = Learning::on, .one_in = 10}, "");
  run(learner, 300'000);
  EXPECT_GT(learner.settled(), 1);
  EXPECT_LE(learner.better(), learner.settled() / 4 + 1);
}

TEST_F(MpiLearns, AndChoosesAsEverWhereItObserves) {
  const auto [first, second] = first_two();
  truth_ = {{first, 1.3}, {second, 1}};
  MpiLearner learner({.learning = Learning::observe, .one_in = 10}, "");
  run(learner, 50'000);
  EXPECT_FALSE(learner.learned().empty());
  EXPECT_TRUE(prices_.learned().empty());
  EXPECT_EQ(prices_.choose(kUse, piece_), first);
}

// --- choices ---------------------------------------------------------------------------------------------------------

TEST_F(MpiLearns, OverruleWhatIsExpectedOfNearPiecesOnly) {
  const auto [first, second] = first_two();
  prices_.learn({.version = "", .use = kUse, .piece = piece_, .first = first, .second = second, .log_ratio = -0.1, .samples = 4});
  const MpiPrices usual = MpiPrices::usual(MpiLibrary::mpich, guide::Distance::near, guide::UsualCpu::zen4);
  EXPECT_EQ(prices_.choose(kUse, piece_), second);
  for (const Piece& other : {Piece{.bytes = 4 * piece_.bytes, .run = piece_.run}, Piece{.bytes = piece_.bytes, .run = 4 * piece_.run},
                             Piece{.bytes = piece_.bytes, .run = piece_.run, .listed = true}})
    EXPECT_EQ(prices_.choose(kUse, other), usual.choose(kUse, other));
  EXPECT_EQ(prices_.choose(MpiUse::later, piece_), usual.choose(MpiUse::later, piece_));
  // The same the other way round: later trials found the opposite.
  prices_.learn({.version = "", .use = kUse, .piece = piece_, .first = second, .second = first, .log_ratio = -0.1, .samples = 4});
  EXPECT_EQ(prices_.choose(kUse, piece_), first);
}

// Whatever comparisons say, and if each way is better than the next one all round: one that can be is chosen.
TEST_F(MpiLearns, NothingThatCannotBe) {
  for (int round = 0; round < 2000; ++round) {
    MpiPrices prices = MpiPrices::usual(MpiLibrary::open_mpi, guide::Distance::near, guide::UsualCpu::zen4);
    const auto draw = [&](std::int64_t below) { return static_cast<std::size_t>(random_.below(below)); };
    const auto use = static_cast<MpiUse>(draw(std::int64_t{guide::kMpiUses}));
    for (int i = 0; i < 4; ++i) {
      prices.learn({.version = "",
                    .use = use,
                    .piece = piece_,
                    .first = kWays.at(draw(3)),
                    .second = kWays.at(draw(3)),
                    .log_ratio = static_cast<double>(random_.between(-500, 500)) / 1000,
                    .samples = 4});
    }
    const auto ways = static_cast<unsigned>(draw(8));
    const MpiWay chosen = prices.choose(use, piece_, ways);
    EXPECT_TRUE(guide::mpi_way_serves(chosen, use));
    EXPECT_TRUE(chosen == MpiWay::host || (ways >> static_cast<unsigned>(chosen) & 1U) != 0);
  }
}

// --- the file --------------------------------------------------------------------------------------------------------

class MpiLearnedFile : public testing::Test {
 protected:
  MpiLearnedFile() { std::filesystem::create_directories(folder_); }
  ~MpiLearnedFile() override { std::filesystem::remove_all(folder_); }
  MpiLearnedFile(const MpiLearnedFile&) = delete;
  MpiLearnedFile& operator=(const MpiLearnedFile&) = delete;
  [[nodiscard]] std::string learned() const { return MpiPrices::learned_file_of(MpiLibrary::mpich); }
  static MpiLearned one(double log_ratio, const std::string& version = "MPICH 9") {
    return {.version = version,
            .use = kUse,
            .piece = kPiece,
            .first = MpiWay::offered,
            .second = MpiWay::packed,
            .log_ratio = log_ratio,
            .samples = 4};
  }
  void write(const std::string& text) const { std::ofstream(learned()) << text; }
  void merge(const MpiLearned& some) const {
    const auto merged = guide::merge_mpi_learned(learned(), std::span(&some, 1));
    ASSERT_TRUE(merged) << merged.error().text();
  }
  std::string folder_ = testing::TempDir() + "lacuna_mpi_learned_" + std::to_string(getpid());
  Variable named_{"LACUNA_MPI_PROFILE", folder_ + "/mpi-mpich.json"};
};

TEST_F(MpiLearnedFile, IsPartOfTheTimes) {
  EXPECT_EQ(learned(), folder_ + "/mpi-mpich.learned.json");
  // Of this machine, as find().
  const MpiWay usual = MpiPrices::usual(MpiLibrary::mpich, guide::Distance::near).choose(kUse, kPiece);
  ASSERT_EQ(usual, MpiWay::offered);
  merge(one(-0.3));
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, guide::Distance::near, "MPICH 9").choose(kUse, kPiece), MpiWay::packed);
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, guide::Distance::near, "MPICH 8").choose(kUse, kPiece), usual);
  EXPECT_EQ(MpiPrices::find(MpiLibrary::mpich, guide::Distance::near, "MPICH 9").warning(), "");
}

// What is better between near CPUs says nothing of distant ones, and both are kept. Files of before distances were told
// apart are of near ones.
TEST_F(MpiLearnedFile, IsOfOneDistance) {
  MpiLearned distant = one(0.3);
  distant.distance = guide::Distance::distant;
  merge(one(-0.3));
  merge(distant);
  const auto of = [&](guide::Distance distance) {
    const MpiPrices found = MpiPrices::find(MpiLibrary::mpich, distance, "MPICH 9");
    return found.learned().size() == 1 ? found.learned().front().log_ratio : 0;
  };
  EXPECT_EQ(guide::read_mpi_learned(learned()).value().size(), 2U);
  EXPECT_DOUBLE_EQ(of(guide::Distance::near), -0.3);
  EXPECT_DOUBLE_EQ(of(guide::Distance::distant), 0.3);
  std::ifstream in(learned());
  Json older = Json::parse(in);
  for (Json& each : older["learned"]) each.erase("distance");
  write(older.dump());
  const std::vector<MpiLearned> all = guide::read_mpi_learned(learned()).value();
  for (const MpiLearned& each : all) EXPECT_EQ(each.distance, guide::Distance::near);
}

TEST_F(MpiLearnedFile, KeepsTheMean) {
  merge(one(-0.3));
  MpiLearned turned = one(-0.1);
  std::swap(turned.first, turned.second);
  turned.samples = 12;
  merge(turned);
  merge(one(0.2, "MPICH 8"));
  const auto all = guide::read_mpi_learned(learned()).value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(all[0].same(one(0)));
  EXPECT_DOUBLE_EQ(all[0].log_ratio, (-4 * 0.3 + 12 * 0.1) / 16);
  EXPECT_EQ(all[0].samples, 16);
}

TEST_F(MpiLearnedFile, ThatCannotBeReadChangesNothing) {
  merge(one(-0.3));
  std::ifstream in(learned());
  const Json right = Json::parse(in);
  const auto with = [&](const std::string& member, const Json& value) {
    Json wrong = right;
    wrong["learned"][0][member] = value;
    return wrong.dump();
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), with("bytes", 0), with("bytes", -5), with("bytes", "many"), with("run", 1e300),
        with("run", 0), with("use", 3), with("ways", Json::array({"host"})), with("ways", 3), with("ways", Json::array({1, 2})),
        with("log_ratio", 1e9), with("log_ratio", nullptr), with("samples", -1), with("library_version", 7), with("listed", "yes"),
        with("distance", 3)}) {
    write(text);
    const auto read = guide::read_mpi_learned(learned());
    ASSERT_FALSE(read) << text;
    EXPECT_TRUE(read.error().message.contains(learned())) << read.error().message;
    const MpiPrices found = MpiPrices::find(MpiLibrary::mpich, guide::Distance::near, "MPICH 9");
    EXPECT_TRUE(found.learned().empty());
    EXPECT_TRUE(found.warning().contains("left out")) << found.warning();
    merge(one(-0.2));
    EXPECT_EQ(guide::read_mpi_learned(learned()).value().size(), 1U) << text;
  }
  // What another version knows is skipped, and what another machine found out.
  for (const std::string& text :
       {with("use", "teleport"), with("distance", "elsewhere"), with("ways", Json::array({"host", "teleport"})), [&] {
          Json elsewhere = right;
          elsewhere["machine"] = "another";
          return elsewhere.dump();
        }()}) {
    write(text);
    EXPECT_TRUE(guide::read_mpi_learned(learned()).value().empty()) << text;
  }
  Json never = right;  // a way that is none for that use
  never["learned"][0]["use"] = "alltoallw";
  write(never.dump());
  EXPECT_TRUE(guide::read_mpi_learned(learned()).value().empty());
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
