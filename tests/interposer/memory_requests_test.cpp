// Where there is no memory for persistent requests that start, for long messages, and for messages from and to a GPU:
// each allocation of the interposer and of what it calls fails once. No call hangs, and no message is lost.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <span>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/buffer.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;
using scarce::Scarcity;

constexpr int kRequests = 3;
using Requests = std::array<Request, kRequests>;

// Runs it with scarcity after more and more allocations, until none fails.
using Scarce = std::function<void(const Host& mpi, int rank, Scarcity& scarcity)>;
void at_each_allocation(const Options& options, int scarce_rank, const Scarce& program) {
  std::atomic<bool> failed = true;
  for (long after = 0; failed && !testing::Test::HasFailure(); ++after) {
    const Outcome outcome = run_preloaded(options, [&](const Host& mpi, int rank) {
      SCOPED_TRACE(testing::Message() << "rank " << rank << ", rank " << scarce_rank << " without memory after " << after
                                      << " allocations");
      return_errors(mpi.world);
      Scarcity scarcity{.after = rank == scarce_rank ? after : Scarcity::kNever, .all = false};
      program(mpi, rank, scarcity);
      if (rank == scarce_rank) failed = scarcity.failed;
    });
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong << ", after " << after;
    EXPECT_TRUE(failed || after > 0);
  }
}

void wait_for_all(const Host& mpi, Scarcity& scarcity, std::span<Request> requests) {
  const auto call = [&] { return mpi.Waitall(static_cast<int>(requests.size()), requests.data(), mpi::ignored()); };
  int result = scarcity(call);
  if (result == mpi::kErrNoMem && scarcity.failed) result = call();
  EXPECT_EQ(result, mpi::kSuccess);
}

// Those that MPI_Startall has not started for want of memory are started one by one.
void start_all(const Host& mpi, Scarcity& scarcity, Requests& requests) {
  if (scarcity([&] { return mpi.Startall(kRequests, requests.data()); }) == mpi::kSuccess) return;
  EXPECT_TRUE(scarcity.failed);
  for (Request& request : requests) {
    const mpi::Operation* const operation = mpi::job->operations.find(request);
    ASSERT_NE(operation, nullptr);
    if (!operation->active) {
      EXPECT_EQ(mpi.Start(&request), mpi::kSuccess);
    }
  }
}

// Persistent requests of one kind on each rank, started together. `probes`: what comes is in the stash by then.
void start_together(const Options& options, int scarce_rank, bool probes) {
  at_each_allocation(options, scarce_rank, [&](const Host& mpi, int rank, Scarcity& scarcity) {
    Datatype type = every_second(mpi);
    std::array<std::vector<int>, kRequests> memory;
    Requests requests{};
    for (int i = 0; i < kRequests; ++i) {
      auto& one = memory[static_cast<std::size_t>(i)] = numbers(rank == 0 ? i : -100'000);
      Request& request = requests[static_cast<std::size_t>(i)];
      if (rank == 0) mpi.Send_init(one.data(), 1, type, 1, 7, mpi.world, &request);
      if (rank == 1) mpi.Recv_init(one.data(), 1, type, 0, 7, mpi.world, &request);
    }
    if (rank == 1 && probes) mpi.Probe(0, 8, mpi.world, mpi::ignored());  // and so what came before it
    start_all(mpi, scarcity, requests);
    if (rank == 0 && probes) mpi.Send(memory[0].data(), 1, type, 1, 8, mpi.world);
    std::vector<int> last = numbers(-100'000);
    wait_for_all(mpi, scarcity, requests);
    if (rank == 1 && probes) mpi.Recv(last.data(), 1, type, 0, 8, mpi.world, mpi::ignored());
    for (int i = 0; rank == 1 && i < kRequests; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], received(i, -100'000)) << i;
    for (Request& request : requests) mpi.Request_free(&request);
    mpi.Type_free(&type);
  });
}

TEST(InterposedScarcity, OfRequestsThatStartTogether) {
  for (const int scarce_rank : {0, 1}) {
    for (const bool probes : {false, true}) {
      SCOPED_TRACE(testing::Message() << "of rank " << scarce_rank << (probes ? ", from the stash" : ""));
      start_together({}, scarce_rank, probes);
    }
  }
}

TEST(InterposedScarcity, OfRequestsThatStartTogetherBetweenNodes) {
  const Set offer("LACUNA_MPI_OFFER_INTER_NODE", "300"), chunk("LACUNA_MPI_CHUNK", "3000");
  for (const int scarce_rank : {0, 1}) start_together({.nodes = 2}, scarce_rank, true);
}

// More than the ring of a stream holds, and more than packing ahead takes at once.
TEST(InterposedScarcity, OfMessagesLongerThanARing) {
  constexpr Count kElements = 27;  // 540 kB; a ring has 512 KiB
  std::vector<int> first((2 * kCount - 1) * kElements);
  std::iota(first.begin(), first.end(), 1);
  const std::vector<int> own(first.size(), -1);
  std::vector<int> wanted = own;
  for (std::size_t i = 0; i < first.size(); ++i)
    if (i % (2 * kCount - 1) % 2 == 0) wanted[i] = first[i];
  std::array<std::vector<int>, 2> memories;  // of each rank, kept from job to job
  for (const int scarce_rank : {0, 1}) {
    for (const bool begun : {false, true}) {
      SCOPED_TRACE(testing::Message() << "of rank " << scarce_rank << (begun ? ", begun" : ""));
      at_each_allocation({}, scarce_rank, [&](const Host& mpi, int rank, Scarcity& scarcity) {
        Datatype type = every_second(mpi);
        std::vector<int>& memory = memories[static_cast<std::size_t>(rank)];
        memory = rank == 0 ? first : own;
        Request request{};
        const auto call = [&]() -> int {
          if (rank == 0 && begun) return mpi.Isend(memory.data(), kElements, type, 1, 7, mpi.world, &request);
          if (rank == 0) return mpi.Send(memory.data(), kElements, type, 1, 7, mpi.world);
          if (begun) return mpi.Irecv(memory.data(), kElements, type, 0, 7, mpi.world, &request);
          return mpi.Recv(memory.data(), kElements, type, 0, 7, mpi.world, mpi::ignored());
        };
        int result = scarcity(call);
        if (result != mpi::kSuccess && scarcity.failed) result = call();
        EXPECT_EQ(result, mpi::kSuccess);
        if (begun) {
          wait_for_all(mpi, scarcity, std::span(&request, 1));
        }
        if (rank == 1) {
          EXPECT_EQ(memory, wanted);
        }
        mpi.Type_free(&type);
      });
    }
  }
}

// Collectives with requests, whose blocks are packed where there is memory for that: one that is begun, one that is
// started.
TEST(InterposedScarcity, OfCollectivesWithRequests) {
  for (const bool persistent : {false, true}) {
    SCOPED_TRACE(persistent);
    at_each_allocation({}, 1, [&](const Host& mpi, int rank, Scarcity& scarcity) {
      Datatype type = every_second(mpi);
      std::vector<int> out = numbers(10 * rank), in(4 * kCount, -1);
      const std::vector<int> second = numbers(10 * rank + 7);
      out.insert(out.end() - 1, second.begin(), second.end());  // an element ends with its last int
      Request request{};
      const auto begin = [&] {
        return persistent ? mpi.Alltoall_init(out.data(), 1, type, in.data(), 1, type, mpi.world, {}, &request)
                          : mpi.Ialltoall(out.data(), 1, type, in.data(), 1, type, mpi.world, &request);
      };
      EXPECT_EQ(scarcity(begin), mpi::kSuccess);
      if (persistent) {
        int result = scarcity([&] { return mpi.Start(&request); });
        if (result == mpi::kErrNoMem && scarcity.failed) result = mpi.Start(&request);
        EXPECT_EQ(result, mpi::kSuccess);
      }
      wait_for_all(mpi, scarcity, std::span(&request, 1));
      for (int from = 0; from < 2; ++from)
        EXPECT_EQ(in[static_cast<std::size_t>(from * (2 * kCount - 1) + 2)], 10 * from + 7 * rank + 2) << "from " << from;
      if (persistent) mpi.Request_free(&request);
      mpi.Type_free(&type);
    });
  }
}

// A window of which a rank has no memory to know anything.
TEST(InterposedScarcity, OfWindows) {
  at_each_allocation({}, 1, [](const Host& mpi, int rank, Scarcity& scarcity) {
    std::vector<int> memory = numbers(rank);
    mpi::Win window{};
    const auto bytes = static_cast<Aint>(memory.size() * sizeof(int));
    EXPECT_EQ(scarcity([&] { return mpi.Win_create(memory.data(), bytes, 1, {}, mpi.world, &window); }), mpi::kSuccess);
    EXPECT_EQ(mpi.Win_fence(0, window), mpi::kSuccess);
    std::vector<int> there(memory.size());
    const int count = static_cast<int>(there.size());
    EXPECT_EQ(mpi.Get(there.data(), count, int_type(), 1 - rank, 0, count, int_type(), window), mpi::kSuccess);
    EXPECT_EQ(mpi.Win_fence(0, window), mpi::kSuccess);
    EXPECT_EQ(there, numbers(1 - rank));
    mpi.Win_free(&window);
  });
}

// From and to memory of a GPU. What its driver and the emulated device allocate is not the interposer's.
TEST(InterposedScarcity, OfMessagesOfDevices) {
  ASSERT_EQ(load_driver(), "");
  for (const int scarce_rank : {0, 1}) {
    for (const bool open_mpi : {false, true}) {
      for (const bool from : {false, true}) {
        SCOPED_TRACE(testing::Message() << "of rank " << scarce_rank << (from ? ", from a device" : "") << (open_mpi ? ", Open MPI" : ""));
        at_each_allocation({.open_mpi = open_mpi}, scarce_rank, [&](const Host& mpi, int rank, Scarcity& scarcity) {
          Datatype type = every_second(mpi);
          Buffer<int> memory(rank == 0 ? from : !from, numbers(rank == 0 ? 1 : -100'000));
          const auto call = [&] {
            return rank == 0 ? mpi.Send(memory.data(), 1, type, 1, 7, mpi.world)
                             : mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
          };
          int result = scarcity(call);
          if (result != mpi::kSuccess && scarcity.failed) result = call();
          EXPECT_EQ(result, mpi::kSuccess);
          if (rank == 1) {
            EXPECT_EQ(memory.read(), received(1, -100'000));
          }
          mpi.Type_free(&type);
        });
      }
    }
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
