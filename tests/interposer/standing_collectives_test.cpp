// Persistent collectives whose blocks with gaps go by boards, on the fake MPI.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <string>

#include "tests/interposer/collective_kinds.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "StandingCollectives.*");

using namespace fake;
using namespace collectives;

// The collectives of kKinds as persistent ones.
const std::array<int (*)(const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request), kKinds.size()> kPersistent{
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int, Request* request) {
      static constexpr std::array ones{1, 1, 1}, places{0, 1, 2};
      return mpi.Alltoallv_init(m.out.data(), ones.data(), places.data(), type, m.in.data(), ones.data(), places.data(), type, comm, Info{},
                                request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int, Request* request) {
      return mpi.Allgather_init(m.out.data(), 1, type, m.in.data(), 1, type, comm, Info{}, request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
      return mpi.Gather_init(m.out.data(), 1, type, rank == kRoot ? m.in.data() : nullptr, 1, type, kRoot, comm, Info{}, request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
      return mpi.Gather_init(rank == kRoot ? mpi::in_place() : m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm, Info{}, request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int, Request* request) {
      return mpi.Scatter_init(m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm, Info{}, request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
      return mpi.Bcast_init(rank == kRoot ? m.out.data() : m.in.data(), 1, type, kRoot, comm, Info{}, request);
    },
    [](const Host& mpi, Memory& m, Datatype type, Comm comm, int, Request* request) {
      return mpi.Neighbor_alltoall_init(m.out.data(), 1, type, m.in.data(), 1, type, comm, Info{}, request);
    }};

// What is asked of the host in a start of a persistent collective and its end.
struct HostCalls {
  std::map<std::string, int> counts;
  static HostCalls now() {
    HostCalls made;
    for (const char* call : {"Start", "Startall", "Wait", "Waitall", "Test", "Request_get_status", "Allreduce", "Allgather", "Alltoall",
                             "Isend", "Type_get_envelope", "Type_get_contents"})
      made.counts[call] = calls_of(call);
    return made;
  }
};

// A start and its end ask nothing of the host. Two of them are under way at once, and freed ones give their boards
// back: a hundred would want more memory than there is.
TEST(StandingCollectives, DoWithoutTheHost) {
  const Set forced("LACUNA_MPI_WAY", "offered"), scarce("LACUNA_SHARED_BYTES", "1048576");
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    SCOPED_TRACE(kKinds[kind].name);
    for (const bool threads : {false, true}) {
      const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = threads}, [&](const Host& mpi, int rank) {
        Datatype type = gaps(mpi);
        Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
        for (int round = 0; round < 100; ++round) {
          std::array<Memory, 2> memory{Memory(rank), Memory(rank)};
          std::array<Request, 2> requests{};
          for (std::size_t i = 0; i < 2; ++i)
            EXPECT_EQ(kPersistent.at(kind)(mpi, memory[i], type, ring, rank, &requests[i]), mpi::kSuccess);
          const HostCalls before = HostCalls::now();
          for (int start = 0; start < 5; ++start) {
            for (Memory& one : memory) std::ranges::fill(one.in, kSpoiled);
            EXPECT_EQ(mpi.Startall(2, requests.data()), mpi::kSuccess);
            // Not in the order of the starts, which differs by rank
            for (const int i : {(rank + start) % 2, (rank + start + 1) % 2})
              EXPECT_EQ(mpi.Wait(&requests.at(static_cast<std::size_t>(i)), mpi::ignored()), mpi::kSuccess);
            for (const Memory& one : memory) kKinds.at(kind).expect(one, rank);
          }
          EXPECT_EQ(HostCalls::now().counts, before.counts) << "round " << round;
          for (Request& request : requests) mpi.Request_free(&request);
        }
        mpi.Comm_free(&ring);
        mpi.Type_free(&type);
      });
      for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
    }
  }
}

// One that is under way holds nothing else up: its other ranks start it once a message has come that was awaited beside
// it.
TEST(StandingCollectives, LetOthersEndFirst) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    Memory memory(rank);
    std::array<Request, 2> requests{};
    EXPECT_EQ(kPersistent[1](mpi, memory, type, mpi.world, rank, &requests[0]), mpi::kSuccess);
    for (int round = 0; round < 3; ++round) {
      int word = 0, index = -1, flag = 1;
      std::ranges::fill(memory.in, kSpoiled);
      if (rank == 0) {
        mpi.Start(&requests[0]);
        mpi.Irecv(&word, 1, int_type(), 1, 7, mpi.world, &requests[1]);
        EXPECT_EQ(mpi.Test(&requests[0], &flag, mpi::ignored()), mpi::kSuccess);
        EXPECT_EQ(flag, 0);
        mpi.Send(&word, 1, int_type(), 1, 7, mpi.world);
        EXPECT_EQ(mpi.Waitany(2, requests.data(), &index, mpi::ignored()), mpi::kSuccess);
        EXPECT_EQ(index, 1);
        for (const int other : {1, 2}) mpi.Send(&word, 1, int_type(), other, 8, mpi.world);
      } else {
        if (rank == 1) mpi.Recv(&word, 1, int_type(), 0, 7, mpi.world, mpi::ignored());
        if (rank == 1) mpi.Send(&word, 1, int_type(), 0, 7, mpi.world);
        mpi.Recv(&word, 1, int_type(), 0, 8, mpi.world, mpi::ignored());
        mpi.Start(&requests[0]);
      }
      EXPECT_EQ(mpi.Wait(&requests[0], mpi::ignored()), mpi::kSuccess);
      kKinds[1].expect(memory, rank);
    }
    mpi.Request_free(&requests[0]);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Each board of a request has its part of the memory, or is told of as one that found no room.
TEST(StandingCollectives, AreToldOfByTheReport) {
  const Set forced("LACUNA_MPI_WAY", "offered"), scarce("LACUNA_SHARED_BYTES", "1048576"), on("LACUNA_MPI_REPORT", "1");
  testing::internal::CaptureStderr();
  const Outcome outcome = run_preloaded({.ranks = kRanks}, [&](const Host& mpi, int rank) {
    Datatype small = gaps(mpi), large = gaps(mpi, kLong);
    Memory memory(rank), more(rank, kLong);
    std::array<Request, 2> requests{};
    EXPECT_EQ(kPersistent[1](mpi, memory, small, mpi.world, rank, &requests[0]), mpi::kSuccess);
    EXPECT_EQ(kPersistent[1](mpi, more, large, mpi.world, rank, &requests[1]), mpi::kSuccess);
    for (Request& request : requests) mpi.Request_free(&request);
    for (Datatype type : {small, large}) mpi.Type_free(&type);
  });
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("boards of collectives had up to 5 KiB of 128; 1 found no room (LACUNA_SHARED_BYTES)"), std::string::npos) << told;
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Neighbors of which one is the rank itself, and one there twice.
TEST(StandingCollectives, AreOfAnyNeighbors) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  const Outcome outcome = run_preloaded({.ranks = kRanks}, [&](const Host& mpi, int rank) {
    const int next = (rank + 1) % kRanks, before = (rank + kRanks - 1) % kRanks;
    Comm graph = dist_graph(mpi.world, std::array{before, rank, before}, std::array{next, next, rank});
    Datatype type = gaps(mpi);
    Memory memory(rank);
    Request request{};
    EXPECT_EQ(kPersistent.back()(mpi, memory, type, graph, rank, &request), mpi::kSuccess);
    mpi.Comm_free(&graph);
    for (int start = 0; start < 3; ++start) {
      std::ranges::fill(memory.in, kSpoiled);
      const int waits = calls_of("Wait");
      EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
      EXPECT_EQ(calls_of("Wait"), waits);
      memory.expect_from(0, before, 0);
      memory.expect_from(1, rank, 2);
      memory.expect_from(2, before, 1);
    }
    mpi.Request_free(&request);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// One with scarcity on one rank; whether an allocation failed.
bool persist_with_scarcity(std::size_t kind, bool threads, long after) {
  std::atomic<bool> failed = false;
  const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = threads, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    Comm ring = cart(mpi.world, std::array{kRanks}, std::array{true});
    scarce::Scarcity scarcity{.after = rank == 2 ? after : scarce::Scarcity::kNever, .all = false};
    Memory memory(rank);
    Request request{};
    EXPECT_EQ(scarcity([&] { return kPersistent.at(kind)(mpi, memory, type, ring, rank, &request); }), mpi::kSuccess) << "after " << after;
    for (int round = 0; round < 2; ++round) {
      std::ranges::fill(memory.in, kSpoiled);
      EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
      kKinds.at(kind).expect(memory, rank);
    }
    if (rank == 2) failed = scarcity.failed;
    mpi.Request_free(&request);
    mpi.Comm_free(&ring);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

LACUNA_LEFT_OUT(thread, "StandingCollectives.NeedNoMemory");
LACUNA_LEFT_OUT(address, "StandingCollectives.NeedNoMemory");
TEST(StandingCollectives, NeedNoMemory) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (std::size_t kind = 0; kind < kKinds.size(); ++kind) {
    SCOPED_TRACE(kKinds[kind].name);
    for (const bool threads : {false, true}) {
      long after = 0;
      while (!HasFailure() && persist_with_scarcity(kind, threads, after)) ++after;
      EXPECT_GT(after, 0);
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
