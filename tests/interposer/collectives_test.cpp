// Collectives through the interposer, on the fake host.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>

#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr int kInts = 64;  // of a block: every second one moves
constexpr int kSpoiled = -7;

std::vector<int> blocks(std::size_t number, int rank) {
  std::vector<int> made(number * kInts);
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = 100'000 * (rank + 1) + static_cast<int>(i);
  return made;
}

// Each block of a neighbour has what it sent in the direction of ours; others, and gaps, are as they were.
void expect_from(const std::vector<int>& memory, std::size_t block, int from, std::size_t their_block) {
  for (std::size_t i = 0; i < kInts; ++i) {
    const int wanted = from < 0 || i % 2 != 0 ? kSpoiled : 100'000 * (from + 1) + static_cast<int>(their_block * kInts + i);
    ASSERT_EQ(memory[block * kInts + i], wanted) << "block " << block << ", int " << i;
  }
}

TEST(InterposedCollectives, LeaveBlocksOfProcNullAlone) {
  const Outcome outcome = run_preloaded({.ranks = 3}, [](const Host& mpi, int rank) {
    Datatype inner = fake::vector(kInts / 2, 1, 2, int_type());
    Datatype type = resized(inner, 0, kInts * 4);
    mpi.Type_commit(&type);
    const Comm line = cart(mpi.world, std::array{3}, std::array{false});
    const int left = rank - 1, right = rank < 2 ? rank + 1 : -1;
    for (const int form : {0, 1, 2}) {
      const std::vector<int> out = blocks(2, rank);
      std::vector<int> in(2 * kInts, kSpoiled);
      const std::array ones{1, 1}, places{0, 1};
      if (form == 0) mpi.Neighbor_alltoall(out.data(), 1, type, in.data(), 1, type, line);
      if (form == 1)
        mpi.Neighbor_alltoallv(out.data(), ones.data(), places.data(), type, in.data(), ones.data(), places.data(), type, line);
      if (form == 2) mpi.Neighbor_allgather(out.data(), 1, type, in.data(), 1, type, line);
      expect_from(in, 0, left, form == 2 ? 0 : 1);
      expect_from(in, 1, right, 0);
    }
    mpi.Type_free(&type);
    mpi.Type_free(&inner);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// A graph may name MPI_PROC_NULL. Its block is where no memory is.
TEST(InterposedCollectives, TouchNoMemoryOfProcNull) {
  const Outcome outcome = run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype inner = fake::vector(kInts / 2, 1, 2, int_type());
    Datatype type = resized(inner, 0, kInts * 4);
    mpi.Type_commit(&type);
    const std::array both{mpi::kProcNull, 1 - rank};
    const Comm graph = dist_graph(mpi.world, both, both);
    const std::vector<int> out = blocks(1, rank);
    std::vector<int> in(kInts, kSpoiled);
    const std::array ones{1, 1};
    const auto nowhere = static_cast<Aint>(std::uintptr_t{1} << 46);
    const std::array<Aint, 2> places{nowhere, 0};
    const std::array types{type, type};
    mpi.Neighbor_alltoallw(out.data(), ones.data(), places.data(), types.data(), in.data(), ones.data(), places.data(), types.data(),
                           graph);
    expect_from(in, 0, 1 - rank, 0);
    mpi.Type_free(&type);
    mpi.Type_free(&inner);
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// Its types are decoded at once: there are starts to come that pay for that.
TEST(InterposedCollectives, ThatPersistDecodeTheirTypes) {
  for (const bool persists : {false, true}) {
    const Outcome outcome = run_preloaded({.decode_at = 0}, [&](const Host& mpi, int rank) {
      Datatype inner = fake::vector(kInts / 2, 1, 2, int_type());
      Datatype type = resized(inner, 0, kInts * 4);
      mpi.Type_commit(&type);
      const std::vector<int> out = blocks(2, rank);
      std::vector<int> in(2 * kInts);
      Request request{};
      if (persists) mpi.Alltoall_init(out.data(), 1, type, in.data(), 1, type, mpi.world, Info{}, &request);
      for (int start = 0; start < 2; ++start) {
        std::ranges::fill(in, kSpoiled);
        if (persists) {
          mpi.Start(&request);
          mpi.Wait(&request, mpi::ignored());
        } else {
          mpi.Alltoall(out.data(), 1, type, in.data(), 1, type, mpi.world);
        }
        for (const int from : {0, 1}) expect_from(in, static_cast<std::size_t>(from), from, static_cast<std::size_t>(rank));
      }
      if (persists) mpi.Request_free(&request);
      mpi.Type_free(&type);
      mpi.Type_free(&inner);
    });
    EXPECT_EQ(outcome.calls.contains("Type_get_contents_c"), persists);
    for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  }
}

// What a later start of a persistent collective asks the host for is its start and its end: no datatype is decoded, and
// the ranks tell one another nothing.
TEST(InterposedCollectives, ThatPersistPlanOnce) {
  constexpr std::array kOthers{"Type_get_envelope",
                               "Type_get_envelope_c",
                               "Type_get_contents",
                               "Type_get_contents_c",
                               "Type_get_extent",
                               "Alltoall",
                               "Allreduce",
                               "Isend",
                               "Issend",
                               "Irecv",
                               "Pack",
                               "Unpack"};
  const auto count = [&] {
    std::vector<int> calls;
    for (const char* const call : kOthers) calls.push_back(calls_of(call));
    return calls;
  };
  const Outcome outcome = run_preloaded({.ranks = 3}, [&](const Host& mpi, int rank) {
    Datatype inner = fake::vector(kInts / 2, 1, 2, int_type());
    Datatype type = resized(inner, 0, kInts * 4);
    mpi.Type_commit(&type);
    const Comm ring = cart(mpi.world, std::array{3}, std::array{true});
    const std::vector<int> out = blocks(3, rank);
    std::vector<int> in(3 * kInts), of_neighbors(2 * kInts);
    std::array<Request, 2> requests{};
    mpi.Alltoall_init(out.data(), 1, type, in.data(), 1, type, mpi.world, Info{}, &requests[0]);
    mpi.Neighbor_alltoall_init(out.data(), 1, type, of_neighbors.data(), 1, type, ring, Info{}, &requests[1]);
    std::vector<int> before;
    for (int start = 0; start < 4; ++start) {
      std::ranges::fill(in, kSpoiled);
      std::ranges::fill(of_neighbors, kSpoiled);
      if (start == 1) before = count();
      for (Request& request : requests) mpi.Start(&request);
      for (Request& request : requests) mpi.Wait(&request, mpi::ignored());
      for (const int from : {0, 1, 2}) expect_from(in, static_cast<std::size_t>(from), from, static_cast<std::size_t>(rank));
      expect_from(of_neighbors, 0, (rank + 2) % 3, 1);
      expect_from(of_neighbors, 1, (rank + 1) % 3, 0);
    }
    EXPECT_EQ(count(), before);
    for (Request& request : requests) mpi.Request_free(&request);
    mpi.Type_free(&type);
    mpi.Type_free(&inner);
  });
  EXPECT_TRUE(outcome.calls.contains("Type_get_contents_c"));  // once
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

int copied(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return mpi::kSuccess;
}

// What hangs on MPI_COMM_SELF is ended by MPI_Finalize, and may send messages still. What the interposer makes for them
// is freed after them.
TEST(InterposedCollectives, GoOnInTheCallbacksOfFinalize) {
  struct Late {
    const Host& mpi;
    bool done = false;
    static int exchange(Comm, int, void* value, void*) {
      Late& late = *static_cast<Late*>(value);
      const Host& mpi = late.mpi;
      Datatype type = every_second(mpi);
      std::vector<int> out = numbers(1), in(4 * kCount, -1);
      out.resize(4 * kCount, 7);
      EXPECT_EQ(mpi.Alltoall(out.data(), 1, type, in.data(), 1, type, mpi.world), mpi::kSuccess);
      late.done = in[1] == -1 && in[0] > 0;
      mpi.Type_free(&type);
      return mpi::kSuccess;
    }
  };
  const std::size_t before = types_made();
  std::vector<std::unique_ptr<Late>> all(2);
  const Outcome outcome = run_preloaded({}, [&](const Host& mpi, int rank) {
    std::unique_ptr<Late>& late = all[static_cast<std::size_t>(rank)];
    late.reset(new Late{.mpi = mpi});
    int keyval = 0;
    mpi.Comm_create_keyval(&copied, &Late::exchange, &keyval, nullptr);
    mpi.Comm_set_attr(mpi.self, keyval, late.get());
  });
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
  for (const auto& late : all) EXPECT_TRUE(late->done);
  EXPECT_EQ(types_made(), before);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
