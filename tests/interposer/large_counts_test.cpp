// The functions with large counts (MPI-4.0), on a host that has none: they move what those with ints move, and refuse
// what no int counts.
#include <gtest/gtest.h>

#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::mpi {
#define X(name, arguments) extern "C" int MPI_##name arguments;
LACUNA_MPI_HOST_CALLS_MAYBE(X)
#undef X
extern "C" int MPIX_Request_is_complete(Request request);
}  // namespace lacuna::mpi

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

std::vector<int> received(int sent, int own) {
  std::vector<int> made = numbers(own);
  for (std::size_t i = 0; i < made.size(); i += 2) made[i] += sent - own;
  return made;
}

using Blocking = int (*)(const void*, Count, Datatype, int, int, Comm);
using Begun = int (*)(const void*, Count, Datatype, int, int, Comm, Request*);
constexpr Blocking kBlocking[] = {mpi::MPI_Send_c, mpi::MPI_Ssend_c, mpi::MPI_Rsend_c, mpi::MPI_Bsend_c};
constexpr Begun kBegun[] = {mpi::MPI_Isend_c, mpi::MPI_Issend_c, mpi::MPI_Irsend_c, mpi::MPI_Ibsend_c};
constexpr Begun kPersistent[] = {mpi::MPI_Send_init_c, mpi::MPI_Ssend_init_c, mpi::MPI_Rsend_init_c, mpi::MPI_Bsend_init_c};
constexpr int kMessages = 12;

void send_all(const Host& mpi, const void* memory, Count count, Datatype type) {
  Request request{};
  for (const Blocking send : kBlocking) EXPECT_EQ(send(memory, count, type, 1, 7, mpi.world), mpi::kSuccess);
  for (const Begun send : kBegun) {
    EXPECT_EQ(send(memory, count, type, 1, 7, mpi.world, &request), mpi::kSuccess);
    mpi.Wait(&request, mpi::ignored());
  }
  for (const Begun init : kPersistent) {
    EXPECT_EQ(init(memory, count, type, 1, 7, mpi.world, &request), mpi::kSuccess);
    mpi.Start(&request);
    mpi.Wait(&request, mpi::ignored());
    mpi.Request_free(&request);
  }
}

void receive(const Host& mpi, int way, void* memory, Count count, Datatype type) {
  Request request{};
  mpi::Message message{};
  switch (way % 5) {
    case 0: EXPECT_EQ(mpi::MPI_Recv_c(memory, count, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess); return;
    case 1: EXPECT_EQ(mpi::MPI_Irecv_c(memory, count, type, 0, 7, mpi.world, &request), mpi::kSuccess); break;
    case 2:
      EXPECT_EQ(mpi::MPI_Recv_init_c(memory, count, type, 0, 7, mpi.world, &request), mpi::kSuccess);
      mpi.Start(&request);
      mpi.Wait(&request, mpi::ignored());
      mpi.Request_free(&request);
      return;
    case 3:
      mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored());
      EXPECT_EQ(mpi::MPI_Mrecv_c(memory, count, type, &message, mpi::ignored()), mpi::kSuccess);
      return;
    default:
      mpi.Mprobe(0, 7, mpi.world, &message, mpi::ignored());
      EXPECT_EQ(mpi::MPI_Imrecv_c(memory, count, type, &message, &request), mpi::kSuccess);
      break;
  }
  mpi.Wait(&request, mpi::ignored());
}

// Long ones, and short ones that the host has.
TEST(LargeCounts, Messages) {
  for (const bool gaps : {true, false}) {
    expect_sound(run_preloaded({}, [&](const Host& mpi, int rank) {
      Datatype type = every_second(mpi);
      const std::vector<int> out = numbers(1);
      for (int way = 0; way < kMessages; ++way) {
        std::vector<int> in = numbers(-100'000);
        if (rank == 1) receive(mpi, way, in.data(), gaps ? 1 : 3, gaps ? type : int_type());
        if (rank == 1) {
          EXPECT_TRUE(gaps ? in == received(1, -100'000) : in[2] == 3);
        }
        if (rank == 0 && way == 0) send_all(mpi, out.data(), gaps ? 1 : 3, gaps ? type : int_type());
      }
      mpi.Type_free(&type);
    }));
  }
}

TEST(LargeCounts, BothAtOnce) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    const int other = 1 - rank;
    const std::vector<int> out = numbers(rank);
    std::vector<int> in = numbers(-100'000), both = numbers(rank);
    EXPECT_EQ(mpi::MPI_Sendrecv_c(out.data(), 1, type, other, 7, in.data(), 1, type, other, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
    EXPECT_EQ(in, received(other, -100'000));
    EXPECT_EQ(mpi::MPI_Sendrecv_replace_c(both.data(), 1, type, other, 7, other, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
    EXPECT_EQ(both, received(other, rank));
    Request request{};
    in = numbers(-100'000);
    EXPECT_EQ(mpi::MPI_Isendrecv_c(out.data(), 1, type, other, 7, in.data(), 1, type, other, 7, mpi.world, &request), mpi::kSuccess);
    mpi.Wait(&request, mpi::ignored());
    EXPECT_EQ(in, received(other, -100'000));
    both = numbers(rank);
    EXPECT_EQ(mpi::MPI_Isendrecv_replace_c(both.data(), 1, type, other, 7, other, 7, mpi.world, &request), mpi::kSuccess);
    mpi.Wait(&request, mpi::ignored());
    EXPECT_EQ(both, received(other, rank));
    mpi.Type_free(&type);
  }));
}

TEST(LargeCounts, PackAndUnpack) {
  expect_sound(run_preloaded({.ranks = 1}, [](const Host& mpi, int) {
    Datatype type = every_second(mpi);
    const std::vector<int> from = numbers(1);
    for (const bool gaps : {true, false}) {
      std::vector<int> packed(kCount), to = numbers(-100'000);
      const Count count = gaps ? 1 : 10, bytes = gaps ? 4 * kCount : 40;
      Count position = 0;
      EXPECT_EQ(mpi::MPI_Pack_c(from.data(), count, gaps ? type : int_type(), packed.data(), 4 * kCount, &position, mpi.world),
                mpi::kSuccess);
      EXPECT_EQ(position, bytes);
      position = 0;
      EXPECT_EQ(mpi::MPI_Unpack_c(packed.data(), bytes, &position, to.data(), count, gaps ? type : int_type(), mpi.world), mpi::kSuccess);
      EXPECT_EQ(position, bytes);
      EXPECT_TRUE(gaps ? to == received(1, -100'000) : std::equal(to.begin(), to.begin() + 10, from.begin()));
    }
    mpi.Type_free(&type);
  }));
}

// The host has no function for them.
TEST(LargeCounts, MoreThanAnIntCounts) {
  constexpr Count kMany = Count{1} << 31;
  expect_sound(run_preloaded({.ranks = 1}, [](const Host& mpi, int) {
    return_errors(mpi.world);
    int memory = 0;
    Count position = 0;
    Request request{};
    EXPECT_NE(mpi::MPI_Send_c(&memory, kMany, int_type(), 0, 7, mpi.world), mpi::kSuccess);
    EXPECT_NE(mpi::MPI_Irecv_c(&memory, kMany, int_type(), 0, 7, mpi.world, &request), mpi::kSuccess);
    EXPECT_NE(mpi::MPI_Pack_c(&memory, kMany, int_type(), &memory, 4, &position, mpi.world), mpi::kSuccess);
    EXPECT_NE(mpi::MPI_Unpack_c(&memory, 4, &position, &memory, kMany, int_type(), mpi.world), mpi::kSuccess);
  }));
}

// --- looks at several requests (MPI-4.1) -----------------------------------------------------------------------------

// One of ours, one of the host's, and none.
TEST(Looks, AtSeveralRequests) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi);
    if (rank == 0) {
      const std::vector<int> out = numbers(1);
      const int short_one = 42;
      for (int round = 0; round < 4; ++round) {
        mpi.Send(out.data(), 1, type, 1, 7, mpi.world);
        mpi.Send(&short_one, 1, int_type(), 1, 8, mpi.world);
      }
      mpi.Type_free(&type);
      return;
    }
    for (int round = 0; round < 4; ++round) {
      std::vector<int> in = numbers(-100'000);
      int short_one = 0, flag = 0, index = 0, ended = 0, indices[3] = {};
      Status status{}, statuses[3];
      Request requests[] = {{}, mpi.no_request, {}};
      mpi.Irecv(in.data(), 1, type, 0, 7, mpi.world, &requests[0]);
      mpi.Irecv(&short_one, 1, int_type(), 0, 8, mpi.world, &requests[2]);
      if (round == 0) {
        while (flag == 0) EXPECT_EQ(mpi.Request_get_status_all(3, requests, &flag, statuses), mpi::kSuccess);
        EXPECT_EQ(mpi::bytes_of(statuses[0]), 4 * kCount);
        EXPECT_EQ(mpi::bytes_of(statuses[2]), 4);
      } else if (round == 1) {
        while (flag == 0) EXPECT_EQ(mpi.Request_get_status_any(3, requests, &index, &flag, &status), mpi::kSuccess);
        EXPECT_TRUE(index == 0 || index == 2) << index;
        EXPECT_EQ(mpi::bytes_of(status), index == 0 ? 4 * kCount : 4);
      } else if (round == 2) {
        while (ended < 2) EXPECT_EQ(mpi.Request_get_status_some(3, requests, &ended, indices, statuses), mpi::kSuccess);
        EXPECT_EQ(indices[0], 0);
        EXPECT_EQ(indices[1], 2);
        EXPECT_EQ(mpi::bytes_of(statuses[0]), 4 * kCount);
        EXPECT_EQ(mpi::bytes_of(statuses[1]), 4);
      } else {
        while (mpi::MPIX_Request_is_complete(requests[0]) == 0 || mpi::MPIX_Request_is_complete(requests[2]) == 0) {
        }
      }
      EXPECT_EQ(in[0], round == 1 ? in[0] : 1);
      mpi.Waitall(3, requests, mpi::ignored());
      EXPECT_EQ(in, received(1, -100'000));
      EXPECT_EQ(short_one, 42);
    }
    mpi.Type_free(&type);
  }));
}

TEST(Looks, AtTheHostsAlone) {
  expect_sound(run_preloaded({}, [](const Host& mpi, int rank) {
    const int out = 42;
    int in = 0, flag = 0, index = 0, ended = 0, indices[2] = {};
    Status status{}, statuses[2];
    Request requests[] = {mpi.no_request, mpi.no_request};
    EXPECT_EQ(mpi.Request_get_status_any(2, requests, &index, &flag, &status), mpi::kSuccess);
    EXPECT_TRUE(flag != 0 && index == mpi::kUndefined);
    EXPECT_EQ(mpi.Request_get_status_some(2, requests, &ended, indices, statuses), mpi::kSuccess);
    EXPECT_EQ(ended, mpi::kUndefined);
    if (rank == 0) mpi.Send(&out, 1, int_type(), 1, 7, mpi.world);
    if (rank == 1) {
      mpi.Irecv(&in, 1, int_type(), 0, 7, mpi.world, &requests[1]);
      for (flag = 0; flag == 0;) mpi.Request_get_status_any(2, requests, &index, &flag, &status);
      EXPECT_EQ(index, 1);
      mpi.Request_get_status_some(2, requests, &ended, indices, statuses);
      EXPECT_TRUE(ended == 1 && indices[0] == 1);
      mpi.Request_get_status_all(2, requests, &flag, statuses);
      EXPECT_NE(flag, 0);
      mpi.Waitall(2, requests, mpi::ignored());
      EXPECT_EQ(in, 42);
    }
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
