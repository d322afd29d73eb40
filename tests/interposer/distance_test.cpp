// How far CPUs are from one another: what times of lines say, what the library measures, and what follows from it.
#include "lacuna/mpi/process/distance.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <optional>
#include <thread>
#include <vector>

#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/mpi/host/cpus.hpp"
#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;
using guide::Distance;
using guide::MpiUse;
using guide::MpiWay;
using mpi::DistanceEstimate;
using mpi::LineTimes;

constexpr auto kNear = static_cast<std::int64_t>(guide::usual::kDistantLine / 4);
constexpr auto kDistant = static_cast<std::int64_t>(guide::usual::kDistantLine * 4);

TEST(Distances, AreKnownAfterSomeLines) {
  DistanceEstimate estimate;
  for (std::size_t line = 0; line < DistanceEstimate::kLast - 1; ++line) {
    EXPECT_FALSE(estimate.add(kDistant));
    EXPECT_EQ(estimate.now(), std::nullopt);
    EXPECT_EQ(estimate.line_ns(), 0);
  }
  EXPECT_TRUE(estimate.add(kDistant));
  EXPECT_EQ(estimate.now(), Distance::distant);
  EXPECT_EQ(estimate.line_ns(), kDistant);
}

// A rank that lost its CPU in the middle of a look has seen nothing of lines.
TEST(Distances, DoNotFollowOneTime) {
  DistanceEstimate estimate;
  int changes = 0;
  for (int line = 0; line < 40; ++line) changes += estimate.add(line % 3 == 0 ? 4'000'000 : kNear) ? 1 : 0;
  EXPECT_EQ(changes, 1);
  EXPECT_EQ(estimate.now(), Distance::near);
}

TEST(Distances, FollowCpusThatMove) {
  DistanceEstimate estimate;
  const auto changes_of = [&](std::int64_t ns) {
    int changes = 0;
    for (std::size_t line = 0; line < 2 * DistanceEstimate::kLast; ++line) changes += estimate.add(ns) ? 1 : 0;
    return changes;
  };
  EXPECT_EQ(changes_of(kNear), 1);
  EXPECT_EQ(changes_of(kDistant), 1);
  EXPECT_EQ(estimate.now(), Distance::distant);
  EXPECT_EQ(changes_of(kNear), 1);
  EXPECT_EQ(estimate.now(), Distance::near);
}

// Times about the bound change nothing over and over.
TEST(Distances, StayAsTheyAreNearTheBound) {
  DistanceEstimate estimate;
  int changes = 0;
  for (int line = 0; line < 1000; ++line) {
    const double share = line / 10 % 2 == 0 ? 0.9 : 1.1;
    changes += estimate.add(static_cast<std::int64_t>(guide::usual::kDistantLine * share)) ? 1 : 0;
  }
  EXPECT_EQ(changes, 1);
}

// Jobs that choose.
class DistanceOfJobs : public testing::Test {
 protected:
  DistanceOfJobs() { setenv("LACUNA_MPI_OFFER", "", 1); }
  ~DistanceOfJobs() override { unsetenv("LACUNA_MPI_OFFER"); }
  DistanceOfJobs(const DistanceOfJobs&) = delete;
  DistanceOfJobs& operator=(const DistanceOfJobs&) = delete;
  static Options open_mpi(const std::string& distance, int ranks = 2) {
    return {.ranks = ranks, .threads = false, .open_mpi = true, .distance = distance};
  }
  static void expect_sound(const Outcome& outcome) {
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
};

// Two ranks of a node that have a CPU each.
class MeasuredDistances : public DistanceOfJobs {
 protected:
  void SetUp() override {
    if (const mpi::Cpus own = mpi::own_cpus(); mpi::crowded(std::array{own, own})) GTEST_SKIP() << "two ranks share CPUs here";
    std::atomic<bool> reads = true;
    run_preloaded(open_mpi(""), [&](const Host&, int) {
      if (!mpi::job->lines->reads()) reads = false;
    });
    if (!reads) GTEST_SKIP() << "reading this machine's clock takes too long to time a line";
  }
  using Step = std::function<void(const Host& mpi, int rank, Datatype type, std::vector<int>& sent, std::vector<int>& received)>;
  // Ranks of pairs do the same over and over, until each must have heard of the other one. Whether the times say
  // anything depends on what else the machine does.
  static void expect_heard(const Options& options, const Step& step);
};

// A vector of blocks of as many ints as there are between them.
Datatype blocks(const Host& mpi, std::int64_t bytes, std::int64_t run) {
  const auto ints = static_cast<Count>(run / static_cast<std::int64_t>(sizeof(int)));
  Datatype type = fake::vector(bytes / run, ints, 2 * ints, int_type());
  mpi.Type_commit(&type);
  return type;
}

// Messages for which this machine's usual times choose that between near CPUs, and that between distant ones.
std::optional<guide::Piece> piece_of(MpiWay near, MpiWay distant) {
  const auto usual = [](Distance distance, const guide::Piece& piece) {
    return guide::MpiPrices::usual(guide::MpiLibrary::open_mpi, distance).choose(MpiUse::send, piece);
  };
  for (const std::int64_t bytes : guide::kMpiBytes) {
    for (const std::int64_t run : guide::kMpiRuns) {
      const guide::Piece piece{.bytes = bytes, .run = run};
      if (2 * run <= bytes && usual(Distance::near, piece) == near && usual(Distance::distant, piece) == distant) return piece;
    }
  }
  return std::nullopt;
}

void hear_of(int local, std::int64_t ns) {
  mpi::Job& job = *mpi::job;
  for (std::size_t line = 0; line < DistanceEstimate::kLast; ++line) {
    if (job.lines->add(local, ns)) job.ways.know_distance(job.lines->all(), job.lines->mixed());
  }
}

TEST_F(DistanceOfJobs, IsWhatTheUserSays) {
  for (const char* said : {"near", "distant"}) {
    expect_sound(run_preloaded(open_mpi(said), [&](const Host&, int rank) {
      EXPECT_EQ(guide::distance_name(mpi::job->lines->of(1 - rank)), said);
      EXPECT_EQ(guide::distance_name(mpi::job->ways.distance()), said);
      EXPECT_EQ(guide::distance_name(mpi::job->ways.prices().distance()), said);
      for (int call = 0; call < 3 * LineTimes::kEvery; ++call) EXPECT_FALSE(mpi::job->looks());
    }));
  }
}

TEST_F(DistanceOfJobs, IsOfEachRank) {
  expect_sound(run_preloaded(open_mpi("near", 4), [](const Host&, int rank) {
    if (rank != 0) return;
    const LineTimes& lines = *mpi::job->lines;
    hear_of(1, kNear);
    EXPECT_EQ(lines.of(1), Distance::near);
    EXPECT_EQ(lines.of(3), Distance::near);
    EXPECT_FALSE(lines.mixed());
    hear_of(2, kDistant);
    EXPECT_EQ(lines.of(1), Distance::near);
    EXPECT_EQ(lines.of(2), Distance::distant);
    EXPECT_TRUE(lines.mixed());
    EXPECT_EQ(lines.of(3), Distance::near);  // as before, since as many are near as distant
    hear_of(3, kDistant);
    EXPECT_EQ(lines.of(1), Distance::near);
    EXPECT_EQ(mpi::job->ways.distance(), Distance::distant);
    hear_of(3, kNear);
    EXPECT_EQ(mpi::job->ways.distance(), Distance::near);
    hear_of(2, kNear);
    EXPECT_FALSE(lines.mixed());
  }));
}

// Each message goes as is best to where its receiver is, and a type knows both.
TEST_F(DistanceOfJobs, DecidesWhatIsChosen) {
  const std::optional<guide::Piece> piece = piece_of(MpiWay::host, MpiWay::offered);
  ASSERT_TRUE(piece);
  expect_sound(run_preloaded(open_mpi("near", 3), [&](const Host& mpi, int rank) {
    if (rank != 0) return;
    Datatype type = blocks(mpi, piece->bytes, piece->run);
    const mpi::Use use = mpi::job->types.find(type);
    ASSERT_NE(use.get(), nullptr);
    const mpi::Ways& ways = mpi::job->ways;
    const auto chosen = [&](int local) {
      return ways.choose(MpiUse::send, *use.get(), 1, mpi::job->distance_of({.local = local, .remote = -1}));
    };
    EXPECT_EQ(chosen(1), MpiWay::host);
    EXPECT_TRUE(ways.leaves(MpiUse::send, use.get(), 1));
    hear_of(1, kNear);
    hear_of(2, kDistant);
    EXPECT_FALSE(ways.leaves(MpiUse::send, use.get(), 1));
    EXPECT_EQ(chosen(2), MpiWay::offered);
    EXPECT_EQ(chosen(1), MpiWay::host);
    EXPECT_EQ(chosen(2), MpiWay::offered);
    EXPECT_FALSE(ways.leaves(MpiUse::send, use.get(), 1));
    hear_of(2, kNear);
    EXPECT_EQ(chosen(2), MpiWay::host);
    EXPECT_TRUE(ways.leaves(MpiUse::send, use.get(), 1));
    mpi.Type_free(&type);
  }));
}

// What is left to the host whatever rank it is for is told at once from the second message on, also where some ranks
// are near and others distant. Collectives go by what most ranks are.
TEST_F(DistanceOfJobs, LeavesAtOnceWhatItLeft) {
  const std::optional<guide::Piece> piece = piece_of(MpiWay::host, MpiWay::host);
  ASSERT_TRUE(piece);
  expect_sound(run_preloaded(open_mpi("near", 3), [&](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, piece->bytes, piece->run);
    std::vector<int> data(2 * static_cast<std::size_t>(piece->bytes) / sizeof(int), rank);
    const mpi::Use use = mpi::job->types.find(type);
    const mpi::Ways& ways = mpi::job->ways;
    if (rank == 0) {
      hear_of(1, kNear);
      hear_of(2, kDistant);
      ASSERT_TRUE(ways.mixed());
      EXPECT_FALSE(ways.leaves(MpiUse::send, use.get(), 1));
      mpi.Send(data.data(), 1, type, 1, 7, mpi.world);
      EXPECT_EQ(ways.leaves(MpiUse::send, use.get(), 1), ways.choose(MpiUse::later, *use.get(), 1) == MpiWay::host || !mpi::job->crowded);
      const bool packs = ways.packs(MpiUse::bcast, *use.get(), 1);
      EXPECT_EQ(ways.leaves(MpiUse::bcast, use.get(), 1, mpi::Type::Among::host_and_packed), !packs);
    }
    if (rank == 1) mpi.Recv(data.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
    mpi.Type_free(&type);
  }));
}

void MeasuredDistances::expect_heard(const Options& options, const Step& step) {
  constexpr std::int64_t kBytes = 8192, kRun = 64;
  expect_sound(run_preloaded(options, [&](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, kBytes, kRun);
    const mpi::Use use = mpi::job->types.find(type);
    std::vector<int> sent(kBytes, rank), received(kBytes, -1);
    EXPECT_EQ(mpi::job->lines->heard(), 0U);
    for (int turn = 0; turn < 8 * LineTimes::kEvery; ++turn) step(mpi, rank, type, sent, received);
    EXPECT_GE(mpi::job->lines->heard(), DistanceEstimate::kLast);
    EXPECT_EQ(mpi::job->ways.distance(), mpi::job->lines->all());
    mpi.Type_free(&type);
  }));
}

TEST_F(MeasuredDistances, ByMessagesThatCross) {
  expect_heard(open_mpi(""), [](const Host& mpi, int rank, Datatype type, std::vector<int>& sent, std::vector<int>& received) {
    mpi.Sendrecv(sent.data(), 1, type, 1 - rank, 7, received.data(), 1, type, 1 - rank, 7, mpi.world, mpi::ignored());
    EXPECT_EQ(received.front(), 1 - rank);
  });
}

// Also where all of them are left to the host, told at once.
TEST_F(MeasuredDistances, ByMessagesThatAreLeft) {
  const std::optional<guide::Piece> piece = piece_of(MpiWay::host, MpiWay::host);
  ASSERT_TRUE(piece);
  expect_sound(run_preloaded(open_mpi(""), [&](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, piece->bytes, piece->run);
    const mpi::Use use = mpi::job->types.find(type);
    std::vector<int> data(2 * static_cast<std::size_t>(piece->bytes) / sizeof(int), rank);
    for (int turn = 0; turn < 8 * LineTimes::kEvery; ++turn) {
      if (rank == 0) mpi.Send(data.data(), 1, type, 1, 7, mpi.world);
      mpi.Recv(data.data(), 1, type, 1 - rank, 7, mpi.world, mpi::ignored());
      if (rank == 1) mpi.Send(data.data(), 1, type, 0, 7, mpi.world);
    }
    EXPECT_TRUE(mpi::job->ways.leaves(MpiUse::send, use.get(), 1));
    EXPECT_GE(mpi::job->lines->heard(), DistanceEstimate::kLast);
    mpi.Type_free(&type);
  }));
}

// A rank that only sends hears of one that only receives, without gaps, and the reverse; on two nodes, too.
TEST_F(MeasuredDistances, ByMessagesOfOneWay) {
  for (const int nodes : {1, 2}) {
    Options options = open_mpi("", 2 * nodes);
    options.nodes = nodes;
    for (const bool begun : {false, true}) {
      expect_heard(options, [&](const Host& mpi, int rank, Datatype type, std::vector<int>& sent, std::vector<int>& received) {
        const int peer = rank ^ 1, ints = 8192 / static_cast<int>(sizeof(int));
        if (rank % 2 == 0) {
          mpi.Send(sent.data(), 1, type, peer, 7, mpi.world);
        } else if (begun) {
          Request request{};
          mpi.Irecv(received.data(), ints, int_type(), peer, 7, mpi.world, &request);
          mpi.Wait(&request, mpi::ignored());
        } else {
          mpi.Recv(received.data(), ints, int_type(), peer, 7, mpi.world, mpi::ignored());
        }
        int word = 0;  // so short that no way is chosen for it: none runs ahead
        if (rank % 2 == 0) mpi.Recv(&word, 1, int_type(), peer, 8, mpi.world, mpi::ignored());
        if (rank % 2 != 0) mpi.Send(&word, 1, int_type(), peer, 8, mpi.world);
      });
    }
  }
}

TEST_F(MeasuredDistances, ByCollectives) {
  expect_heard(open_mpi(""), [](const Host& mpi, int, Datatype type, std::vector<int>& sent, std::vector<int>& received) {
    mpi.Allgather(sent.data(), 1, type, received.data(), 1, type, mpi.world);
  });
}

TEST_F(MeasuredDistances, ByRequestsThatStartAgain) {
  expect_sound(run_preloaded(open_mpi(""), [](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, 8192, 64);
    std::vector<int> sent(8192, rank), received(8192, -1);
    Request both[2];
    mpi.Recv_init(received.data(), 1, type, 1 - rank, 7, mpi.world, &both[0]);
    mpi.Send_init(sent.data(), 1, type, 1 - rank, 7, mpi.world, &both[1]);
    for (int turn = 0; turn < 8 * LineTimes::kEvery; ++turn) {
      mpi.Startall(2, both);
      mpi.Waitall(2, both, nullptr);
    }
    EXPECT_EQ(received.front(), 1 - rank);
    EXPECT_GE(mpi::job->lines->heard(), DistanceEstimate::kLast);
    for (Request& request : both) mpi.Request_free(&request);
    mpi.Type_free(&type);
  }));
}

// Threads that call MPI at once.
TEST_F(MeasuredDistances, ByThreads) {
  Options options = open_mpi("");
  options.threads = true;
  expect_sound(run_preloaded(options, [](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, 8192, 64);
    const auto talk = [&](int tag) {
      std::vector<int> sent(8192, rank), received(8192, -1);
      for (int turn = 0; turn < 4 * LineTimes::kEvery; ++turn)
        mpi.Sendrecv(sent.data(), 1, type, 1 - rank, tag, received.data(), 1, type, 1 - rank, tag, mpi.world, mpi::ignored());
      EXPECT_EQ(received.front(), 1 - rank);
    };
    {
      const std::jthread other = thread_of_rank([&] { talk(8); });
      talk(7);
    }
    EXPECT_GE(mpi::job->lines->heard(), DistanceEstimate::kLast);
    mpi.Type_free(&type);
  }));
}

// A receiver that probes is heard of, too.
TEST_F(MeasuredDistances, ByMessagesThatWereProbed) {
  expect_heard(open_mpi(""), [](const Host& mpi, int rank, Datatype type, std::vector<int>& sent, std::vector<int>& received) {
    int word = 0;
    if (rank == 0) {
      mpi.Send(sent.data(), 1, type, 1, 7, mpi.world);
      mpi.Recv(&word, 1, int_type(), 1, 8, mpi.world, mpi::ignored());
      return;
    }
    Message message{};
    mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored());
    mpi.Mrecv(received.data(), 1, type, &message, mpi::ignored());
    mpi.Send(&word, 1, int_type(), 0, 8, mpi.world);
  });
}

// Messages to none, and to this rank: of no other one anything is known after them.
TEST_F(MeasuredDistances, NotByMessagesThatGoNowhere) {
  expect_sound(run_preloaded(open_mpi(""), [](const Host& mpi, int rank) {
    Datatype type = blocks(mpi, 8192, 64);
    std::vector<int> data(8192, rank);
    for (int turn = 0; turn < 4 * LineTimes::kEvery; ++turn) {
      mpi.Send(data.data(), 1, type, mpi::kProcNull, 7, mpi.world);
      Request request{};
      mpi.Irecv(data.data(), 1, type, 0, 7, mpi.self, &request);
      mpi.Send(data.data(), 1, type, 0, 7, mpi.self);
      mpi.Wait(&request, mpi::ignored());
    }
    EXPECT_EQ(mpi::job->lines->heard(), 0U);
    mpi.Type_free(&type);
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
