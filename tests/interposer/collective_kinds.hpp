// Collectives of blocks with gaps as a program calls them, and what they leave.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "tests/interposer/fake.hpp"

namespace lacuna::test::fake::collectives {

inline constexpr int kInts = 1024;       // of a block: every second one moves,
inline constexpr int kLong = 128 << 10;  // or of one that is too long for a board
inline constexpr int kSpoiled = -7;
inline constexpr int kRanks = 3, kRoot = 1;

// What a rank sends in a block.
inline int sent(int from, int block, int i) { return 100'000'000 * (from + 1) + 5'000'000 * block + i; }

struct Memory {
  explicit Memory(int rank, int of_block = kInts)
      : ints(of_block), out(static_cast<std::size_t>(kRanks) * static_cast<std::size_t>(ints)), in(out.size(), kSpoiled) {
    for (int i = 0; i < kRanks * ints; ++i) out[static_cast<std::size_t>(i)] = sent(rank, i / ints, i % ints);
  }
  // Whether a block holds what a rank sent in one of its blocks, and its gaps what they did.
  void expect_from(int block, int from, int their_block) const {
    for (int i = 0; i < ints; ++i) {
      const int wanted = from < 0 || i % 2 != 0 ? kSpoiled : sent(from, their_block, i);
      ASSERT_EQ(in[static_cast<std::size_t>(block * ints + i)], wanted) << "block " << block << ", int " << i;
    }
  }
  int ints;
  std::vector<int> out, in;
  std::array<Datatype, kRanks> types{};  // of calls with one for each block
};

// A collective as a program calls it, and what it leaves.
struct Kind {
  const char* name;
  int (*call)(const Host& mpi, Memory& m, Datatype type, Comm comm, int rank);
  void (*expect)(const Memory& m, int rank);
  const char* host;   // the host's call that moves what is not offered
  const char* tells;  // the one that is made, where there are no boards, if blocks are offered, and else is not
};

inline void expect_all(const Memory& m, int their_block) {
  for (int from = 0; from < kRanks; ++from) m.expect_from(from, from, their_block);
}

inline const std::array kKinds{
    Kind{.name = "Alltoallv",
         .call =
             [](const Host& mpi, Memory& m, Datatype type, Comm comm, int) {
               const std::array ones{1, 1, 1}, places{0, 1, 2};
               return mpi.Alltoallv(m.out.data(), ones.data(), places.data(), type, m.in.data(), ones.data(), places.data(), type, comm);
             },
         .expect = [](const Memory& m, int rank) { expect_all(m, rank); },
         .host = "Alltoallv",
         .tells = "Alltoall"},
    Kind{.name = "Allgather",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Allgather(m.out.data(), 1, type, m.in.data(), 1, type, comm); },
         .expect = [](const Memory& m, int) { expect_all(m, 0); },
         .host = "Allgather",
         .tells = "Alltoall"},
    Kind{.name = "Gather",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int rank) { return mpi.Gather(m.out.data(), 1, type, rank == kRoot ? m.in.data() : nullptr, 1, type, kRoot, comm); },
         .expect =
             [](const Memory& m, int rank) {
               if (rank == kRoot) expect_all(m, 0);
             },
         .host = "Gather",
         .tells = "Gatherv"},
    Kind{.name = "Gather in place",
         .call =
             [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank) {
               return mpi.Gather(rank == kRoot ? mpi::in_place() : m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm);
             },
         .expect =
             [](const Memory& m, int rank) {
               for (int from = 0; rank == kRoot && from < kRanks; ++from) m.expect_from(from, from == kRoot ? -1 : from, 0);
             },
         .host = "Gather",
         .tells = "Gatherv"},
    Kind{.name = "Scatter",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Scatter(m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm); },
         .expect = [](const Memory& m, int rank) { m.expect_from(0, kRoot, rank); },
         .host = "Scatter",
         .tells = "Scatterv"},
    Kind{.name = "Bcast",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int rank) { return mpi.Bcast(rank == kRoot ? m.out.data() : m.in.data(), 1, type, kRoot, comm); },
         .expect = [](const Memory& m, int rank) { m.expect_from(0, rank == kRoot ? -1 : kRoot, 0); },
         .host = "Bcast",
         .tells = "Scatterv"},
    Kind{.name = "Neighbor_alltoall",
         .call = [](const Host& mpi, Memory& m, Datatype type, Comm comm,
                    int) { return mpi.Neighbor_alltoall(m.out.data(), 1, type, m.in.data(), 1, type, comm); },
         .expect =
             [](const Memory& m, int rank) {
               m.expect_from(0, (rank + kRanks - 1) % kRanks, 1);
               m.expect_from(1, (rank + 1) % kRanks, 0);
             },
         .host = "Neighbor_alltoall",
         .tells = "Neighbor_alltoallv"},
};

inline Datatype gaps(const Host& mpi, int ints = kInts) {
  Datatype inner = fake::vector(ints / 2, 1, 2, int_type());
  Datatype type = resized(inner, 0, ints * 4);
  mpi.Type_commit(&type);
  mpi.Type_free(&inner);
  return type;
}

}  // namespace lacuna::test::fake::collectives
