// The report of calls that were handed to the host as they are: each is counted for its function, with its reason.
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

struct Variable {
  const char* name;
  Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
};

// What the report of the first rank says of what `calls` passed, where the second does `others`.
std::string said(const Options& options, const Program& calls, const Program& others = {}, const std::vector<Fault>& faults = {}) {
  std::string text;
  const Outcome outcome = run_preloaded(
      options,
      [&](const Host& mpi, int rank) {
        return_errors(mpi.world);
        if (rank == 0) {
          calls(mpi, rank);
          text = mpi::job->report.passed.text();
        } else if (others) {
          others(mpi, rank);
        }
      },
      faults);
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  return text;
}
std::string said(const Program& calls, const Program& others = {}) {
  const Variable on("LACUNA_MPI_REPORT", "1");
  return said(Options{}, calls, others);
}
std::string line(const std::string& function, const std::string& why, int times = 1) {
  return "  passed through: MPI_" + function + ": " + why + ", " + std::to_string(times) + " times\n";
}

// A message with gaps of so many ints.
Datatype gaps(const Host& mpi, int ints) {
  Datatype type = fake::vector(ints, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

thread_local int memory[20'000];  // of a rank

TEST(PassedCalls, WithoutGaps) {
  const auto receive = [](const Host& mpi, int) {
    for (int i = 0; i < 4; ++i) mpi.Recv(memory, 1000, int_type(), 0, 7, mpi.world, mpi::ignored());
  };
  EXPECT_EQ(said(
                [](const Host& mpi, int) {
                  Datatype type = fake::contiguous(10, int_type());
                  mpi.Type_commit(&type);
                  Request request{};
                  mpi.Send(memory, 2, int_type(), 1, 7, mpi.world);
                  mpi.Send(memory, 2, int_type(), 1, 7, mpi.world);
                  mpi.Ssend(memory, 2, type, 1, 7, mpi.world);
                  mpi.Isend(memory, 2, type, 1, 7, mpi.world, &request);
                  mpi.Wait(&request, mpi::ignored());
                  mpi.Type_free(&type);
                },
                receive),
            line("Send", "no gaps", 2) + line("Ssend", "no gaps") + line("Isend", "no gaps") +
                line("Wait", "a request, message or communicator of the MPI's alone"));
}

// They are looked at afterwards; each was no descriptor.
TEST(PassedCalls, ReceivesWithoutGaps) {
  EXPECT_EQ(said(
                [](const Host& mpi, int) {
                  Request request{};
                  mpi::Message message{};
                  mpi.Recv(memory, 1000, int_type(), 1, 7, mpi.world, mpi::ignored());
                  mpi.Irecv(memory, 1000, int_type(), 1, 7, mpi.world, &request);
                  mpi.Wait(&request, mpi::ignored());
                  mpi.Mprobe(1, 7, mpi.world, &message, mpi::ignored());
                  mpi.Mrecv(memory, 1000, int_type(), &message, mpi::ignored());
                },
                [](const Host& mpi, int) {
                  for (int i = 0; i < 3; ++i) mpi.Send(memory, 1000, int_type(), 0, 7, mpi.world);
                }),
            line("Recv", "no gaps") + line("Irecv", "no gaps") + line("Mrecv", "a request, message or communicator of the MPI's alone"));
}

TEST(PassedCalls, TooShort) {
  const auto send = [](const Host& mpi, int) {
    for (int i = 0; i < 3; ++i) mpi.Send(memory, 2, int_type(), 0, 7, mpi.world);
  };
  EXPECT_EQ(said(
                [](const Host& mpi, int) {
                  Datatype type = gaps(mpi, 2);
                  Request request{};
                  mpi.Recv(memory, 2, int_type(), 1, 7, mpi.world, mpi::ignored());
                  mpi.Recv(memory, 1, type, mpi::kAnySource, 7, mpi.world, mpi::ignored());
                  mpi.Irecv(memory, 1, type, 1, 7, mpi.world, &request);
                  mpi.Wait(&request, mpi::ignored());
                  mpi.Send_init(memory, 1, type, 1, 7, mpi.world, &request);
                  mpi.Request_free(&request);
                  mpi.Type_free(&type);
                },
                send),
            line("Send_init", "too short") + line("Recv", "too short", 2) + line("Irecv", "too short") +
                line("Wait", "a request, message or communicator of the MPI's alone") +
                line("Request_free", "a request, message or communicator of the MPI's alone"));
}

TEST(PassedCalls, WithNothingToMove) {
  EXPECT_EQ(said([](const Host& mpi, int) {
              Datatype type = gaps(mpi, 100);
              int position = 0;
              mpi.Send(memory, 1, type, mpi::kProcNull, 7, mpi.world);
              mpi.Recv(memory, 1, type, mpi::kProcNull, 7, mpi.world, mpi::ignored());
              mpi.Pack(memory, 0, type, memory, 100, &position, mpi.world);
              EXPECT_NE(mpi.Pack(memory, 1, type, memory, 100, &position, mpi.world), mpi::kSuccess);
              mpi.Type_free(&type);
            }),
            line("Send", "nothing to move") + line("Recv", "nothing to move") + line("Pack", "nothing to move") +
                line("Pack", "arguments that the MPI has to judge"));
}

TEST(PassedCalls, WithThisRank) {
  EXPECT_EQ(said([](const Host& mpi, int) {
              Datatype type = gaps(mpi, 100);
              Request request{};
              mpi.Irecv(memory, 1, type, 0, 7, mpi.world, &request);
              mpi.Rsend(memory + 10'000, 1, type, 0, 7, mpi.world);
              int done = 0;
              while (done == 0) mpi.Test(&request, &done, mpi::ignored());
              mpi.Type_free(&type);
            }),
            (line("Rsend", "with this rank itself, or a process of another job") +
             line("Irecv", "with this rank itself, or a process of another job") +
             line("Test", "a request, message or communicator of the MPI's alone")));
  const Variable on("LACUNA_MPI_REPORT", "1");
  EXPECT_EQ(said({.ranks = 1},
                 [](const Host& mpi, int) {
                   Datatype type = gaps(mpi, 100);
                   Request request{};
                   mpi.Irecv(memory, 1, type, mpi::kAnySource, 7, mpi.world, &request);
                   mpi.Cancel(&request);
                   mpi.Waitall(1, &request, mpi::ignored());
                   mpi.Type_free(&type);
                 }),
            line("Irecv", "no other rank") + line("Waitall", "a request, message or communicator of the MPI's alone") +
                line("Cancel", "a request, message or communicator of the MPI's alone"));
}

TEST(PassedCalls, OfTypesThatAreNotDecoded) {
  const Variable on("LACUNA_MPI_REPORT", "1");
  const auto receive = [](const Host& mpi, int) { mpi.Recv(memory, 2000, int_type(), 0, 7, mpi.world, mpi::ignored()); };
  EXPECT_EQ(said(
                {.decode_at = 2},
                [](const Host& mpi, int) {
                  Datatype type = gaps(mpi, 100);
                  mpi.Send(memory, 1, type, 1, 7, mpi.world);
                  int position = 0;
                  mpi.Pack(memory, 1, type, memory + 10'000, 400, &position, mpi.world);  // by now it pays
                  mpi.Type_free(&type);
                },
                receive),
            line("Send", "a datatype that does not pay to decode yet"));
  EXPECT_EQ(said({},
                 [](const Host& mpi, int) {
                   Datatype type = gaps(mpi, 1000);
                   mpi.Bsend(memory, 1, type, 1, 7, mpi.world);
                   mpi.Type_free(&type);
                 },
                 receive, {{.call = "Type_get_envelope_c", .n = Fault::kAll}}),
            line("Bsend", "a datatype that cannot be decoded"));
  EXPECT_EQ(said(
                {.decode_at = 2},
                [](const Host& mpi, int) {
                  Datatype type = gaps(mpi, 1000);
                  mpi.Recv(memory, 1, type, 1, 7, mpi.world, mpi::ignored());
                  mpi.Type_free(&type);
                },
                [](const Host& mpi, int) { mpi.Send(memory, 1000, int_type(), 0, 7, mpi.world); }),
            line("Recv", "a datatype that does not pay to decode yet"));
}

TEST(PassedCalls, OfCollectives) {
  const Program all = [](const Host& mpi, int) {
    Datatype type = gaps(mpi, 100), dense = fake::contiguous(10, int_type());
    mpi.Type_commit(&dense);
    mpi.Bcast(memory, 10, int_type(), 0, mpi.world);
    mpi.Allgather(memory, 1, dense, memory + 10'000, 1, dense, mpi.world);
    mpi.Bcast(memory, 1, type, 0, mpi.world);  // is taken
    mpi.Gather(memory, 1, type, memory, 1, type, 9, mpi.world);
    mpi.Type_free(&dense);
    mpi.Type_free(&type);
  };
  EXPECT_EQ(said(all, all),
            line("Allgather", "no gaps") + line("Gather", "arguments that the MPI has to judge") + line("Bcast", "no gaps"));
}

// Of a send and a receive at once each part counts for the function that was called.
TEST(PassedCalls, OfBothAtOnce) {
  const Program both = [](const Host& mpi, int rank) {
    Datatype type = gaps(mpi, 100);
    mpi.Sendrecv(memory, 2, int_type(), 1 - rank, 7, memory + 10'000, 2, int_type(), 1 - rank, 7, mpi.world, mpi::ignored());
    mpi.Sendrecv(memory, 1, type, 1 - rank, 7, memory + 10'000, 2, int_type(), mpi::kProcNull, 7, mpi.world, mpi::ignored());
    mpi.Recv(memory, 1, type, 1 - rank, 7, mpi.world, mpi::ignored());
    mpi.Type_free(&type);
  };
  EXPECT_EQ(said(both, both), line("Sendrecv", "no gaps") + line("Sendrecv", "too short"));
}

TEST(PassedCalls, WithoutMemory) {
  EXPECT_EQ(said(
                [](const Host& mpi, int) {
                  Datatype type = gaps(mpi, 100);
                  const auto [result, wanted] = scarce::call(0, true, [&] { return mpi.Send(memory, 1, type, 1, 7, mpi.world); });
                  EXPECT_EQ(result, mpi::kSuccess);
                  EXPECT_TRUE(wanted);
                  mpi.Type_free(&type);
                },
                [](const Host& mpi, int) { mpi.Recv(memory, 2000, int_type(), 0, 7, mpi.world, mpi::ignored()); }),
            line("Send", "no memory"));
}

TEST(PassedCalls, OfAJobThatIsNotFull) {
  const Variable mode("LACUNA_MPI", "pack");
  const Program all = [](const Host& mpi, int rank) {
    Datatype type = gaps(mpi, 100);
    Status status{};
    if (rank == 0) mpi.Probe(1, 7, mpi.world, &status);
    if (rank == 0) mpi.Recv(memory, 1, type, 1, 7, mpi.world, mpi::ignored());
    if (rank == 1) mpi.Send(memory, 1, type, 0, 7, mpi.world);
    mpi.Type_free(&type);
  };
  const std::string why = "LACUNA_MPI is not full on all ranks";
  EXPECT_EQ(said(all, all), line("Recv", why) + line("Probe", why));
}

TEST(PassedCalls, AreNotCountedWithoutAReport) {
  EXPECT_EQ(said(
                {}, [](const Host& mpi, int) { mpi.Send(memory, 2, int_type(), 1, 7, mpi.world); },
                [](const Host& mpi, int) { mpi.Recv(memory, 2, int_type(), 0, 7, mpi.world, mpi::ignored()); }),
            "");
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
