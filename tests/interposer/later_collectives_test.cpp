// Collectives with requests (MPI_Ialltoall and its like) whose blocks with gaps go by boards, on the fake MPI.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/later_kinds.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"
#include "tests/support/times.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "LaterCollectives.*");

using namespace fake;
using namespace collectives;

// After a few calls none asks the host, as long as no rank runs ahead: what decides and what moves is in memory of the
// ranks. The type may be freed while a call is under way.
TEST(LaterCollectives, DoWithoutTheHost) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  constexpr int kFirst = 8, kRounds = 200;
  for (const Later& kind : kLater) {
    SCOPED_TRACE(kind.name);
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      Comm comm = ring(mpi);
      for (int round = 0; round < kRounds; ++round) {
        Datatype type = gaps(mpi);
        Memory memory(rank);
        Request request{};
        const int before = calls_of(kind.host);
        EXPECT_EQ(kind.begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
        mpi.Type_free(&type);
        EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
        EXPECT_EQ(request, mpi.no_request);
        kind.expect(memory, rank);
        if (round >= kFirst) {
          EXPECT_EQ(calls_of(kind.host), before) << kind.name << " in round " << round;
        }
        meet(mpi);
      }
      mpi.Comm_free(&comm);
    }));
  }
}

// A communicator after another, each freed after a call or two: what it has of shared memory is given back.
TEST(LaterCollectives, GiveBoardsBack) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const int calls : {1, 2, 12}) {
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      Datatype type = gaps(mpi);
      for (int comms = 0; comms < 60; ++comms) {
        Comm comm{};
        EXPECT_EQ(mpi.Comm_dup(mpi.world, &comm), mpi::kSuccess);
        for (int round = 0; round < calls; ++round) {
          Memory memory(rank);
          Request request{};
          EXPECT_EQ(kLater[0].begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
          EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
          kLater[0].expect(memory, rank);
        }
        mpi.Comm_free(&comm);
        meet(mpi);
      }
      EXPECT_EQ(mpi::job->boards->refused(), 0) << calls << " calls on each";
      mpi.Type_free(&type);
    }));
  }
}

// Several under way, of several kinds and communicators, that end in another order on each rank: more of them than a
// queue has places. Some ranks' types have no gaps, and of some calls none has.
TEST(LaterCollectives, EndInAnyOrder) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const unsigned seed : {1U, 2U, 3U}) {
    SCOPED_TRACE(seed);
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      std::mt19937 alike(seed), own(seed + 100 * static_cast<unsigned>(rank) + 1);
      const auto drawn = [](std::mt19937& by, std::size_t below) { return static_cast<std::size_t>(by() % below); };
      std::array<Comm, 2> comms{};
      for (Comm& comm : comms) comm = ring(mpi);
      Datatype type = gaps(mpi);
      for (int round = 0; round < 200; ++round) {
        struct One {
          std::size_t kind;
          Memory memory;
          Request request{};
        };
        std::vector<One> all;
        for (std::size_t n = 1 + drawn(alike, 9); n > 0; --n) all.push_back({.kind = drawn(alike, kLater.size()), .memory = Memory(rank)});
        for (One& one : all) {
          Comm comm = comms.at(drawn(alike, 2));
          EXPECT_EQ(kLater.at(one.kind).begin(mpi, one.memory, type, comm, rank, &one.request), mpi::kSuccess);
        }
        std::vector<Request> requests;
        for (const One& one : all) requests.push_back(one.request);
        if (round % 3 == 0) {
          EXPECT_EQ(mpi.Waitall(static_cast<int>(requests.size()), requests.data(), mpi::ignored()), mpi::kSuccess);
        }
        for (std::size_t left = round % 3 == 0 ? 0 : all.size(); left > 0; --left) {
          int index = -1;
          if (round % 3 == 1) {
            EXPECT_EQ(mpi.Waitany(static_cast<int>(requests.size()), requests.data(), &index, mpi::ignored()), mpi::kSuccess);
          } else {
            do {
              index = static_cast<int>(drawn(own, requests.size()));
            } while (requests[static_cast<std::size_t>(index)] == mpi.no_request);
            for (int over = 0; over == 0;)
              EXPECT_EQ(mpi.Test(&requests[static_cast<std::size_t>(index)], &over, mpi::ignored()), mpi::kSuccess);
          }
          kLater.at(all[static_cast<std::size_t>(index)].kind).expect(all[static_cast<std::size_t>(index)].memory, rank);
        }
        for (const One& one : all) kLater.at(one.kind).expect(one.memory, rank);
      }
      mpi.Type_free(&type);
      for (Comm& comm : comms) mpi.Comm_free(&comm);
    }));
  }
}

// Communicators of the same ranks whose calls the ranks begin in different orders.
TEST(LaterCollectives, AreOfTheirCommunicator) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    std::array<Comm, 3> comms{};
    for (Comm& comm : comms) mpi.Comm_dup(mpi.world, &comm);
    Datatype type = gaps(mpi);
    for (int round = 0; round < 60; ++round) {
      std::array<Memory, 3> memory{Memory(rank), Memory(rank), Memory(rank)};
      std::array<Request, 3> requests{};
      for (std::size_t i = 0; i < 3; ++i) {
        const std::size_t which = (i + static_cast<std::size_t>(rank)) % 3;
        for (int& value : memory[which].out) value += 1000 * static_cast<int>(which);
        EXPECT_EQ(mpi.Iallgather(memory[which].out.data(), 1, type, memory[which].in.data(), 1, type, comms[which], &requests[which]),
                  mpi::kSuccess);
      }
      EXPECT_EQ(mpi.Waitall(3, requests.data(), mpi::ignored()), mpi::kSuccess);
      for (std::size_t which = 0; which < 3; ++which) {
        for (int from = 0; from < kRanks; ++from)
          EXPECT_EQ(memory[which].in[static_cast<std::size_t>(from * kInts)], sent(from, 0, 0) + 1000 * static_cast<int>(which));
      }
    }
    mpi.Type_free(&type);
    for (Comm& comm : comms) mpi.Comm_free(&comm);
  }));
}

// A root that runs ahead of the others, by more calls than an order has words.
TEST(LaterCollectives, MayRunAhead) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    constexpr std::size_t kCalls = 300;
    for (int turn = 0; turn < 3; ++turn) {
      std::vector<Memory> memory(kCalls, Memory(rank));
      std::vector<Request> requests(kCalls);
      int word = 0;
      if (rank != kRoot) mpi.Recv(&word, 1, int_type(), kRoot, 7, mpi.world, mpi::ignored());
      for (std::size_t i = 0; i < kCalls; ++i) {
        memory[i].out[0] += static_cast<int>(i);
        EXPECT_EQ(kLater.back().begin(mpi, memory[i], type, mpi.world, rank, &requests[i]), mpi::kSuccess);
      }
      for (int other = 0; rank == kRoot && other < kRanks; ++other)
        if (other != kRoot) mpi.Send(&word, 1, int_type(), other, 7, mpi.world);
      EXPECT_EQ(mpi.Waitall(kCalls, requests.data(), mpi::ignored()), mpi::kSuccess);
      for (std::size_t i = 0; rank != kRoot && i < kCalls; ++i) EXPECT_EQ(memory[i].in[0], sent(kRoot, 0, 0) + static_cast<int>(i));
    }
    mpi.Type_free(&type);
  }));
}

// One rank begins a call and waits for a message of another, which has not begun that call yet.
TEST(LaterCollectives, DoNotWait) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const Later& kind : kLater) {
    SCOPED_TRACE(kind.name);
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      Datatype type = gaps(mpi);
      Comm comm = ring(mpi);
      for (int round = 0; round < 40; ++round) {
        Memory memory(rank);
        Request request{};
        int word = 0;
        const int first = round % kRanks;
        if (rank != first) mpi.Recv(&word, 1, int_type(), first, 7, mpi.world, mpi::ignored());
        EXPECT_EQ(kind.begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
        for (int other = 0; rank == first && other < kRanks; ++other)
          if (other != first) mpi.Send(&word, 1, int_type(), other, 7, mpi.world);
        EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
        kind.expect(memory, rank);
      }
      mpi.Comm_free(&comm);
      mpi.Type_free(&type);
    }));
  }
}

// Calls with scarcity on one rank; whether an allocation failed.
bool begin_with_scarcity(const Later& kind, long after) {
  std::atomic<bool> failed = false;
  const Outcome outcome = run_preloaded({.ranks = kRanks, .threads = false, .decode_at = 1}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    Comm comm{};
    scarce::Scarcity scarcity{.after = rank == 2 ? after : scarce::Scarcity::kNever, .all = false};
    scarcity([&] { return make_ring(mpi, comm); });
    for (int round = 0; round < 12; ++round) {
      Memory memory(rank);
      Request request = mpi.no_request;
      EXPECT_EQ(scarcity([&] { return kind.begin(mpi, memory, type, comm, rank, &request); }), mpi::kSuccess)
          << kind.name << " after " << after;
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
      kind.expect(memory, rank);
    }
    if (rank == 2) failed = scarcity.failed;
    mpi.Comm_free(&comm);
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
  return failed;
}

LACUNA_LEFT_OUT(thread, "LaterCollectives.NeedNoMemory");
LACUNA_LEFT_OUT(address, "LaterCollectives.NeedNoMemory");
TEST(LaterCollectives, NeedNoMemory) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const Later& kind : {kLater[0], kLater[2], kLater[6], kLater[11], kLater.back()}) {
    SCOPED_TRACE(kind.name);
    long after = 0;
    while (!HasFailure() && begin_with_scarcity(kind, after)) ++after;
    EXPECT_GT(after, 0);
  }
}

// One rank has no memory at all for calls that the others have begun by boards: it says so, the others that wait for
// its blocks end with an error, and the next calls are right.
LACUNA_LEFT_OUT(thread, "LaterCollectives.EndWhereARankHasNoMemory");
LACUNA_LEFT_OUT(address, "LaterCollectives.EndWhereARankHasNoMemory");
TEST(LaterCollectives, EndWhereARankHasNoMemory) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  constexpr int kPoor = 2, kFirst = 8, kTimes = 12;
  for (const Later& kind : {kLater[0], kLater[1], kLater[2]}) {
    SCOPED_TRACE(kind.name);
    std::atomic<int> refused = 0, told = 0;
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      Datatype type = gaps(mpi);
      mpi.Comm_set_errhandler(mpi.world, errors_return());
      for (int round = 0; round < kFirst + 2 * kTimes; ++round) {
        Memory memory(rank);
        Request request = mpi.no_request;
        int word = 0;
        const bool poor = rank == kPoor && round >= kFirst && round % 2 == 0;
        const auto begin = [&] { return kind.begin(mpi, memory, type, mpi.world, rank, &request); };
        for (int other = 0; rank == kPoor && other < kRanks; ++other)
          if (other != rank) mpi.Recv(&word, 1, int_type(), other, 7, mpi.world, mpi::ignored());
        const int begun = poor ? scarce::call((round - kFirst) / 2, true, begin).first : begin();
        if (rank != kPoor) mpi.Send(&word, 1, int_type(), kPoor, 7, mpi.world);
        refused += begun == mpi::kErrNoMem ? 1 : 0;
        if (begun != mpi::kSuccess) {
          EXPECT_TRUE(poor && begun == mpi::kErrNoMem && request == mpi.no_request) << begun << " in round " << round;
        } else if (const int ended = mpi.Wait(&request, mpi::ignored()); ended == mpi::kSuccess) {
          kind.expect(memory, rank);
        } else {
          ++told;
          EXPECT_TRUE(round >= kFirst && round % 2 == 0) << ended << " in round " << round;
        }
        meet(mpi);
      }
      mpi.Type_free(&type);
    }));
    EXPECT_GT(refused, 0);
    EXPECT_EQ(told, refused * (kind.name == kLater[2].name ? 1 : kRanks - 1));
  }
}

// More communicators than a rank has room for, one after another: each has what those before have given back.
TEST(LaterCollectives, UseAgainWhatFreedCommunicatorsHad) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    for (int comms = 0; comms < 200; ++comms) {
      Comm comm{};
      EXPECT_EQ(mpi.Comm_dup(mpi.world, &comm), mpi::kSuccess);
      for (int round = 0; round < 10; ++round) {
        Memory memory(rank);
        Request request{};
        const int before = calls_of("Ialltoall");
        EXPECT_EQ(kLater[0].begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
        EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
        kLater[0].expect(memory, rank);
        if (round >= 8) {
          EXPECT_EQ(calls_of("Ialltoall"), before) << "communicator " << comms;
        }
      }
      mpi.Comm_free(&comm);
    }
    mpi.Type_free(&type);
  }));
}

// More communicators at a time than a rank has room for: the further ones' calls are the MPI's, and that is said once.
TEST(LaterCollectives, SayThatThereAreTooManyCommunicators) {
  const Set forced("LACUNA_MPI_WAY", "offered"), told("LACUNA_LOG", "info");
  testing::internal::CaptureStderr();
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    std::vector<Comm> comms(std::tuple_size_v<decltype(mpi::OrderTable::entries)> + 10);
    for (Comm& comm : comms) {
      EXPECT_EQ(mpi.Comm_dup(mpi.world, &comm), mpi::kSuccess);
      Memory memory(rank);
      Request request{};
      EXPECT_EQ(kLater[0].begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
      kLater[0].expect(memory, rank);
    }
    for (Comm& comm : comms) mpi.Comm_free(&comm);
    mpi.Type_free(&type);
  }));
  EXPECT_EQ(support::times(testing::internal::GetCapturedStderr(), "no room was found beside those of up to 64"), kRanks);
}

// A root that was hundreds of calls ahead waits for the others: boards come back.
TEST(LaterCollectives, GoByBoardsAgainOnceRanksAreNear) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    constexpr std::size_t kAhead = 400;
    constexpr int kNear = 300;
    std::vector<Memory> memory(kAhead, Memory(rank));
    std::vector<Request> requests(kAhead);
    int word = 0;
    const auto begin = [&](Memory& one, Request& request) {
      EXPECT_EQ(kLater.back().begin(mpi, one, type, mpi.world, rank, &request), mpi::kSuccess);
    };
    if (rank != kRoot) mpi.Recv(&word, 1, int_type(), kRoot, 7, mpi.world, mpi::ignored());
    for (std::size_t i = 0; i < kAhead; ++i) begin(memory[i], requests[i]);
    for (int other = 0; rank == kRoot && other < kRanks; ++other)
      if (other != kRoot) mpi.Send(&word, 1, int_type(), other, 7, mpi.world);
    EXPECT_EQ(mpi.Waitall(kAhead, requests.data(), mpi::ignored()), mpi::kSuccess);
    int before = 0;
    for (int i = 0; i < kNear; ++i) {
      if (i == kNear - 50) before = calls_of("Ibcast");
      Memory one(rank);
      begin(one, requests[0]);
      EXPECT_EQ(mpi.Wait(&requests[0], mpi::ignored()), mpi::kSuccess);
      kLater.back().expect(one, rank);
      meet(mpi);
    }
    EXPECT_EQ(calls_of("Ibcast"), before);
    mpi.Type_free(&type);
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
