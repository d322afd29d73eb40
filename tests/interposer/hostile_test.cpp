// What a peer may send in a message's place. lacuna_fuzz's mpi_descriptor draws descriptors; this is what they may not
// cost.
#include <gtest/gtest.h>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"
#include "tests/interposer/scarce.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

constexpr std::int64_t kBytes = std::int64_t{4} * kCount;

// Chunks that are as long as a peer says: memory is taken for what the receive can take.
TEST(HostileDescriptors, TakeNoMemoryForWhatAPeerSays) {
  const Outcome outcome = run_preloaded({.nodes = 2}, [](const Host& mpi, int rank) {
    if (rank != 0) return;
    Datatype type = every_second(mpi);
    std::vector<int> memory = numbers(-100'000);
    mpi::Job& job = *mpi::job;
    const auto use = job.types.find(type);
    for (const std::int64_t bytes : {kBytes, std::int64_t{1} << 30, std::int64_t{1} << 40}) {
      const auto chunk = static_cast<std::int32_t>(std::min<std::int64_t>(bytes, 1 << 30));
      scarce::longest = 0;
      const auto lock = job.enter();
      auto begun = job.transport->begin_incoming(
          1, {.number = 1, .chunk = chunk}, bytes,
          {.layout = *use->of(1), .base = reinterpret_cast<std::byte*>(memory.data()), .straight = nullptr, .capacity = kBytes});
      ASSERT_TRUE(begun);
      EXPECT_FALSE((*begun)->move());
      EXPECT_LT(scarce::longest, std::size_t{1} << 20) << bytes;
    }
    // A chunk longer than its message
    EXPECT_FALSE(job.transport->begin_incoming(1, {.number = 1, .chunk = 1 << 20}, kBytes, {}));
    mpi.Type_free(&type);
  });
  for (const std::string& wrong : outcome.wrong) {
    if (!wrong.ends_with("requests are left over")) ADD_FAILURE() << wrong;  // of chunks that never come
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
