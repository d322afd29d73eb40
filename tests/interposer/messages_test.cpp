// Messages through the interposer, on the fake host: what arrives, in which order, and what the host was asked for.
#include <gtest/gtest.h>

#include <numeric>

#include "tests/interposer/fake.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

// Every second int of many: with gaps, and longer than what is packed.
Datatype every_second(const Host& mpi, int count) {
  Datatype type = fake::vector(count, 1, 2, int_type());
  mpi.Type_commit(&type);
  return type;
}

std::vector<int> numbers(int count, int first) {
  std::vector<int> made(static_cast<std::size_t>(count));
  std::iota(made.begin(), made.end(), first);
  return made;
}

TEST(Interposer, MovesWhatHasGaps) {
  constexpr int kCount = 5000;
  const Outcome outcome = run_preloaded({}, [](const Host& mpi, int rank) {
    Datatype type = every_second(mpi, kCount);
    std::vector<int> memory = numbers(2 * kCount, rank == 0 ? 1 : -100'000);
    if (rank == 0) {
      mpi.Send(memory.data(), 1, type, 1, 7, mpi.world);
    } else {
      Status status{};
      EXPECT_EQ(mpi.Recv(memory.data(), 1, type, 0, 7, mpi.world, &status), mpi::kSuccess);
      EXPECT_EQ(mpi::bytes_of(status), 4 * kCount);
      for (int i = 0; i < 2 * kCount; ++i) EXPECT_EQ(memory[static_cast<std::size_t>(i)], i % 2 == 0 ? i + 1 : i - 100'000) << i;
    }
    mpi.Type_free(&type);
  });
  EXPECT_TRUE(outcome.wrong.empty()) << outcome.wrong.front();
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
