// Jobs that learn which way is best: whatever is tried, each message and each block arrives, and what programs before
// them found out is followed. How long anything takes decides nothing here.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <tuple>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/collective_kinds.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;
using guide::MpiUse;
using guide::MpiWay;

constexpr const char* kVersion = "MPICH Version:\t5.0.0, a fake within one process";
constexpr const char* kVersionOfOpenMpi = "Open MPI, a fake within one process";

class LearningJobs : public testing::Test {
 protected:
  LearningJobs() {
    std::filesystem::create_directories(folder_);
    write_profile();
    setenv("LACUNA_LEARN", "on:10", 1);
    setenv("LACUNA_MPI_OFFER", "", 1);
  }
  ~LearningJobs() override {
    unsetenv("LACUNA_LEARN");
    unsetenv("LACUNA_MPI_OFFER");
    std::filesystem::remove_all(folder_);
  }
  LearningJobs(const LearningJobs&) = delete;
  LearningJobs& operator=(const LearningJobs&) = delete;
  [[nodiscard]] Options options(bool threads = false) const { return {.threads = threads, .profile = folder_ + "/mpi.json"}; }
  // Which of the ways' times a sheet has.
  static double share(MpiWay way, MpiUse use, std::int64_t bytes) {
    if (way != MpiWay::offered || use == MpiUse::send || use == MpiUse::later || bytes < 2048) return 1;
    return bytes < 65536 ? 0.8 : 0.5;
  }
  // By which each way takes as long as the others, so that all are worth a trial, but for collectives of longer blocks,
  // which are offered. `slowly`: all take so long that trials cost nothing beside.
  void write_profile(bool open_mpi = false, bool slowly = false) const {
    nlohmann::json profile{{"schema", "lacuna-mpi-ways/4"},
                           {"library", open_mpi ? "open_mpi" : "mpich"},
                           {"library_version", open_mpi ? kVersionOfOpenMpi : kVersion},
                           {"machine", guide::machine_name()},
                           {"created", "today"},
                           {"bytes", guide::kMpiBytes},
                           {"runs", guide::kMpiRuns}};
    for (std::size_t use = 0; use < guide::kMpiUses; ++use) {
      nlohmann::json& ways = profile["ns"][std::string(guide::mpi_use_name(static_cast<MpiUse>(use)))]["regular"];
      for (const MpiWay way : {MpiWay::host, MpiWay::packed, MpiWay::offered}) {
        if (!guide::mpi_way_serves(way, static_cast<MpiUse>(use))) continue;
        nlohmann::json& sheet = ways[std::string(guide::mpi_way_name(way))];
        for (const std::int64_t bytes : guide::kMpiBytes) {
          const double ns = static_cast<double>(5000 + bytes / 4) * share(way, static_cast<MpiUse>(use), bytes) * (slowly ? 1e6 : 1);
          for (const std::int64_t run : guide::kMpiRuns) sheet.push_back(2 * run <= bytes ? ns : 0);
        }
      }
    }
    std::ofstream(options().profile) << profile;
  }
  static void expect_sound(const Outcome& outcome) {
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
  std::string folder_ = testing::TempDir() + "lacuna_learning_jobs_" + std::to_string(getpid());
};

// Of this rank's job.
bool has_tried() { return !mpi::job->ways.describe_learning().contains("learning: 0 of"); }

// 32 KiB in blocks of so many ints, each with as long a gap.
struct Blocks {
  static constexpr int kInts = 8192;
  int block;
  [[nodiscard]] Datatype type(const Host& mpi) const {
    Datatype made = fake::vector(kInts / block, block, 2 * block, int_type());
    mpi.Type_commit(&made);
    return made;
  }
  [[nodiscard]] std::vector<int> received(int sent) const {
    std::vector<int> made(2 * kInts, -1);
    for (int i = 0; i < 2 * kInts; ++i) {
      if (i / block % 2 == 0) made[static_cast<std::size_t>(i)] = sent + i;
    }
    return made;
  }
};

// There and back, blocking and begun.
void converse(const Host& mpi, int rank, bool begun, const Blocks& blocks) {
  Datatype type = blocks.type(mpi);
  for (int round = 0; round < 400; ++round) {
    std::vector<int> in(2 * Blocks::kInts, -1), out(2 * Blocks::kInts);
    std::iota(out.begin(), out.end(), round + rank);
    if (begun) {
      Request requests[2];
      mpi.Irecv(in.data(), 1, type, 1 - rank, 7, mpi.world, &requests[0]);
      mpi.Isend(out.data(), 1, type, 1 - rank, 7, mpi.world, &requests[1]);
      mpi.Waitall(2, requests, mpi::ignored());
    } else {
      if (rank == 0) mpi.Send(out.data(), 1, type, 1, 7, mpi.world);
      mpi.Recv(in.data(), 1, type, 1 - rank, 7, mpi.world, mpi::ignored());
      if (rank == 1) mpi.Send(out.data(), 1, type, 0, 7, mpi.world);
    }
    ASSERT_EQ(in, blocks.received(round + 1 - rank)) << "round " << round;
  }
  mpi.Type_free(&type);
}

TEST_F(LearningJobs, MoveEachMessage) {
  for (const bool begun : {false, true}) {
    expect_sound(run_preloaded(options(), [&](const Host& mpi, int rank) {
      for (const int block : {1, 16, 128, 1024}) converse(mpi, rank, begun, {block});
      EXPECT_TRUE(has_tried()) << mpi::job->ways.describe_learning();
    }));
  }
}

constexpr int kBlockRounds = 3000;

// So many ints with gaps from each of two ranks to each.
Outcome move_blocks(const Options& options, int ints) {
  return run_preloaded(options, [&](const Host& mpi, int rank) {
    Datatype type = fake::vector(ints, 1, 2, int_type());
    mpi.Type_commit(&type);
    Aint lower = 0, extent = 0;
    mpi.Type_get_extent(type, &lower, &extent);
    const std::size_t each = static_cast<std::size_t>(extent) / sizeof(int);
    bool tried = false;
    for (int round = 0; round < kBlockRounds; ++round) {
      std::vector<int> out(2 * each), in(2 * each, -1);
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = (round * 2 + rank) * 10'000 + static_cast<int>(i);
      EXPECT_EQ(mpi.Alltoall(out.data(), 1, type, in.data(), 1, type, mpi.world), mpi::kSuccess);
      for (std::size_t from = 0; from < 2; ++from) {
        for (std::size_t i = 0; i < each; ++i) {
          const auto sent = (round * 2 + static_cast<int>(from)) * 10'000 + static_cast<int>(static_cast<std::size_t>(rank) * each + i);
          ASSERT_EQ(in[from * each + i], i % 2 == 0 ? sent : -1) << "round " << round << ", from " << from << ", int " << i;
        }
      }
      tried = tried || has_tried();
    }
    EXPECT_TRUE(tried || rank != 0) << mpi::job->ways.describe_learning();
    mpi.Type_free(&type);
  });
}

// 512 bytes with gaps for each, about which the ranks do not ask one another.
TEST_F(LearningJobs, MoveEachBlock) { expect_sound(move_blocks(options(), 128)); }

// What was found out of blocks that are offered, by whichever rank.
std::vector<std::tuple<MpiWay, MpiWay, float>> learned_of_offers() {
  std::vector<std::tuple<MpiWay, MpiWay, float>> all;
  for (const guide::MpiLearned& one : mpi::job->ways.prices().learned()) {
    if (one.first == MpiWay::offered || one.second == MpiWay::offered)
      all.emplace_back(one.first, one.second, static_cast<float>(one.log_ratio));
  }
  return all;
}

// Calls in which all ranks hear of all, by boards: whatever is tried, all arrives, some calls are the MPI's and some
// are not, and each rank knows what the first one has found out.
void expect_tried_together(const Options& options, const collectives::Kind& kind, bool counts) {
  using namespace collectives;
  constexpr int kRounds = 1200;
  std::array<std::vector<std::tuple<MpiWay, MpiWay, float>>, kRanks> learned;
  const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi), longer = gaps(mpi, kLong);
    Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
    for (int round = 0; round <= kRounds; ++round) {  // the first one gains in any case, and has the ranks agree
      Memory memory(rank, round == 0 ? kLong : kInts);
      ASSERT_EQ(kind.call(mpi, memory, round == 0 ? longer : type, ring, rank), mpi::kSuccess);
      ASSERT_NO_FATAL_FAILURE(kind.expect(memory, rank)) << "round " << round;
    }
    learned.at(static_cast<std::size_t>(rank)) = learned_of_offers();
    mpi.Comm_free(&ring);
    mpi.Type_free(&type);
    mpi.Type_free(&longer);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  for (const auto& of_rank : learned) EXPECT_EQ(of_rank, learned[0]);
  if (!counts) return;
  EXPECT_FALSE(learned[0].empty());
  EXPECT_GT(outcome.calls.at(kind.host), kRanks);
  EXPECT_LT(outcome.calls.at(kind.host), kRanks * kRounds);
}

// Where these ranks share CPUs they leave such calls to the MPI, and do not ask about those whose length all know.
TEST_F(LearningJobs, TryTogether) {
  write_profile(false, true);
  for (const collectives::Kind& kind : collectives::kKinds) {
    SCOPED_TRACE(kind.name);
    const Options options{.ranks = collectives::kRanks, .threads = false, .profile = this->options().profile};
    expect_tried_together(options, kind, kind.name == std::string_view("Alltoallv"));
  }
}

// Between two ranks, which mostly have a CPU each, such blocks are offered, and now and then the MPI's.
TEST_F(LearningJobs, LeaveTogether) {
  write_profile(false, true);
  const Outcome outcome = move_blocks(options(), 1024);
  expect_sound(outcome);
  EXPECT_GT(outcome.calls.at("Alltoall"), 2);
  EXPECT_LT(outcome.calls.at("Alltoall"), 2 * kBlockRounds);
}

// Threads that call MPI at once cannot be told apart.
TEST_F(LearningJobs, TryNothingBesideThreads) {
  expect_sound(run_preloaded(options(true), [](const Host& mpi, int rank) {
    one_message(mpi, rank);
    EXPECT_EQ(mpi::job->ways.describe_learning(), "");
  }));
}

// The program of which it is asked what is chosen for its type.
void expect_chosen(const Options& options, MpiWay expected) {
  const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
    if (rank == 0) mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
    if (rank == 1) mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
    EXPECT_EQ(memory, rank == 0 ? numbers(1) : received(1, -100'000));
    const mpi::Type* const known = mpi::job->types.seen(type);
    ASSERT_NE(known, nullptr);
    EXPECT_EQ(mpi::job->ways.choose(MpiUse::send, *known, 1), expected);
    mpi.Type_free(&type);
  });
  EXPECT_TRUE(outcome.wrong.empty());
}

// What a program found out, the next one follows; from a file that is damaged nothing.
void expect_followed(const Options& options, const char* version) {
  guide::Piece piece;
  MpiWay usual{};
  run_preloaded(options, [&](const Host& mpi, int rank) {
    one_message(mpi, rank);
    if (rank != 0) return;
    Datatype type = every_second(mpi);
    const mpi::Use use = mpi::job->types.find(type);
    piece = use->piece(1);
    usual = mpi::job->ways.choose(MpiUse::send, *use.get(), 1);
    mpi.Type_free(&type);
  });
  const MpiWay other = usual == MpiWay::packed ? MpiWay::offered : MpiWay::packed;
  const guide::MpiLearned found{
      .version = version, .use = MpiUse::send, .piece = piece, .first = usual, .second = other, .log_ratio = -0.2, .samples = 8};
  const std::string file = guide::learned_file(options.profile);
  ASSERT_TRUE(guide::merge_mpi_learned(file, std::span(&found, 1)));
  expect_chosen(options, other);
  std::ofstream(file) << "{\"schema\": 1, \"learned\": [3";
  expect_chosen(options, usual);
}

TEST_F(LearningJobs, FollowWhatOthersLearned) { expect_followed(options(), kVersion); }

TEST_F(LearningJobs, FollowWhatOthersLearnedOfOpenMpi) {
  write_profile(true);
  Options options = this->options();
  options.open_mpi = true;
  expect_followed(options, kVersionOfOpenMpi);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
