// Collectives with requests, of blocks with gaps, as a program begins them, and what they leave.
#pragma once

#include <array>
#include <string>

#include "tests/interposer/collective_kinds.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test::fake::collectives {

// One as a program begins it. Neighbors are those of a ring (ring()).
struct Later {
  const char* name;
  int (*begin)(const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request);
  void (*expect)(const Memory& m, int rank);
  const char* host;
};

inline constexpr std::array kOnes{1, 1, 1}, kPlaces{0, 1, 2}, kBytes{0, 4 * kInts, 8 * kInts};
inline constexpr std::array<Aint, kRanks> kFar{0, 4 * kInts, 8 * kInts};

// The last one is MPI_Ibcast, which its root may end before the others begin.
inline const std::array kLater{
    Later{.name = "Ialltoall",
          .begin = [](const Host& mpi, Memory& m, Datatype type, Comm comm, int,
                      Request* request) { return mpi.Ialltoall(m.out.data(), 1, type, m.in.data(), 1, type, comm, request); },
          .expect = [](const Memory& m, int rank) { expect_all(m, rank); },
          .host = "Ialltoall"},
    Later{.name = "Iallgather",
          .begin = [](const Host& mpi, Memory& m, Datatype type, Comm comm, int,
                      Request* request) { return mpi.Iallgather(m.out.data(), 1, type, m.in.data(), 1, type, comm, request); },
          .expect = [](const Memory& m, int) { expect_all(m, 0); },
          .host = "Iallgather"},
    Later{.name = "Igather",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                return mpi.Igather(m.out.data(), 1, type, rank == kRoot ? m.in.data() : nullptr, 1, type, kRoot, comm, request);
              },
          .expect = kKinds[2].expect,
          .host = "Igather"},
    Later{.name = "Igather in place",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                return mpi.Igather(rank == kRoot ? mpi::in_place() : m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm, request);
              },
          .expect = kKinds[3].expect,
          .host = "Igather"},
    Later{.name = "Iscatter",
          .begin = [](const Host& mpi, Memory& m, Datatype type, Comm comm, int,
                      Request* request) { return mpi.Iscatter(m.out.data(), 1, type, m.in.data(), 1, type, kRoot, comm, request); },
          .expect = kKinds[4].expect,
          .host = "Iscatter"},
    Later{.name = "Ialltoallv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ialltoallv(m.out.data(), kOnes.data(), kPlaces.data(), type, m.in.data(), kOnes.data(), kPlaces.data(), type,
                                      comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { expect_all(m, rank); },
          .host = "Ialltoallv"},
    Later{.name = "Ialltoallw",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ialltoallw(m.out.data(), kOnes.data(), kBytes.data(), m.types.data(), m.in.data(), kOnes.data(), kBytes.data(),
                                      m.types.data(), comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { expect_all(m, rank); },
          .host = "Ialltoallw"},
    Later{.name = "Iallgatherv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Iallgatherv(m.out.data(), 1, type, m.in.data(), kOnes.data(), kPlaces.data(), type, comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { expect_all(m, 0); },
          .host = "Iallgatherv"},
    Later{.name = "Igatherv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Igatherv(m.out.data(), 1, type, root ? m.in.data() : nullptr, root ? kOnes.data() : nullptr,
                                    root ? kPlaces.data() : nullptr, type, kRoot, comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { kKinds[2].expect(m, rank); },
          .host = "Igatherv"},
    Later{.name = "Iscatterv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Iscatterv(root ? m.out.data() : nullptr, root ? kOnes.data() : nullptr, root ? kPlaces.data() : nullptr, type,
                                     m.in.data(), 1, type, kRoot, comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { kKinds[4].expect(m, rank); },
          .host = "Iscatterv"},
    Later{.name = "Ineighbor_alltoall",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ineighbor_alltoall(m.out.data(), 1, type, m.in.data(), 1, type, comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { kKinds[6].expect(m, rank); },
          .host = "Ineighbor_alltoall"},
    Later{.name = "Ineighbor_alltoallv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ineighbor_alltoallv(m.out.data(), kOnes.data(), kPlaces.data(), type, m.in.data(), kOnes.data(), kPlaces.data(),
                                               type, comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { kKinds[6].expect(m, rank); },
          .host = "Ineighbor_alltoallv"},
    Later{.name = "Ineighbor_alltoallw",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ineighbor_alltoallw(m.out.data(), kOnes.data(), kFar.data(), m.types.data(), m.in.data(), kOnes.data(),
                                               kFar.data(), m.types.data(), comm, request);
              },
          .expect = [](const Memory& m, [[maybe_unused]] int rank) { kKinds[6].expect(m, rank); },
          .host = "Ineighbor_alltoallw"},
    Later{.name = "Ineighbor_allgather",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ineighbor_allgather(m.out.data(), 1, type, m.in.data(), 1, type, comm, request);
              },
          .expect =
              [](const Memory& m, [[maybe_unused]] int rank) {
                m.expect_from(0, (rank + kRanks - 1) % kRanks, 0);
                m.expect_from(1, (rank + 1) % kRanks, 0);
              },
          .host = "Ineighbor_allgather"},
    Later{.name = "Ineighbor_allgatherv",
          .begin =
              [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank, Request* request) {
                m.types.fill(type);
                [[maybe_unused]] const bool root = rank == kRoot;
                return mpi.Ineighbor_allgatherv(m.out.data(), 1, type, m.in.data(), kOnes.data(), kPlaces.data(), type, comm, request);
              },
          .expect =
              [](const Memory& m, [[maybe_unused]] int rank) {
                m.expect_from(0, (rank + kRanks - 1) % kRanks, 0);
                m.expect_from(1, (rank + 1) % kRanks, 0);
              },
          .host = "Ineighbor_allgatherv"},
    Later{.name = "Ibcast",
          .begin = [](const Host& mpi, Memory& m, Datatype type, Comm comm, int rank,
                      Request* request) { return mpi.Ibcast(rank == kRoot ? m.out.data() : m.in.data(), 1, type, kRoot, comm, request); },
          .expect = kKinds[5].expect,
          .host = "Ibcast"},
};

inline void expect_right(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}
// As a barrier.
inline void meet(const Host& mpi) {
  unsigned char one = 1, all = 0;
  mpi.Allreduce(&one, &all, 1, mpi.byte, mpi.band, mpi.world);
}
inline int make_ring(const Host& mpi, Comm& comm) {
  constexpr std::array kSize{kRanks}, kPeriod{1};
  return mpi.Cart_create(mpi.world, 1, kSize.data(), kPeriod.data(), 0, &comm);
}
inline Comm ring(const Host& mpi) {
  Comm made{};
  EXPECT_EQ(make_ring(mpi, made), mpi::kSuccess);
  return made;
}

}  // namespace lacuna::test::fake::collectives
