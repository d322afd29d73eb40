// The message that tests of the interposer send: every second int of many.
#pragma once

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "tests/interposer/fake.hpp"

namespace lacuna::test::fake {

inline constexpr int kCount = 5000;  // more than is packed

inline Datatype every_second(const Host& mpi) {
  Datatype type = fake::vector(kCount, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

inline std::vector<int> numbers(int first) {
  std::vector<int> made(2 * kCount);
  std::iota(made.begin(), made.end(), first);
  return made;
}

/// What `numbers(own)` is once `numbers(sent)` has come there.
inline std::vector<int> received(int sent, int own) {
  std::vector<int> made = numbers(own);
  for (std::size_t i = 0; i < made.size(); i += 2) made[i] += sent - own;
  return made;
}

/// The program of one such message, from rank 0 to rank 1.
inline void one_message(const Host& mpi, int rank) {
  Datatype type = every_second(mpi);
  std::vector<int> memory = numbers(rank == 0 ? 1 : -100'000);
  if (rank == 0) mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
  if (rank == 1) {
    EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, mpi::ignored()), mpi::kSuccess);
    EXPECT_EQ(memory, received(1, -100'000));
  }
  mpi.Type_free(&type);
}

}  // namespace lacuna::test::fake
