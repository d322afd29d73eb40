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
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "OfferedCollectives.*");

using namespace fake;

constexpr int kInts = 1024;       // of a block: every second one moves,
constexpr int kLong = 128 << 10;  // or of one that is too long for a board
constexpr int kSpoiled = -7;
constexpr int kRanks = 3, kRoot = 1;

// What a rank sends in a block.
int sent(int from, int block, int i) { return 100'000'000 * (from + 1) + 5'000'000 * block + i; }

struct Memory {
  explicit Memory(int rank, int of_block = kInts)
      : ints(of_block), out(static_cast<std::size_t>(kRanks) * static_cast<std::size_t>(ints)), in(out.size(), kSpoiled) {
    for (int i = 0; i < kRanks * ints; ++i) out[static_cast<std::size_t>(i)] = sent(rank, i / ints, i % ints);
  }
  // Whether a block holds what a rank sent in one of its blocks, and its gaps what they did.
  void expect_from(int block, int from, int their_block) const {
    for (int i = 0; i < ints; ++i) {
      const int wanted = from < 0 || i % 2 != 0 ? kSpoiled : sent(from, their_block, i);
      ASSERT_EQ(in[static_cast<std::size_t>(block * ints + i)], wanted) << "block " << block << ", int " << i;
    }
  }
  int ints;
  std::vector<int> out, in;
};

// A collective as a program calls it, and what it leaves.
struct Kind {
  const char* name;
  int (*call)(const Host& mpi, Memory& m, Datatype type, Comm comm, int rank);
  void (*expect)(const Memory& m, int rank);
  const char* host;   // the host's call that moves what is not offered
  const char* tells;  // the one that is made, where there are no boards, if blocks are offered, and else is not
};

void expect_all(const Memory& m, int their_block) {
  for (int from = 0; from < kRanks; ++from) m.expect_from(from, from, their_block);
}

const std::array kKinds{
    Kind{.name = "Alltoallv",
         .call =
             [](const Host& mpi, Memory& m, Datatype type, Comm comm, int) {
               const std::array ones{1, 1, 1}, places{0, 1, 2};
               return mpi.Alltoallv(m.out.data(), ones.data(), places.data(), type, m.in.data(), ones.data(), places.data(), type, comm);
             },
         .expect = [](const Memory& m, int rank) { expect_all(m, rank); },
         .host = "Alltoallv",
         .tells = "Alltoall"},
    Kind{.name = "Allgather",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Allgather(m.out.data(), 1, type, m.in.data(), 1, type, comm); },
         .expect = [](const Memory& m, int) { expect_all(m, 0); },
         .host = "Allgather",
         .tells = "Alltoall"},
    Kind{.name = "Gather",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int rank) { return mpi.Gather(m.out.data(), 1, type, rank == kRoot ? m.in.data() : nullptr, 1, type, kRoot, comm); },
         .expect =
             [](const Memory& m, int rank) {
               if (rank == kRoot) expect_all(m, 0);
             },
         .host = "Gather",
         .tells = "Gatherv"},
    Kind{.name = "Gather in place",
         .call =
             [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank) {
               return mpi.Gather(rank == kRoot ? mpi::in_place() : m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm);
             },
         .expect =
             [](const Memory& m, int rank) {
               for (int from = 0; rank == kRoot && from < kRanks; ++from) m.expect_from(from, from == kRoot ? -1 : from, 0);
             },
         .host = "Gather",
         .tells = "Gatherv"},
    Kind{.name = "Scatter",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Scatter(m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm); },
         .expect = [](const Memory& m, int rank) { m.expect_from(0, kRoot, rank); },
         .host = "Scatter",
         .tells = "Scatterv"},
    Kind{.name = "Bcast",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int rank) { return mpi.Bcast(rank == kRoot ? m.out.data() : m.in.data(), 1, type, kRoot, comm); },
         .expect = [](const Memory& m, int rank) { m.expect_from(0, rank == kRoot ? -1 : kRoot, 0); },
         .host = "Bcast",
         .tells = "Scatterv"},
    Kind{.name = "Neighbor_alltoall",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Neighbor_alltoall(m.out.data(), 1, type, m.in.data(), 1, type, comm); },
         .expect =
             [](const Memory& m, int rank) {
               m.expect_from(0, (rank + kRanks - 1) % kRanks, 1);
               m.expect_from(1, (rank + 1) % kRanks, 0);
             },
         .host = "Neighbor_alltoall",
         .tells = "Neighbor_alltoallv"},
};

Datatype gaps(const Host& mpi, int ints = kInts) {
  Datatype inner = fake::vector(ints / 2, 1, 2, int_type());
  Datatype type = resized(inner, 0, ints * 4);
  mpi.Type_commit(&type);
  mpi.Type_free(&inner);
  return type;
}

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
