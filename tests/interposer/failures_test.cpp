// Transfers that fail though the host has taken their messages: the call says so by the communicator's error handler, and why is said once.
#include <gtest/gtest.h>

#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

// 1 MiB of every second int.
Datatype long_one(const Host& mpi) {
  Datatype type = fake::vector(1 << 18, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

// A device that two nodes do not come to use, since the host's calls fail: nothing of what they said is left with the host, and messages go in chunks.
TEST(InterposedFailures, OfTheFirstWordsLeaveNothingBehind) {
  for (const char* const call : {"Irecv", "Isend", "Test"}) {
    SCOPED_TRACE(call);
    const std::vector<Fault> faults{{.call = call, .rank = 0}, {.call = call, .rank = 1}};
    const Outcome outcome = run_preloaded(
        {.nodes = 2, .devices = true},
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

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
