// Which NIC a group gets: the one that is named, else one that reaches its processes, where they turn out to be.
#include <array>
#include <cstring>

#include "tests/protocol/bootstrap/bootstrap_rig.hpp"
#include "tests/support/environment.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

constexpr const char* kSecret = "a secret of 24 bytes ...";

struct Case {
  std::string_view nic;       // that is named
  bool one_machine;           // or each process says that it is on its own
  std::string_view expected;  // that the NIC's name begins with
};

// Two processes meet at a port, and one sends a column to the other.
std::string column(const Case& wanted, const std::string& address, int rank) {
  const BootstrapOptions options = patient(
      {.address = address, .rank = rank, .secret = kSecret, .machine = wanted.one_machine ? "" : "machine " + std::to_string(rank)});
  protocol::Meeting met = LACUNA_END_TRY(protocol::meet(options, wanted.nic));
  const std::string name(met.context->nic_name());
  if (!name.starts_with(wanted.expected)) return "it took NIC " + name;
  LACUNA_END_EXPECT(met.group.one_machine == wanted.one_machine);
  const auto ranks = LACUNA_END_TRY(protocol::Communicator::create(*met.context, name, std::move(met.group), {}));
  const layout::Layout column = layout::Layout::vector(300, 1, 5, layout::Layout::bytes(8).value()).value();
  std::array<std::uint64_t, 1500> field{};
  if (rank == 0) {
    for (std::size_t i = 0; i < field.size(); ++i) field[i] = i;
    LACUNA_END_TRY(ranks->send(field.data(), column, 1, 7));
    return {};
  }
  LACUNA_END_TRY(ranks->recv(field.data(), column, 0, 7));
  for (std::size_t i = 0; i < field.size(); ++i) LACUNA_END_EXPECT(field[i] == (i % 5 == 0 ? i : 0));
  return {};
}

std::string two(const Case& wanted) {
  const Port port;
  Processes processes;
  for (int rank = 0; rank < 2; ++rank) processes.start([&, rank] { return column(wanted, port.address(), rank); });
  return processes.wait();
}

#define LACUNA_NEEDS_A_NETWORK() \
  if (const auto opened_ = nic::open_usual(true); !opened_) GTEST_SKIP() << opened_.error().text()

TEST(UsualNic, IsLocalOnOneMachineTwoProcesses) { EXPECT_EQ(two({"", true, "local"}), ""); }
TEST(UsualNic, ReachesOtherMachinesTwoProcesses) {
  LACUNA_NEEDS_A_NETWORK();
  const std::string expected = nic::open("verbs") ? "verbs:" : "ofi:";
  EXPECT_EQ(two({"", false, expected}), "");
}
TEST(UsualNic, IsNamedByTheEnvironmentTwoProcesses) {
  if (const auto opened = nic::open("ofi:tcp"); !opened) GTEST_SKIP() << opened.error().text();
  const Set nic("LACUNA_NIC", "ofi:tcp");
  EXPECT_EQ(two({"", true, "ofi:tcp"}), "");
  EXPECT_EQ(two({"local", true, "local"}), "");  // what the program names comes first
}
TEST(UsualNic, AWrongNameIsToldBeforeTheOthersCome) {
  const auto met = protocol::meet({.address = unique_name(), .timeout_s = 1e6}, "carrier-pigeon");
  ASSERT_FALSE(met);
  EXPECT_EQ(met.error().code, base::Code::invalid_argument);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
