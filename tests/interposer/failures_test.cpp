// Transfers that fail though the host has taken their messages: the call says so by the communicator's error handler,
// and why is said once.
#include <gtest/gtest.h>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/support/times.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr const char* kWhy = "as a test wants it";

// All transfers of this rank fail, as its calls see it.
void let_fail() { mpi::job->ranks->end_all_with({base::Code::transfer, kWhy}); }

void meet(const Host& mpi) {
  Request barrier{};
  mpi.Ibarrier(mpi.world, &barrier);
  mpi.Wait(&barrier, mpi::ignored());
}

// How a rank sends: what the calls return.
using Send = int (*)(const Host& mpi, const void* memory, Datatype type);
int blocking(const Host& mpi, const void* memory, Datatype type) { return mpi.Send(memory, 1, type, 1, 7, mpi.world); }
int begun(const Host& mpi, const void* memory, Datatype type) {
  Request request{};
  EXPECT_EQ(mpi.Isend(memory, 1, type, 1, 7, mpi.world, &request), mpi::kSuccess);
  const int result = mpi.Wait(&request, mpi::ignored());
  EXPECT_EQ(request, mpi.no_request);
  return result;
}
int tested(const Host& mpi, const void* memory, Datatype type) {
  Request request{};
  EXPECT_EQ(mpi.Isend(memory, 1, type, 1, 7, mpi.world, &request), mpi::kSuccess);
  int over = 0, result = mpi::kSuccess;
  while (over == 0 && result == mpi::kSuccess) result = mpi.Test(&request, &over, mpi::ignored());
  return result;
}
int among_others(const Host& mpi, const void* memory, Datatype type) {
  Request requests[2] = {mpi.no_request, mpi.no_request};
  EXPECT_EQ(mpi.Isend(memory, 1, type, 1, 7, mpi.world, &requests[1]), mpi::kSuccess);
  Status statuses[2]{};
  EXPECT_EQ(mpi.Waitall(2, requests, statuses), mpi::kErrInStatus);
  return statuses[1].error;
}
int persistent(const Host& mpi, const void* memory, Datatype type) {
  Request request{};
  EXPECT_EQ(mpi.Send_init(memory, 1, type, 1, 7, mpi.world, &request), mpi::kSuccess);
  int result = mpi.Start(&request);
  if (result == mpi::kSuccess) result = mpi.Wait(&request, mpi::ignored());
  EXPECT_EQ(mpi.Request_free(&request), mpi::kSuccess);
  return result;
}

struct Case {
  const char* name;
  Send send;
  /// The receiver gets the host's message, if the payload goes in chunks; that of an offer it gets always
  bool chunks_arrive;
};
constexpr Case kCases[] = {
    {"Send", blocking, true}, {"Wait", begun, true}, {"Test", tested, true}, {"Waitall", among_others, true}, {"Start", persistent, false}};

// Takes what the host has of a message, and leaves the rest.
void take_descriptor(const Host& mpi) {
  std::byte wire[mpi::Descriptor::kBytes];
  EXPECT_EQ(mpi::host().Recv(wire, sizeof wire, mpi.byte, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
}

TEST(InterposedFailures, OfOffersAreErrorsOfTheirCalls) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    testing::internal::CaptureStderr();
    const Outcome outcome = run_preloaded({}, [&](const Host& mpi, int rank) {
      return_errors(mpi.world);
      Datatype type = every_second(mpi);
      std::vector<int> memory = numbers(1);
      if (rank == 0) {
        let_fail();
        EXPECT_EQ(one.send(mpi, memory.data(), type), mpi::kErrOther);
      } else {
        EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
      }
      meet(mpi);
      mpi.Type_free(&type);
    });
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
    EXPECT_EQ(support::times(testing::internal::GetCapturedStderr(), kWhy), 1);
  }
}

// 1 MiB of every second int.
Datatype long_one(const Host& mpi) {
  Datatype type = fake::vector(1 << 18, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

// To another node, in chunks, the third of which the host does not take.
TEST(InterposedFailures, OfChunksAreErrorsOfTheirCalls) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    const bool has_descriptor = one.send != blocking && one.send != persistent;  // sent by Isend, too
    const auto program = [&](const Host& mpi, int rank) {
      return_errors(mpi.world);
      Datatype type = long_one(mpi);
      std::vector<int> memory(1 << 19);
      if (rank == 0) {
        EXPECT_EQ(one.send(mpi, memory.data(), type), mpi::kErrOther);
      } else if (one.chunks_arrive) {
        take_descriptor(mpi);
      }
      meet(mpi);
      mpi.Type_free(&type);
    };
    testing::internal::CaptureStderr();
    run_preloaded({.nodes = 2}, program, {{.call = "Isend", .n = has_descriptor ? 4 : 3}});
    EXPECT_EQ(support::times(testing::internal::GetCapturedStderr(), "MPI send: "), 1);
  }
}

const Host* table;
int called;
// NOLINTNEXTLINE(cert-dcl50-cpp,modernize-avoid-variadic-functions): as MPI has it
void sends(Comm* /*comm*/, int* /*code*/, ...) {
  ++called;
  int over = 0;
  Request request{};
  const int number = 3;
  table->Isend(&number, 1, int_type(), 1, 8, table->world, &request);
  while (over == 0) table->Test(&request, &over, mpi::ignored());
}

// An error handler may call MPI: no lock of ours is held meanwhile.
TEST(InterposedFailures, AreToldToHandlersThatCallMpi) {
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    called = 0;
    run_preloaded({}, [&](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      std::vector<int> memory = numbers(1);
      if (rank == 0) {
        table = &mpi;
        Errhandler handler{};
        mpi.Comm_create_errhandler(&sends, &handler);
        mpi.Comm_set_errhandler(mpi.world, handler);
        let_fail();
        one.send(mpi, memory.data(), type);
      } else {
        mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored());
        int number = 0;
        EXPECT_EQ(mpi.Recv(&number, 1, int_type(), 0, 8, mpi.world, mpi::ignored()), mpi::kSuccess);
      }
      meet(mpi);
      mpi.Type_free(&type);
    });
    EXPECT_EQ(called, 1);
  }
}

int into[64 * 100];
// NOLINTNEXTLINE(cert-dcl50-cpp,modernize-avoid-variadic-functions): as MPI has it
void frees(Comm* /*comm*/, int* /*code*/, ...) {
  ++called;
  for (int i = 0; i < 64; ++i) {
    Request request{};
    table->Irecv(into + 100 * i, 100, int_type(), 1, 9, table->world, &request);
    table->Request_free(&request);
  }
}

// Receives that the program has freed, the first of which is too short: its handler frees more of them.
TEST(InterposedFailures, OfFreedReceivesAreToldToHandlersThatFreeOthers) {
  called = 0;
  run_preloaded({}, [&](const Host& mpi, int rank) {
    std::vector<int> memory = numbers(1);
    if (rank == 0) {
      table = &mpi;
      Errhandler handler{};
      mpi.Comm_create_errhandler(&frees, &handler);
      mpi.Comm_set_errhandler(mpi.world, handler);
      Request request{};
      mpi.Irecv(memory.data(), 100, int_type(), 1, 7, mpi.world, &request);
      mpi.Request_free(&request);
    } else {
      mpi.Send(memory.data(), 200, int_type(), 0, 7, mpi.world);
      for (int i = 0; i < 64; ++i) mpi.Send(memory.data(), 100, int_type(), 0, 9, mpi.world);
    }
    meet(mpi);
  });
  EXPECT_EQ(called, 1);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(into[100 * i + 99], 100) << "receive " << i;
}

// A device that two nodes do not come to use, since the host's calls fail: nothing of what they said is left with the
// host, and messages go in chunks.
TEST(InterposedFailures, OfTheFirstWordsLeaveNothingBehind) {
  for (const char* const call : {"Irecv", "Isend", "Test"}) {
    SCOPED_TRACE(call);
    const int n = std::string(call) == "Irecv" ? 3 : 1;  // ranks meet by two, first of all
    const std::vector<Fault> faults{{.call = call, .n = n, .rank = 0}, {.call = call, .n = n, .rank = 1}};
    const Outcome outcome = run_preloaded(
        {.nodes = 2, .nic = "fake"},
        [&](const Host& mpi, int rank) {
          Datatype type = long_one(mpi);
          std::vector<int> memory(1 << 19, rank);
          if (rank == 1) mpi.Send(memory.data(), 1, type, 0, 7, mpi.world);
          if (rank == 0) mpi.Recv(memory.data(), 1, type, 1, 7, mpi.world, mpi::ignored());
          for (std::size_t i = 0; i < memory.size(); i += 2) ASSERT_EQ(memory[i], 1);
          mpi.Type_free(&type);
        },
        faults);
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

// A look at a chunk fails, and the chunk is still to come: its receive is taken back.
TEST(InterposedFailures, OfALookAtAChunkLeavesNoReceiveBehind) {
  int failed = 0;
  for (int n = 1; n <= 8; ++n) {
    SCOPED_TRACE(n);
    const Outcome outcome = run_preloaded({.nodes = 2},
                                          [&](const Host& mpi, int rank) {
                                            return_errors(mpi.world);
                                            Datatype type = long_one(mpi);
                                            std::vector<int> memory(1 << 19, rank);
                                            int ready = 0;
                                            if (rank == 0) {
                                              mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
                                              mpi.Recv(&ready, 1, int_type(), 1, 8, mpi.world, mpi::ignored());
                                            } else {
                                              if (mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()) != mpi::kSuccess)
                                                ++failed;
                                              mpi.Send(&ready, 1, int_type(), 0, 8, mpi.world);
                                            }
                                            mpi.Type_free(&type);
                                          },
                                          {{.call = "Test", .n = n, .rank = 1}});
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
  EXPECT_GT(failed, 0);
}

// What ranks of two nodes say to connect their devices fails, and the host calls that a success. Both learn it at once,
// and their messages go without devices.
TEST(InterposedFailures, OfDevicesThatAreToConnect) {
  // The first that are about devices
  const std::pair<const char*, int> faults[] = {{"Isend", 1}, {"Irecv", 3}, {"Test", 1}};
  for (const auto& [call, n] : faults) {
    SCOPED_TRACE(call);
    const std::vector<Fault> both{{.call = call, .n = n, .rank = 0}, {.call = call, .n = n, .rank = 1}};
    const Program program = [&, call = call, n = n](const Host& mpi, int rank) {
      EXPECT_EQ(calls_of("Test"), std::string_view(call) == "Test" ? n : 0);
      one_message(mpi, rank);
    };
    const Outcome outcome = run_preloaded({.forgives = true, .nodes = 2, .nic = "fake"}, program, both);
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
