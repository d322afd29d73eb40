// Messages through the interposer, on the fake host: what arrives, in which order, and what is left behind.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

// Those of every_second came from numbers(sent), and the gaps are those of numbers(own).
void expect_received(const std::vector<int>& memory, int sent, int own) {
  for (int i = 0; i < 2 * kCount; ++i) ASSERT_EQ(memory[static_cast<std::size_t>(i)], i + (i % 2 == 0 ? sent : own)) << "int " << i;
}

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

TEST(InterposedMessages, MoveWhatHasGaps) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
    if (rank == 0) {
      mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
    } else {
      Status status{};
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, &status), mpi::kSuccess);
      EXPECT_EQ(mpi::bytes_of(status), 4 * kCount);
      expect_received(memory, 1, -100'000);
    }
    mpi.Type_free(&type);
  }));
}

// A short one of the host's and a long one of ours, in either order, all with one tag; thrice, since the second start
// finds what the first left.
TEST(InterposedMessages, StartInTheOrderOfTheArray) {
  for (const bool ours_first : {false, true}) {
    expect_sound(run_preloaded({}, [&](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
      int head = rank == 0 ? 42 : 0;
      Request requests[2];
      if (rank == 0) {
        mpi.Send_init(&head, 1, int_type(), 1, 7, mpi.world, &requests[ours_first ? 1 : 0]);
        mpi.Send_init(memory.data(), 1, type, 1, 7, mpi.world, &requests[ours_first ? 0 : 1]);
      }
      for (int round = 0; round < 3; ++round) {
        if (rank == 0) {
          EXPECT_EQ(mpi.Startall(2, requests), mpi::kSuccess);
          mpi.Waitall(2, requests, mpi::ignored());
          continue;
        }
        for (const bool long_one : {ours_first, !ours_first}) {
          const int count = 1;
          Status status{};
          EXPECT_EQ(long_one ? mpi.Recv(memory.data(), count, type, 0, 7, mpi.world, &status)
                             : mpi.Recv(&head, count, int_type(), 0, 7, mpi.world, &status),
                    mpi::kSuccess);
          EXPECT_EQ(mpi::bytes_of(status), long_one ? 4 * kCount : 4);
        }
        EXPECT_EQ(head, 42);
        expect_received(memory, 1, -100'000);
        head = 0;
      }
      for (int i = 0; rank == 0 && i < 2; ++i) mpi.Request_free(&requests[i]);
      mpi.Type_free(&type);
    }));
  }
}

// Of receives that start together, the first finds what a probe has taken already.
TEST(InterposedMessages, StartReceivesInTheOrderOfTheArray) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    if (rank == 0) {
      for (const int first : {1, 2}) mpi.Send(numbers(first).data(), 1, type, 1, 7, mpi.world);
    } else {
      std::vector<int> first = numbers(-100'000), second = first;
      Request requests[2];
      mpi.Recv_init(first.data(), 1, type, 0, 7, mpi.world, &requests[0]);
      mpi.Recv_init(second.data(), 1, type, 0, 7, mpi.world, &requests[1]);
      Status status{};
      mpi.Probe(0, 7, mpi.world, &status);
      EXPECT_EQ(mpi::bytes_of(status), 4 * kCount);
      EXPECT_EQ(mpi.Startall(2, requests), mpi::kSuccess);
      EXPECT_EQ(mpi.Waitall(2, requests, mpi::ignored()), mpi::kSuccess);
      expect_received(first, 1, -100'000);
      expect_received(second, 2, -100'000);
      for (Request& request : requests) mpi.Request_free(&request);
    }
    mpi.Type_free(&type);
  }));
}

// Both ranks, with types that differ in form, so that either side may offer; blocking and begun.
TEST(InterposedMessages, AreExchangedInPlace) {
  for (const bool begun : {false, true}) {
    expect_sound(run_preloaded({}, [&](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      const int own = 1 + 10'000 * rank, theirs = 1 + 10'000 * (1 - rank);
      std::vector<int> memory = numbers(own);
      Status status{};
      if (begun) {
        Request request{};
        EXPECT_EQ(mpi.Isendrecv_replace(memory.data(), 1, type, 1 - rank, 7, 1 - rank, 7, mpi.world, &request), mpi::kSuccess);
        EXPECT_EQ(mpi.Wait(&request, &status), mpi::kSuccess);
      } else {
        EXPECT_EQ(mpi.Sendrecv_replace(memory.data(), 1, type, 1 - rank, 7, 1 - rank, 7, mpi.world, &status), mpi::kSuccess);
      }
      EXPECT_EQ(mpi::bytes_of(status), 4 * kCount);
      EXPECT_EQ(status.source, 1 - rank);
      expect_received(memory, theirs, own);
      mpi.Type_free(&type);
    }));
  }
}

// What one sends as it stands, and the other replaces.
TEST(InterposedMessages, OfferedToWhoReplaces) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
    if (rank == 0) {
      std::vector<int> back(kCount);
      Request request{};
      mpi.Isend(memory.data(), 1, type, 1, 7, mpi.world, &request);
      mpi.Recv(back.data(), kCount, int_type(), 1, 8, mpi.world, mpi::ignored());
      EXPECT_EQ(back[3], -100'000 + 6);
      mpi.Wait(&request, mpi::ignored());
    } else {
      Request request{};
      mpi.Isendrecv_replace(memory.data(), 1, type, 0, 8, 0, 7, mpi.world, &request);
      mpi.Wait(&request, mpi::ignored());
      expect_received(memory, 1, -100'000);
    }
    mpi.Type_free(&type);
  }));
}

// Of MPICH's streams: what is sent may be received by a function that is not intercepted, and the other way about. Any
// source, and both at once.
TEST(InterposedMessages, OfStreamsAreTheHostsAlone) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    Comm comm = of_stream(mpi.world);
    const int own = 1 + 10'000 * rank, theirs = 1 + 10'000 * (1 - rank);
    const auto receive = {mpi::host().Recv, mpi.Recv};
    for (const auto call : receive) {
      std::vector<int> memory = numbers(own);
      if (rank == 0) mpi.Send(memory.data(), 1, type, 1, 7, comm);
      if (rank == 1) {
        EXPECT_EQ(call(memory.data(), 1, type, mpi::kAnySource, 7, comm, mpi::ignored()), mpi::kSuccess);
        expect_received(memory, theirs, own);
      }
    }
    std::vector<int> out = numbers(own), in = numbers(-100'000);
    mpi.Sendrecv(out.data(), 1, type, 1 - rank, 8, in.data(), 1, type, 1 - rank, 8, comm, mpi::ignored());
    expect_received(in, theirs, -100'000);
    mpi.Sendrecv_replace(out.data(), 1, type, 1 - rank, 8, 1 - rank, 8, comm, mpi::ignored());
    expect_received(out, theirs, own);
    EXPECT_EQ(calls_of("Sendrecv"), 1);
    EXPECT_EQ(calls_of("Sendrecv_replace"), 1);
    mpi::host().Comm_free(&comm);
    mpi.Type_free(&type);
  }));
}

// The receive of a pair is refused: the send that has begun is not forgotten.
TEST(InterposedMessages, ThatAreRefusedLeaveNothingBehind) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    return_errors(mpi.world);
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(1), theirs = numbers(-100'000);
    if (rank == 0) {
      Request request = mpi.no_request;
      EXPECT_EQ(mpi.Isendrecv(memory.data(), 1, type, 1, 7, theirs.data(), 1, type, 99, 7, mpi.world, &request), kErrRank);
      EXPECT_EQ(mpi.Isendrecv_replace(memory.data(), 1, type, 1, 7, 99, 7, mpi.world, &request), kErrRank);
    } else {
      for (int i = 0; i < 2; ++i) {
        std::vector<int> got = numbers(-100'000);
        mpi.Recv(got.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
        expect_received(got, 1, -100'000);
      }
    }
    mpi.Type_free(&type);
  }));
}

// Threads that use a communicator for the first time at once: its attribute is set once, for to set it again is to
// delete what the others have found.
TEST(InterposedMessages, OfThreadsOnANewCommunicator) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    for (int round = 0; round < 20; ++round) {
      Comm comm{};
      mpi.Comm_dup(mpi.world, &comm);
      {
        std::vector<std::jthread> threads;
        for (int tag = 0; tag < 4; ++tag) {
          threads.push_back(thread_of_rank([&, tag] {
            std::vector<int> memory = numbers(rank == 0 ? tag : -100'000);
            if (rank == 0) {
              mpi.Send(memory.data(), 1, type, 1, tag, comm);
            } else {
              mpi.Recv(memory.data(), 1, type, 0, tag, comm, mpi::ignored());
              expect_received(memory, tag, -100'000);
            }
          }));
        }
      }
      mpi.Comm_free(&comm);
    }
    mpi.Type_free(&type);
  }));
}

// A message that a probe has set aside, unread, since one behind it might have been a descriptor; and whose sender has
// not sent its bytes yet.
TEST(InterposedMessages, ThatWereSetAsideAreReceivedByAStart) {
  for (const bool threads : {false, true}) {
    expect_sound(run_preloaded({.threads = threads}, [](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      std::vector<int> plain(20'000, rank == 0 ? 5 : -1);
      std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
      if (rank == 0) {
        Request request{};
        mpi.Isend(plain.data(), 20'000, int_type(), 1, 3, mpi.world, &request);
        mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
        mpi.Wait(&request, mpi::ignored());
      } else {
        Request request{};
        mpi.Recv_init(plain.data(), 20'000, int_type(), 0, 3, mpi.world, &request);
        mpi.Probe(0, 7, mpi.world, mpi::ignored());
        mpi.Start(&request);
        Status status{};
        mpi.Wait(&request, &status);
        EXPECT_EQ(mpi::bytes_of(status), 80'000);
        EXPECT_EQ(std::ranges::count(plain, 5), 20'000);
        mpi.Request_free(&request);
        mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
        expect_received(memory, 1, -100'000);
      }
      mpi.Type_free(&type);
    }));
  }
}

// A blocking receive has room for far more than comes, and than there is memory: no buffer is as long as that. Offered,
// packed, and sent by the host.
TEST(InterposedMessages, NeedNoMoreMemoryThanTheyHave) {
  for (const Count elements : {Count{1} << 12, Count{1} << 20, Count{1} << 30}) {
    for (const int sent : {3, 200, 20'000}) {
      expect_sound(run_preloaded({.threads = false}, [&](const Host& mpi, int rank) {
        Datatype one = fake::vector(2, 1, 2, int_type());  // of 12 bytes, 8 of them moved
        Datatype wide = fake::contiguous(1024, one);
        mpi.Type_commit(&one);
        mpi.Type_commit(&wide);
        std::vector<int> memory(static_cast<std::size_t>(3 * 32'768), -1);
        if (rank == 0) {
          std::iota(memory.begin(), memory.end(), 0);
          mpi.Send(memory.data(), sent, one, 1, 7, mpi.world);
        } else {
          Status status{};
          EXPECT_EQ(mpi.Recv(memory.data(), static_cast<int>(elements), wide, 0, 7, mpi.world, &status), mpi::kSuccess);
          EXPECT_EQ(mpi::bytes_of(status), 8 * sent);
          for (int i = 0; i < 3 * 32'768; ++i)
            ASSERT_EQ(memory[static_cast<std::size_t>(i)], i < 3 * sent && i % 3 != 1 ? i : -1) << i << " of " << elements;
        }
        mpi.Type_free(&one);
        mpi.Type_free(&wide);
      }));
    }
  }
}

// One that is too long for its receive is an error of the receive's own communicator, whose errors are returned;
// MPI_COMM_WORLD's end the program.
TEST(InterposedMessages, ThatAreTooLongAreErrorsOfTheirCommunicator) {
  constexpr int kRoom = 5 << 20, kSent = 6 << 20;  // bytes: more than a receive has a buffer for
  expect_sound(run_preloaded({.threads = false}, [](const Host& mpi, int rank) {
    Comm comm{};
    mpi.Comm_dup(mpi.world, &comm);
    return_errors(comm);
    Datatype type = fake::vector(kRoom / 4, 1, 2, int_type());
    mpi.Type_commit(&type);
    std::vector<int> memory(kRoom / 2, rank == 0 ? 3 : -1);
    if (rank == 0) {
      mpi.Ssend(memory.data(), kSent, byte_type(), 1, 7, comm);
    } else {
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, comm, mpi::ignored()), mpi::kErrTruncate);
      EXPECT_EQ(memory[1], -1);
    }
    mpi.Type_free(&type);
    mpi.Comm_free(&comm);
  }));
}

// Pairs that were freed end both of their parts: nothing is left over (expect_sound).
TEST(InterposedMessages, OfFreedPairsEnd) {
  for (const bool threads : {false, true}) {
    expect_sound(run_preloaded({.threads = threads}, [](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      std::vector<std::vector<int>> all(20, numbers(rank == 0 ? 1 : -100'000));
      for (std::vector<int>& memory : all) {
        Request request{};
        mpi.Isendrecv_replace(memory.data(), 1, type, 1 - rank, 7, 1 - rank, 7, mpi.world, &request);
        mpi.Request_free(&request);
      }
      Request barrier{};
      mpi.Ibarrier(mpi.world, &barrier);
      mpi.Wait(&barrier, mpi::ignored());
      for (int flag = 0, looks = 0; looks < 100; ++looks) mpi.Iprobe(1 - rank, 99, mpi.world, &flag, mpi::ignored());
      for (const std::vector<int>& memory : all) expect_received(memory, rank == 0 ? -100'000 : 1, rank == 0 ? 1 : -100'000);
      mpi.Type_free(&type);
    }));
  }
}

// A look at a pair that ends nothing tells of its receive.
TEST(InterposedMessages, OfPairsHaveAStatus) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(rank);
    Request request{};
    mpi.Isendrecv_replace(memory.data(), 1, type, 1 - rank, 7, 1 - rank, 7, mpi.world, &request);
    Status status{};
    for (int flag = 0; flag == 0;) mpi.Request_get_status(request, &flag, &status);
    EXPECT_EQ(status.source, 1 - rank);
    EXPECT_EQ(status.tag, 7);
    EXPECT_EQ(mpi::bytes_of(status), 4 * kCount);
    mpi.Wait(&request, mpi::ignored());
    mpi.Type_free(&type);
  }));
}

// The host's MPI_Recv may look at what its MPI_Irecv does not.
TEST(InterposedMessages, OfNoRankAreReceivedByTheSameCall) {
  for (const bool threads : {false, true}) {
    const Outcome outcome = run_preloaded({.threads = threads}, [](const Host& mpi, int) {
      const int begun = calls_of("Irecv"), received = calls_of("Recv");
      int number = 0;
      Status status{};
      EXPECT_EQ(mpi.Recv(&number, 1, int_type(), mpi::kProcNull, 7, mpi.world, &status), mpi::kSuccess);
      EXPECT_EQ(status.source, mpi::kProcNull);
      EXPECT_EQ(calls_of("Irecv"), begun);
      EXPECT_EQ(calls_of("Recv"), received + 1);
    });
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

// In MPI_Init ranks wait for one another by messages, and let others have their CPU meanwhile. A collective of the host
// may keep it.
TEST(InterposedMessages, InitCallsNoCollectiveOfTheHost) {
  const Outcome outcome = run_preloaded({.ranks = 5}, [](const Host& /*mpi*/, int /*rank*/) {
    ASSERT_TRUE(mpi::job != nullptr && mpi::job->ranks != nullptr);
    for (const char* const call : {"Allreduce", "Allgather", "Alltoall", "Barrier", "Bcast"}) EXPECT_EQ(calls_of(call), 0) << call;
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
