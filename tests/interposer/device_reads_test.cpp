// Messages between nodes that the receiver's NIC reads: on the fake of an mlx5 device, and on libfabric's provider tcp,
// whose peers a thread answers.
#include <gtest/gtest.h>

#include <algorithm>

#include "lacuna/mpi/job/job.hpp"
#include "tests/interposer/every_second.hpp"
#include "tests/interposer/fake.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using namespace fake;

class DeviceReads : public testing::TestWithParam<std::string> {};

#if defined(__SANITIZE_THREAD__)
constexpr const char* kWhyNot = "libfabric is not compiled with ThreadSanitizer, which does not see how it keeps threads apart";
#else
constexpr const char* kWhyNot = "";
#endif

#define LACUNA_NEEDS_NIC(name)                                                                  \
  do {                                                                                          \
    if (!std::string_view(name).starts_with("ofi")) break;                                      \
    if (*kWhyNot != '\0') GTEST_SKIP() << kWhyNot;                                              \
    if (const auto opened_ = nic::open(name); !opened_) GTEST_SKIP() << opened_.error().text(); \
  } while (false)

// Whether a message to another rank would be read by a device.
bool by_device(int rank) {
  mpi::Descriptor::InterNode head;
  const auto lock = mpi::job->enter();
  const auto begun = mpi::job->transport->begin_outgoing(rank, 1000, 1000, protocol::Behind::always, head);
  return begun != nullptr && begun->by_device();
}

void expect_sound(const Outcome& outcome) {
  for (const std::string& wrong : outcome.wrong) ADD_FAILURE() << wrong;
}

// A sender is in a call of the host's alone until the receiver has all: the NIC alone answers the reads.
TEST_P(DeviceReads, NeedNothingOfTheSender) {
  LACUNA_NEEDS_NIC(GetParam());
  expect_sound(run_preloaded({.nodes = 2, .nic = GetParam()}, [](const Host& mpi, int rank) {
    EXPECT_TRUE(by_device(1 - rank));
    for (int round = 0; round < 20; ++round) {
      one_message(mpi, rank);
      if (rank == 0) mpi::host().Recv(nullptr, 0, mpi.byte, 1, 8, mpi.world, mpi::ignored());
      if (rank == 1) mpi::host().Send(nullptr, 0, mpi.byte, 0, 8, mpi.world);
    }
  }));
}

// Of many parts, in both directions at once, between any two of four ranks.
TEST_P(DeviceReads, LongMessagesOfAllToAll) {
  LACUNA_NEEDS_NIC(GetParam());
  constexpr int kRanks = 4, kInts = 1 << 18;
  expect_sound(run_preloaded({.ranks = kRanks, .nodes = 4, .nic = GetParam()}, [](const Host& mpi, int rank) {
    Datatype type = fake::vector(kInts, 1, 2, int_type());
    mpi.Type_commit(&type);
    std::vector<std::vector<int>> into(kRanks, std::vector<int>(2 * kInts, -1));
    std::vector<int> from(2 * kInts, rank);
    std::vector<Request> requests(2 * kRanks, mpi.no_request);
    for (int other = 0; other < kRanks; ++other) {
      if (other == rank) continue;
      const auto at = static_cast<std::size_t>(other);
      mpi.Irecv(into[at].data(), 1, type, other, 7, mpi.world, &requests[at]);
      mpi.Isend(from.data(), 1, type, other, 7, mpi.world, &requests[kRanks + at]);
    }
    mpi.Waitall(2 * kRanks, requests.data(), mpi::ignored());
    for (int other = 0; other < kRanks; ++other) {
      if (other == rank) continue;
      const std::vector<int>& memory = into[static_cast<std::size_t>(other)];
      for (std::size_t i = 0; i < memory.size(); ++i) ASSERT_EQ(memory[i], i % 2 == 0 ? other : -1) << "int " << i << " of rank " << other;
    }
    mpi.Type_free(&type);
  }));
}

INSTANTIATE_TEST_SUITE_P(, DeviceReads, testing::Values("fake", "ofi:tcp"), [](const auto& info) {
  std::string name = info.param;
  std::ranges::replace(name, ':', '_');
  return name;
});

TEST(DeviceReadsWithout, TheNicThatIsNamedTheHostMovesMessages) {
  expect_sound(run_preloaded({.nodes = 2, .nic = "ofi:carrier-pigeon"}, [](const Host& mpi, int rank) {
    EXPECT_FALSE(by_device(1 - rank));
    one_message(mpi, rank);
  }));
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
