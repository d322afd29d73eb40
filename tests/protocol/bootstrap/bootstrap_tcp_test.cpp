// The bootstrap by TCP. The mesh of several machines is had on one by BootstrapOptions::machine. Who must not take
// part: bootstrap_hostile_test.
#include <fmt/format.h>
#include <unistd.h>

#include <thread>

#include "tests/protocol/bootstrap/tcp_rig.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "*ByTcp.*");
LACUNA_TIER(test, "ByTcpAgain.*");
LACUNA_TIER(test, "ByTcpV6.*");
LACUNA_TIER(test, "ByTcpSignals.*");
LACUNA_TIER(test, "ByTcpUsers.*");
LACUNA_TIER(test, "ByTcpBootstrap.*");
LACUNA_TIER(test, "TcpArguments.*");
LACUNA_TIER(test, "TcpTimeout.*");
LACUNA_TIER(test, "TcpMesh.*");
LACUNA_TIER(test, "TcpFiles.*");

using base::Code;

// --- they meet ---

enum class Where { one_machine, a_machine_each, two_machines };
class ByTcp : public testing::TestWithParam<std::tuple<int, Where>> {};
TEST_P(ByTcp, MeetsInAnyOrder) {
  const auto [size, where] = GetParam();
  const Port port;
  support::Random random(static_cast<std::uint64_t>(size));
  std::vector<int> order;
  for (int rank = 0; rank < size; ++rank) order.push_back(rank);
  random.shuffle(order);
  Processes processes;
  for (const int rank : order) {
    const int late = static_cast<int>(random.below(50));
    processes.start([&, rank, late, where = where, size = size] {
      if (where != Where::one_machine) pretend_machine(where == Where::two_machines ? rank % 2 : rank);
      sleep_ms(late);
      return meet_and_greet(at(port, size, rank), where == Where::one_machine);
    });
  }
  EXPECT_EQ(processes.wait(), "");
}
std::string by_tcp_test_name(const testing::TestParamInfo<std::tuple<int, Where>>& info) {
  constexpr const char* kNames[] = {"OneMachine", "AMachineEach", "TwoMachines"};
  return fmt::format("{}_{}", std::get<0>(info.param), kNames[static_cast<int>(std::get<1>(info.param))]);
}
INSTANTIATE_TEST_SUITE_P(Meet, ByTcp,
                         testing::Combine(testing::Values(1, 2, 5, 16),
                                          testing::Values(Where::one_machine, Where::a_machine_each, Where::two_machines)),
                         by_tcp_test_name);

TEST(ByTcpAgain, MeetsAtTheSameAddressAtOnce) {
  const Port port;
  Processes processes;
  for (int rank = 0; rank < 3; ++rank) {
    processes.start([&, rank] {
      std::string wrong;
      for (int round = 0; round < 6 && wrong.empty(); ++round) {
        if (round == 3) pretend_machine(rank);
        wrong = meet_and_greet(at(port, 3, rank), round < 3);
      }
      return wrong;
    });
  }
  EXPECT_EQ(processes.wait(), "");
}

TEST(ByTcpV6, Meets) {
  const Port port(true);
  if (port.number() == 0) GTEST_SKIP() << "there is no IPv6 here";
  for (const bool together : {true, false}) {
    Processes processes;
    for (int rank = 0; rank < 3; ++rank) {
      processes.start([&, rank] {
        if (!together) pretend_machine(rank);
        return meet_and_greet(at(port, 3, rank), together);
      });
    }
    EXPECT_EQ(processes.wait(), "");
  }
}

TEST(ByTcpSignals, InterruptNothing) {
  const Port port;
  EXPECT_EQ(under_signals(6,
                          [&](int rank) {
                            pretend_machine(rank);
                            return meet_and_greet(at(port, 6, rank), false);
                          }),
            "");
}

TEST(ByTcpUsers, OfDifferentUsersMeetWithoutFiles) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user";
  const Port port;
  Processes processes;
  for (int rank = 0; rank < 2; ++rank) {
    processes.start([&, rank]() -> std::string {
      if (rank == 1 && setuid(65534) != 0) return "setuid";
      return meet_and_greet(at(port, 2, rank), false);
    });
  }
  EXPECT_EQ(processes.wait(), "");
}

TEST(ByTcpBootstrap, CarriesBytesAndNoFiles) {
  const Port port;
  const auto end = [&](int rank) -> std::string {
    pretend_machine(rank);
    const Group group = LACUNA_END_TRY(protocol::form_group(patient(at(port, 2, rank))));
    nic::Bootstrap& peer = *group.peers[static_cast<std::size_t>(1 - rank)];
    nic::Hello with_file;
    with_file.files.push_back(LACUNA_END_TRY(nic::UnixBootstrap::socket_pair()).first);
    const auto refused = peer.exchange(with_file, kPatience);
    LACUNA_END_EXPECT(!refused && refused.error().code == Code::unsupported);
    LACUNA_END_EXPECT(refused.error().message.find("files do not travel between machines") != std::string::npos);
    nic::Hello huge;
    huge.bytes.resize((128 << 10) + 1);
    const auto too_long = peer.exchange(huge, kPatience);
    LACUNA_END_EXPECT(!too_long && too_long.error().code == Code::limit);
    // Nothing was sent of either, so that the channel is as it was.
    for (const std::size_t bytes : {0U, 1U, 70'000U, 128U << 10}) {
      nic::Hello hello;
      hello.bytes.resize(bytes + static_cast<std::size_t>(bytes == 1 ? rank : 0), std::byte(rank));
      const nic::Hello theirs = LACUNA_END_TRY(peer.exchange(hello, kPatience));
      LACUNA_END_EXPECT(theirs.bytes ==
                        std::vector<std::byte>(bytes + static_cast<std::size_t>(bytes == 1 ? 1 - rank : 0), std::byte(1 - rank)));
    }
    if (rank == 1) return {};
    const auto gone = peer.exchange({}, kPatience);
    LACUNA_END_EXPECT(!gone && gone.error().code == Code::peer_lost);
    return {};
  };
  Processes processes;
  for (int rank = 0; rank < 2; ++rank) processes.start([&, rank] { return end(rank); });
  EXPECT_EQ(processes.wait(), "");
}

// --- what is refused ---

TEST(TcpArguments, ThatAreNone) {
  const auto refused = [](const std::string& address, const std::string& text) {
    return meet_and_fail({.address = address, .size = 2, .rank = 1, .secret = kSecret, .timeout_s = 1}, Code::invalid_argument, {text});
  };
  for (const char* address : {"localhost:", "localhost:x", "localhost:0", "localhost:65536", "localhost:-1", "localhost: 1", "[::1]:"})
    EXPECT_EQ(refused(address, "a port is a number from 1 to 65535"), "") << address;
  EXPECT_EQ(refused(":5000", "there is no host"), "");
  EXPECT_EQ(refused("[]:5000", "there is no host"), "");
  EXPECT_EQ(refused("::1:5000", "an IPv6 address goes into brackets"), "");
  EXPECT_EQ(refused("[1.2.3.4.5:6]:5000", "host"), "");
  EXPECT_EQ(meet_and_fail({.address = "localhost:5000", .secret = kSecret}, Code::invalid_argument, {"needs the rank"}), "");
  EXPECT_EQ(meet_and_fail({.address = "localhost:5000", .rank = 1, .secret = "15 bytes, sorry"}, Code::invalid_argument, {"16 bytes"}), "");
}

TEST(TcpArguments, ThatContradictTheOthersAreRefusedToWhoeverComesLast) {
  const Port port;
  Processes processes;
  processes.start([&] { return meet_and_greet(at(port, 2, 0)); });
  port.connect();  // it is there
  EXPECT_EQ(meet_and_fail(at(port, 3, 1), Code::invalid_argument, {"expects 3", "expect 2"}), "");
  processes.start([&] { return meet_and_greet(at(port, 2, 1)); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpArguments, TheSameRankTwice) {
  const Port port;
  Processes processes;
  processes.start([&] { return meet_and_greet(at(port, 3, 0)); });
  base::Result<base::Fd> first = come(port, 3, 2);
  ASSERT_TRUE(first) << first.error().text();
  EXPECT_EQ(bootstrap::receive(first->get(), soon()).value().kind, Kind::status);  // it is counted in
  EXPECT_EQ(meet_and_fail(at(port, 3, 2), Code::invalid_argument, {"rank 2", "another process's"}), "");
  EXPECT_EQ(meet_and_fail(at(port, 3, 0), Code::io, {"listening at " + port.address(), "in use"}), "");
  first = base::Fd();
  for (const int rank : {1, 2}) processes.start([&, rank] { return meet_and_greet(at(port, 3, rank)); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpTimeout, SaysWhoIsMissing) {
  const auto bounded = [](double timeout_s) {
    const Port port;
    Processes processes;
    for (const int rank : {0, 3}) {
      processes.start([&, rank] {
        BootstrapOptions wanted = at(port, 4, rank);
        wanted.timeout_s = timeout_s;
        return meet_and_fail(wanted, Code::timeout, {"2 of 4 processes came to " + port.address(), "ranks 1-2 are missing"});
      });
    }
    return processes.wait();
  };
  EXPECT_EQ(with_timeouts(bounded), "");
}

TEST(TcpTimeout, OfOneWithoutRank0) {
  const Port nobodys;
  const auto bounded = [&](double timeout_s) {
    BootstrapOptions alone = at(nobodys, 2, 1);
    alone.timeout_s = timeout_s;
    return meet_and_fail(alone, Code::timeout, {"rank 0", "Connection refused"});
  };
  EXPECT_EQ(with_timeouts(bounded), "");
}

// --- those who go ---

TEST(TcpMesh, DeathWhileAllAreBeingConnectedIsToldToAll) {
  const Port port;
  Processes processes;
  for (const int rank : {0, 1, 2})
    processes.start([&, rank] { return meet_and_fail(at(port, 4, rank), Code::peer_lost, {"rank 3", "being connected"}); });
  EXPECT_EQ(come_as_far_as_the_mesh(port, 4, 3), "");
  EXPECT_EQ(processes.wait(), "");
}

TEST(TcpMesh, DeathOfRank0WhileOthersWaitMakesRoomForAnother) {
  const Port port;
  Processes processes;
  const pid_t first = processes.start([&] { return meet_and_greet(at(port, 3, 0)); });
  processes.start([&] { return meet_and_greet(at(port, 3, 1)); });
  port.connect();
  sleep_ms(50);  // rank 1 waits there, as a rule
  processes.kill(first);
  for (const int rank : {0, 2}) processes.start([&, rank] { return meet_and_greet(at(port, 3, rank)); });
  EXPECT_EQ(processes.wait(), "");
}

// --- file descriptors ---

TEST(TcpFiles, AreClosedWhateverHappens) {
  const Port port;
  const auto meet_both = [](const BootstrapOptions& one, const BootstrapOptions& other) {
    std::thread thread([&] { static_cast<void>(protocol::form_group(one)); });
    static_cast<void>(protocol::form_group(other));
    thread.join();
  };
  meet_both(patient(at(port, 2, 0)), patient(at(port, 2, 1)));  // whatever the name service and libsodium keep
  const std::size_t before = open_files();
  meet_both(patient(at(port, 2, 0)), patient(at(port, 2, 1)));
  EXPECT_EQ(open_files(), before) << "they met by name";
  BootstrapOptions short_one = at(port, 3, 0);
  short_one.timeout_s = 0.1;
  BootstrapOptions short_other = at(port, 3, 1);
  short_other.timeout_s = 0.1;
  meet_both(short_one, short_other);
  EXPECT_EQ(open_files(), before) << "timeout";
  short_other.secret = kOtherSecret;
  meet_both(short_one, short_other);
  EXPECT_EQ(open_files(), before) << "another secret";
  {
    Processes processes;
    processes.start([&] { return come_as_far_as_the_mesh(port, 3, 2); });
    meet_both(patient(at(port, 3, 0)), patient(at(port, 3, 1)));
    EXPECT_EQ(processes.wait(), "");
  }
  EXPECT_EQ(open_files(), before) << "lost in the mesh";
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
