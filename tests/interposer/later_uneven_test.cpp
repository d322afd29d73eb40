// Collectives with requests of which no rank knows how long all blocks are, by boards, on the fake MPI.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/later_kinds.hpp"
#include "tests/support/environment.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "LaterUneven.*");

using namespace fake;
using namespace collectives;

constexpr int kMost = 80;  // elements of a block: some do not fit onto a board

// A call of MPI_Ialltoallv whose blocks are of so many elements, of a rank for each.
using Lengths = std::array<std::array<int, kRanks>, kRanks>;
struct Uneven {
  std::vector<int> out, in;
  std::array<int, kRanks> outs{}, ins{}, places{};
  Request request{};
  Uneven(const Lengths& lengths, int rank) : out(std::size_t{kRanks} * kMost * kInts), in(out.size(), kSpoiled) {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = value(rank, i);
    for (std::size_t other = 0; other < kRanks; ++other) {
      outs.at(other) = lengths.at(static_cast<std::size_t>(rank)).at(other);
      ins.at(other) = lengths.at(other).at(static_cast<std::size_t>(rank));
      places.at(other) = static_cast<int>(other) * kMost;
    }
  }
  static int value(int rank, std::size_t i) { return 1'000'000 * (rank + 1) + static_cast<int>(i); }
  int begin(const Host& mpi, Datatype type, Comm comm) {
    return mpi.Ialltoallv(out.data(), outs.data(), places.data(), type, in.data(), ins.data(), places.data(), type, comm, &request);
  }
  void expect(int rank) const {
    constexpr std::size_t kBlock = std::size_t{kMost} * kInts;
    for (std::size_t from = 0; from < kRanks; ++from) {
      for (std::size_t i = 0; i < kBlock; ++i) {
        const bool moved = i % 2 == 0 && i < static_cast<std::size_t>(ins.at(from)) * kInts;
        const int wanted = moved ? value(static_cast<int>(from), static_cast<std::size_t>(rank) * kBlock + i) : kSpoiled;
        ASSERT_EQ(in[from * kBlock + i], wanted) << "from " << from << ", int " << i;
      }
    }
  }
};

Lengths even_lengths(int each) {
  Lengths made{};
  for (auto& of : made) of.fill(each);
  return made;
}

// Blocks of any length, several calls under way: what fits goes by boards, what does not aside or by the host.
TEST(LaterUneven, AreRightWhateverTheirLengths) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const unsigned seed : {1U, 2U, 3U, 4U}) {
    SCOPED_TRACE(seed);
    expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
      std::mt19937 alike(seed);
      Datatype type = gaps(mpi);
      for (int round = 0; round < 60; ++round) {
        std::vector<Uneven> calls;
        const bool has_long = round % 8 == 7;
        for (unsigned n = 1 + alike() % 3; n > 0; --n) {
          Lengths lengths{};
          for (auto& of : lengths)
            for (int& one : of) one = static_cast<int>(alike() % (has_long && alike() % 4 == 0 ? kMost + 1U : 4U));
          calls.emplace_back(lengths, rank);
        }
        for (Uneven& one : calls) EXPECT_EQ(one.begin(mpi, type, mpi.world), mpi::kSuccess);
        for (Uneven& one : calls) EXPECT_EQ(mpi.Wait(&one.request, mpi::ignored()), mpi::kSuccess);
        for (const Uneven& one : calls) one.expect(rank);
      }
      mpi.Type_free(&type);
    }));
  }
}

// A rank's blocks do not fit in a call which another one has decided for, that gets none of them: they go aside, and
// what that took is given back. Then such calls are the host's for a while, and boards come back. One that would get
// such a block leaves the call to the host.
TEST(LaterUneven, HaveRoomAside) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = kRanks, .threads = false}, [&](const Host& mpi, int rank) {
    Datatype type = gaps(mpi);
    Lengths lengths = even_lengths(1);
    lengths[2] = {1, kMost, kMost};
    Lengths for_first = even_lengths(1);
    for_first[2] = {kMost, 1, 1};
    int by_host = 0;
    const auto call = [&](const Lengths& of) {
      Uneven one(of, rank);
      int word = 0;
      const int before = calls_of("Ialltoallv");
      if (rank != 0) mpi.Recv(&word, 1, int_type(), 0, 7, mpi.world, mpi::ignored());
      EXPECT_EQ(one.begin(mpi, type, mpi.world), mpi::kSuccess);
      for (const int other : {1, 2})
        if (rank == 0) mpi.Send(&word, 1, int_type(), other, 7, mpi.world);
      EXPECT_EQ(mpi.Wait(&one.request, mpi::ignored()), mpi::kSuccess);
      one.expect(rank);
      by_host += calls_of("Ialltoallv") - before;
      meet(mpi);
    };
    for (int round = 0; round < 8; ++round) call(even_lengths(1));
    by_host = 0;
    const std::int64_t most = mpi::job->boards->most();
    call(for_first);
    EXPECT_EQ(by_host, 1);
    for (int round = 0; round < 200; ++round) call(even_lengths(1));
    by_host = 0;
    call(lengths);
    EXPECT_EQ(by_host, 0);
    EXPECT_EQ(mpi::job->boards->most() > most, rank == 2);
    call(even_lengths(1));
    EXPECT_EQ(by_host, 1);
    for (int round = 0; round < 200; ++round) call(even_lengths(1));
    by_host = 0;
    for (int round = 0; round < 10; ++round) call(even_lengths(1));
    EXPECT_EQ(by_host, 0);
    const std::int64_t again = mpi::job->boards->most();
    call(lengths);
    EXPECT_EQ(mpi::job->boards->most(), again);
    mpi.Type_free(&type);
  }));
}

// One rank cannot decode its datatypes: in a call that goes by boards it has the host pack and unpack them.
TEST(LaterUneven, OfTypesThatARankDoesNotUnderstand) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  for (const Later& kind : kLater) {
    SCOPED_TRACE(kind.name);
    const std::vector<Fault> faults{{.call = "Type_get_contents", .n = Fault::kAll, .rank = 2}};
    expect_right(run_preloaded(
        {.ranks = kRanks, .threads = false},
        [&](const Host& mpi, int rank) {
          Datatype type = gaps(mpi);
          Comm comm = ring(mpi);
          int last = 0;
          for (int round = 0; round < 40; ++round) {
            Memory memory(rank);
            Request request{};
            int word = 0;
            const int before = calls_of(kind.host);
            if (rank == 2) mpi.Recv(&word, 1, int_type(), kRoot, 7, mpi.world, mpi::ignored());
            EXPECT_EQ(kind.begin(mpi, memory, type, comm, rank, &request), mpi::kSuccess);
            if (rank == kRoot) mpi.Send(&word, 1, int_type(), 2, 7, mpi.world);
            EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
            kind.expect(memory, rank);
            last = calls_of(kind.host) - before;
            meet(mpi);
          }
          EXPECT_EQ(last, 0);
          mpi.Comm_free(&comm);
          mpi.Type_free(&type);
        },
        faults));
  }
}

// Neighbors of which one is there twice: which of two blocks is which only the host knows.
TEST(LaterUneven, OfNeighborsThatAreThereTwiceAreTheHosts) {
  const Set forced("LACUNA_MPI_WAY", "offered");
  expect_right(run_preloaded({.ranks = 2, .threads = false}, [&](const Host& mpi, int rank) {
    constexpr std::array kSize{2}, kPeriod{1};
    Datatype type = gaps(mpi);
    Comm comm{};
    EXPECT_EQ(mpi.Cart_create(mpi.world, 1, kSize.data(), kPeriod.data(), 0, &comm), mpi::kSuccess);
    for (int round = 0; round < 30; ++round) {
      Memory memory(rank);
      Request request{};
      const int before = calls_of("Ineighbor_alltoall");
      EXPECT_EQ(mpi.Ineighbor_alltoall(memory.out.data(), 1, type, memory.in.data(), 1, type, comm, &request), mpi::kSuccess);
      EXPECT_EQ(calls_of("Ineighbor_alltoall"), before + 1);
      EXPECT_EQ(mpi.Wait(&request, mpi::ignored()), mpi::kSuccess);
      for (const int block : {0, 1}) EXPECT_EQ(memory.in[static_cast<std::size_t>(block * kInts)], sent(1 - rank, 1 - block, 0));
    }
    mpi.Comm_free(&comm);
    mpi.Type_free(&type);
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
