// Collectives whose blocks with gaps go straight from memory to memory, on the fake MPI.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "lacuna/base/base.hpp"
#include "tests/interposer/collective_kinds.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "OfferedCollectives.*");

using namespace fake;
using namespace collectives;

// Three calls of a kind on a ring, verified. What the host was called for.
std::map<std::string, int> calls_of_three(const Kind& kind, int ints = kInts, bool threads = true) {
  Outcome outcome = run_preloaded({.ranks = kRanks, .threads = threads, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi, ints);
    Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
    for (int round = 0; round < 3; ++round) {
      Memory memory(rank, ints);
      EXPECT_EQ(kind.call(mpi, memory, type, ring, rank), mpi::kSuccess);
      kind.expect(memory, rank);
    }
    mpi.Comm_free(&ring);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  return std::move(outcome.calls);
}

TEST(OfferedCollectives, GoByBoards) {
  for (const Kind& kind : kKinds) {
    for (const int ints : {kInts, kLong}) {
      SCOPED_TRACE(kind.name);
      const Set packs("LACUNA_MPI_WAY", "packed");
      EXPECT_EQ(calls_of_three(kind, ints)[kind.host], 3 * kRanks);
      const Set offers("LACUNA_MPI_WAY", "offered");
      for (const bool threads : {false, true}) {
        std::map<std::string, int> calls = calls_of_three(kind, ints, threads);
        // The ranks say once where their boards are, by MPI_Allgather, of which the fake's MPI_Allreduce has one.
        EXPECT_LE(calls[kind.host] - (kind.host == std::string_view("Allgather") ? calls["Allreduce"] : 0), kRanks);
      }
    }
  }
}

TEST(OfferedCollectives, GoStraightWithoutBoards) {
  const Set scarce("LACUNA_SHARED_BYTES", "1048576");
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    for (const char* way : {"offered", "packed"}) {
      const Set forced("LACUNA_MPI_WAY", way);
      EXPECT_EQ(calls_of_three(kind).contains(kind.tells), way == std::string_view("offered"));
    }
  }
}

// Calls without gaps on new communicators, of each kind: nothing is asked of the host. Where threads call MPI at once
// the host tells once, by one MPI_Allreduce, that no rank gains.
TEST(OfferedCollectives, CostNothingWithoutGaps) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const bool threads : {false, true}) {
    for (const Kind& kind : kKinds) {
      SCOPED_TRACE(kind.name);
      constexpr int kComms = 20;
      const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = threads, .decode_at = 1}, [&](const Host& mpi, int rank) {
        Datatype dense = fake::contiguous(kInts, int_type());
        mpi.Type_commit(&dense);
        for (int round = 0; round < kComms; ++round) {
          Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
          Memory memory(rank);
          EXPECT_EQ(kind.call(mpi, memory, dense, ring, rank), mpi::kSuccess);
          mpi.Comm_free(&ring);
        }
        mpi.Type_free(&dense);
      });
      // The fake's MPI_Allreduce has one MPI_Allgather.
      for (const char* asked : {"Allreduce", "Allgather", "Alltoall", "Neighbor_alltoall", "Scatterv"}) {
        const bool by_host = asked == std::string_view("Allreduce") || asked == std::string_view("Allgather");
        const int each = (kind.host == std::string_view(asked) ? 1 : 0) + (threads && by_host ? 1 : 0);
        const auto found = outcome.calls.find(asked);
        EXPECT_EQ(found != outcome.calls.end() ? found->second : 0, each * kComms * kRanks) << asked << ", threads " << threads;
      }
      for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
    }
  }
}

// A communicator after another has the board of that one.
TEST(OfferedCollectives, HaveBoardsForManyCommunicators) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    for (int round = 0; round < 50; ++round) {
      Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
      Memory memory(rank);
      EXPECT_EQ(kKinds[1].call(mpi, memory, type, ring, rank), mpi::kSuccess);
      kKinds[1].expect(memory, rank);
      mpi.Comm_free(&ring);
    }
    mpi.Type_free(&type);
  });
  EXPECT_FALSE(outcome.calls.contains("Alltoall"));  // which tells what is offered without a board
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Calls of one root in which not all wait for all: a datatype that a rank does not know yet the host packs and unpacks.
TEST(OfferedCollectives, PassWhatIsNotUnderstood) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks, .decode_at = 3}, [&](const Host& mpi, int rank) {
    Datatype known = gaps(mpi);
    for (const Kind& kind : kKinds) {
      if (kind.host == std::string_view("Neighbor_alltoall")) continue;
      for (int round = 0; round < 40; ++round) {
        Datatype fresh = gaps(mpi);
        Memory memory(rank);
        EXPECT_EQ(kind.call(mpi, memory, round < 20 || (round + rank) % 3 == 0 ? known : fresh, mpi.world, rank), mpi::kSuccess);
        kind.expect(memory, rank);
        mpi.Type_free(&fresh);
      }
    }
    mpi.Type_free(&known);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// After hundreds of calls without gaps one that has some is left to the host, and those after it are not. The first
// time its type is not known yet.
TEST(OfferedCollectives, AreAskedForByWhoWouldGain) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    std::vector<int> dense(kRanks * kInts / 2);
    for (int round = 0; round < 4; ++round) {
      Memory memory(rank);
      for (int call = 0; call < 400; ++call)
        mpi.Allgather(memory.out.data(), kInts / 2, int_type(), dense.data(), kInts / 2, int_type(), mpi.world);
      // The fake's MPI_Allreduce has one MPI_Allgather.
      const auto calls = [] { return calls_of("Allgather") - calls_of("Allreduce"); };
      const int before = calls();
      for (int call = 0; call < 10; ++call) {
        // Others have contiguous blocks: one rank's wish is enough.
        if (rank == 2) mpi.Allgather(memory.out.data(), 1, type, memory.in.data(), 1, type, mpi.world);
        if (rank != 2) mpi.Allgather(memory.out.data(), kInts / 2, int_type(), dense.data(), kInts / 2, int_type(), mpi.world);
      }
      EXPECT_LE(calls() - before, round == 0 ? 3 : 1);  // in the first round they say where their boards are
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// A rank has room for inquiries in 64 orders of ranks. Ranks 0 to 3 use it up before rank 4 does; then collectives on
// communicators with other orders are the host's.
TEST(OfferedCollectives, AreTheHostsWhereInquiriesHaveNoRoom) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  constexpr int kMany = 5, kOrdersOfFour = 24;
  const Outcome outcome = run_preloaded({.ranks = kMany, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    const auto gather = [&](Comm comm, const std::vector<int>& ranks) {
      std::vector<int> out(kInts, rank), in(ranks.size() * kInts, kSpoiled);
      EXPECT_EQ(mpi.Allgather(out.data(), 1, type, in.data(), 1, type, comm), mpi::kSuccess);
      for (std::size_t i = 0; i < in.size(); ++i) ASSERT_EQ(in[i], i % 2 != 0 ? kSpoiled : ranks[i / kInts]);
    };
    for (const int number : {kMany - 1, kMany}) {
      std::vector<int> order(static_cast<std::size_t>(number));
      std::iota(order.begin(), order.end(), 0);
      for (int round = 0; round < 60; ++round, std::ranges::next_permutation(order)) {
        const auto place = std::ranges::find(order, rank) - order.begin();
        Comm comm = split(mpi.world, rank < number ? 0 : 1, static_cast<int>(place));
        const int before = calls_of("Allreduce");
        if (rank < number) gather(comm, order);
        const bool agrees = rank < number && (number < kMany || round < 64 - kOrdersOfFour);
        EXPECT_EQ(calls_of("Allreduce") - before, agrees ? 2 : 0) << "round " << round;
        mpi.Comm_free(&comm);
      }
    }
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Blocks with gaps at a root alone: ranks that have none offer theirs, too.
TEST(OfferedCollectives, AreOfOneRankWithGaps) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    std::vector<int> dense(kInts / 2);
    for (int round = 0; round < 3; ++round) {
      Memory memory(rank);
      for (std::size_t i = 0; i < dense.size(); ++i) dense[i] = sent(rank, 0, 2 * static_cast<int>(i));
      EXPECT_EQ(mpi.Gather(dense.data(), kInts / 2, int_type(), memory.in.data(), 1, type, kRoot, mpi.world), mpi::kSuccess);
      if (rank == kRoot) expect_all(memory, 0);
    }
    mpi.Type_free(&type);
  });
  EXPECT_FALSE(outcome.calls.contains("Gather"));
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// One with scarcity on one rank; whether an allocation failed.
bool move_with_scarcity(const Kind& kind, bool threads, long after) {
  std::atomic<bool> failed = false;
  const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = threads, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
    scarce::Scarcity scarcity{.after = rank == 2 ? after : scarce::Scarcity::kNever, .all = false};
    for (int round = 0; round < 3; ++round) {
      Memory memory(rank);
      EXPECT_EQ(scarcity([&] { return kind.call(mpi, memory, type, ring, rank); }), mpi::kSuccess) << "after " << after;
      kind.expect(memory, rank);
    }
    if (rank == 2) failed = scarcity.failed;
    mpi.Comm_free(&ring);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

LACUNA_LEFT_OUT(thread, "OfferedCollectives.NeedNoMemory");  // hundreds of jobs: minutes
LACUNA_LEFT_OUT(address, "OfferedCollectives.NeedNoMemory");
TEST(OfferedCollectives, NeedNoMemory) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    for (const bool threads : {false, true}) {
      long after = 0;
      while (!HasFailure() && move_with_scarcity(kind, threads, after)) ++after;
      EXPECT_GT(after, 0);
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
