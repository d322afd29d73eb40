// The bootstrap by name. By TCP: bootstrap_tcp_test.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <thread>

#include "lacuna/protocol/bootstrap/bootstrap.hpp"
#include "lacuna/protocol/bootstrap/message.hpp"
#include "tests/protocol/bootstrap/bootstrap_rig.hpp"
#include "tests/support/random.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "*ByName.*");
LACUNA_TIER(test, "ByNameAgain.*");
LACUNA_TIER(test, "ByNameSignals.*");
LACUNA_TIER(test, "Arguments.*");
LACUNA_TIER(test, "OtherUser.*");
LACUNA_TIER(test, "Timeout.*");
LACUNA_TIER(test, "Death.*");
LACUNA_TIER(test, "Coordinator.*");
LACUNA_TIER(test, "Files.*");
LACUNA_TIER(test, "Memory.*");

using base::Code;
namespace bootstrap = protocol::bootstrap;
using Kind = bootstrap::MessageKind;
using bootstrap::Message;

constexpr uid_t kNobody = 65534;

#define LACUNA_NEEDS_ROOT() \
  if (geteuid() != 0) GTEST_SKIP() << "only root can start a process of another user"

std::int64_t soon() { return base::now_ns() + kPatience; }

// A member played by hand: as far as the request.
base::Fd ask(const std::string& name, int size, int rank) {
  base::Fd socket = connect_to_name(name, geteuid());
  std::string request = "LCM1";
  bootstrap::put(request, static_cast<std::uint32_t>(size));
  bootstrap::put(request, static_cast<std::uint32_t>(rank));
  say(socket, request);
  return socket;
}

// The next message that is not about who has come.
Message next(const base::Fd& socket) {
  for (;;) {
    base::Result<Message> message = bootstrap::receive(socket.get(), soon());
    EXPECT_TRUE(message) << message.error().text();
    if (!message || message->kind != Kind::status) return message ? std::move(*message) : Message{};
  }
}

// --- they meet ---

enum class Ranks { as_they_come, given, some_given };
class ByName : public testing::TestWithParam<std::tuple<int, Ranks>> {};
TEST_P(ByName, MeetsInAnyOrder) {
  const auto [size, ranks] = GetParam();
  support::Random random(static_cast<std::uint64_t>(size) * 3 + static_cast<std::uint64_t>(ranks));
  std::vector<int> order;
  for (int rank = 0; rank < size; ++rank) order.push_back(rank);
  random.shuffle(order);
  BootstrapOptions wanted{.address = unique_name(), .size = size};
  Processes processes;
  for (const int rank : order) {
    const bool given = ranks == Ranks::given || (ranks == Ranks::some_given && random.one_in(2));
    wanted.rank = given ? rank : -1;
    const int late = static_cast<int>(random.below(20));
    processes.start([=] {
      sleep_ms(late);
      return meet_and_greet(wanted);
    });
  }
  EXPECT_EQ(processes.wait(), "");
}
std::string by_name_test_name(const testing::TestParamInfo<std::tuple<int, Ranks>>& info) {
  constexpr const char* kNames[] = {"AsTheyCome", "Given", "SomeGiven"};
  return fmt::format("{}_{}", std::get<0>(info.param), kNames[static_cast<int>(std::get<1>(info.param))]);
}
INSTANTIATE_TEST_SUITE_P(Meet, ByName,
                         testing::Combine(testing::Values(1, 2, 5, 16),
                                          testing::Values(Ranks::as_they_come, Ranks::given, Ranks::some_given)),
                         by_name_test_name);

TEST(ByNameAgain, MeetsWithTheSameNameAtOnce) {
  const std::string name = unique_name();
  Processes processes;
  for (int i = 0; i < 4; ++i) {
    processes.start([&] {
      std::string wrong;
      for (int round = 0; round < 10 && wrong.empty(); ++round) wrong = meet_and_greet({.address = name, .size = 4});
      return wrong;
    });
  }
  EXPECT_EQ(processes.wait(), "");
}

TEST(ByNameSignals, InterruptNothing) {
  const std::string name = unique_name();
  EXPECT_EQ(under_signals(6, [&](int) { return meet_and_greet({.address = name, .size = 6}); }), "");
}

// --- what is refused ---

TEST(Arguments, ThatAreNone) {
  const std::string name = unique_name();
  EXPECT_EQ(meet_and_fail({.address = ""}, Code::invalid_argument, {"name"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 0}, Code::invalid_argument, {"0 processes"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 1025}, Code::limit, {"1024"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 2, .rank = 2}, Code::invalid_argument, {"rank 2 of 2"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 2, .rank = -2}, Code::invalid_argument, {"rank -2"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 2, .timeout_s = 0}, Code::invalid_argument, {"timeout"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 2, .timeout_s = std::nan("")}, Code::invalid_argument, {"timeout"}), "");
}

TEST(Arguments, MoreProcessesThanThereMayBeFiles) {
  Processes processes;
  processes.start([]() -> std::string {
    const rlimit limit{64, 64};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return "setrlimit";
    return meet_and_fail({.address = unique_name(), .size = 64}, Code::limit, {"64 processes", "this process may open 64"});
  });
  EXPECT_EQ(processes.wait(), "");
}

TEST(Arguments, NameOfAnyLengthThatFits) {
  const std::size_t most = 107 - fmt::format("lacuna-{}-", geteuid()).size();
  const std::string name = unique_name() + "-";
  EXPECT_EQ(meet_and_greet({.address = name + std::string(most - name.size(), 'x'), .size = 1}), "");
  EXPECT_EQ(meet_and_fail({.address = std::string(most + 1, 'x'), .size = 1}, Code::limit, {fmt::format("at most {} fit", most)}), "");
}

TEST(Arguments, ThatContradictTheOthersAreRefusedToWhoeverComesLast) {
  const std::string name = unique_name();
  Processes processes;
  processes.start([&] { return meet_and_greet({.address = name, .size = 2, .rank = 1}); });
  connect_to_name(name, geteuid());  // it is there
  EXPECT_EQ(meet_and_fail({.address = name, .size = 2, .rank = 1}, Code::invalid_argument, {"rank 1", "another process's"}), "");
  EXPECT_EQ(meet_and_fail({.address = name, .size = 3}, Code::invalid_argument, {"expects 3", "expect 2"}), "");
  const base::Fd impossible = ask(name, 2, 7);
  EXPECT_EQ(next(impossible).kind, Kind::refused);
  processes.start([&] { return meet_and_greet({.address = name, .size = 2, .rank = 0}); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(Arguments, OneTooManyIsTold) {
  for (const std::int64_t deadline = soon();;) {
    const std::string name = unique_name();
    Processes processes;
    processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
    const base::Fd late = connect_to_name(name, geteuid());
    processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
    const base::Result<Message> told = bootstrap::receive(late.get(), soon());
    EXPECT_EQ(processes.wait(), "");
    // The second one needed so long that the silent one was sent away as a stranger: once more.
    if (!told && told.error().code == Code::peer_lost && base::now_ns() < deadline) continue;
    ASSERT_TRUE(told) << told.error().text();
    EXPECT_EQ(told->kind, Kind::refused);
    EXPECT_EQ(bootstrap::told_error(*told).text(), fmt::format("invalid argument: all 2 processes have come to \"{}\" already", name));
    return;
  }
}

TEST(Arguments, NonsenseAndSilenceDoNotDisturb) {
  const std::string name = unique_name();
  Processes processes;
  processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
  std::vector<base::Fd> strangers;
  for (int i = 0; i < 100; ++i) {
    strangers.push_back(connect_to_name(name, geteuid()));
    say(strangers.back(), std::string(static_cast<std::size_t>(i), 'x'));
  }
  processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
  EXPECT_EQ(processes.wait(), "");
}

// --- other users ---

TEST(OtherUser, IsRefusedAndTheOthersMeet) {
  LACUNA_NEEDS_ROOT();
  const std::string name = unique_name();
  Processes processes;
  processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
  connect_to_name(name, 0);
  Processes stranger;
  stranger.start([&]() -> std::string {
    if (setuid(kNobody) != 0) return "setuid";
    const base::Fd socket = connect_to_name(name, 0);
    const Message told = LACUNA_END_TRY(bootstrap::receive(socket.get(), soon()));
    LACUNA_END_EXPECT(told.kind == Kind::refused);
    const std::string text = bootstrap::told_error(told).text();
    return text == "permission: the processes here run as user 0, this one as user 65534" ? "" : text;
  });
  EXPECT_EQ(stranger.wait(), "");
  processes.start([&] { return meet_and_greet({.address = name, .size = 2}); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(OtherUser, ThatHoldsTheNameIsNotTrusted) {
  LACUNA_NEEDS_ROOT();
  const std::string name = unique_name();
  Processes stranger;
  const pid_t squatter = stranger.start([&]() -> std::string {
    if (setuid(kNobody) != 0) return "setuid";
    const base::Fd socket = hold_name(name, 0);
    while (socket) pause();
    return "it does not get the name";
  });
  connect_to_name(name, 0);
  EXPECT_EQ(meet_and_fail({.address = name}, Code::permission, {"user 65534", name}), "");
  stranger.kill(squatter);
}

TEST(OtherUser, HasNamesOfItsOwn) {
  LACUNA_NEEDS_ROOT();
  const std::string name = unique_name();
  Processes processes;
  for (const uid_t user : {0U, kNobody}) {
    for (int i = 0; i < 2; ++i) {
      processes.start([&, user]() -> std::string {
        if (setuid(user) != 0) return "setuid";
        return meet_and_greet({.address = name, .size = 2});
      });
    }
  }
  EXPECT_EQ(processes.wait(), "");
}

// --- those who do not come, or go ---

TEST(Timeout, SaysWhoIsMissingToAll) {
  const auto bounded = [](double timeout_s) {
    const std::string name = unique_name();
    const std::vector<std::string> texts = {"3 of 8 processes came to \"" + name + "\"", "ranks 1-2, 4, 6-7 are missing"};
    Processes processes;
    for (const int rank : {3, -1, 5}) {
      processes.start(
          [&, rank] { return meet_and_fail({.address = name, .size = 8, .rank = rank, .timeout_s = timeout_s}, Code::timeout, texts); });
    }
    return processes.wait();
  };
  EXPECT_EQ(with_timeouts(bounded), "");
}

TEST(Timeout, OfANameThatIsHeldInSilence) {
  const std::string name = unique_name();
  const base::Fd held = hold_name(name, geteuid());
  const auto bounded = [&](double timeout_s) {
    return meet_and_fail({.address = name, .timeout_s = timeout_s}, Code::timeout, {name, "does not answer"});
  };
  EXPECT_EQ(with_timeouts(bounded), "");
}

TEST(Death, OfOneWhoWaitsLeavesItsPlace) {
  const std::string name = unique_name();
  Processes processes;
  processes.start([&] { return meet_and_greet({.address = name, .size = 3, .rank = 0}); });
  {
    const base::Fd dying = ask(name, 3, 1);
    EXPECT_TRUE(bootstrap::receive(dying.get(), soon()));  // it is counted in
  }
  for (const int rank : {1, 2}) processes.start([&, rank] { return meet_and_greet({.address = name, .size = 3, .rank = rank}); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(Death, OfTheCoordinatorMakesAnother) {
  const std::string name = unique_name();
  Processes processes;
  const pid_t first = processes.start([&] { return meet_and_greet({.address = name, .size = 3, .rank = 0}); });
  connect_to_name(name, geteuid());
  processes.start([&] { return meet_and_greet({.address = name, .size = 3, .rank = 1}); });
  sleep_ms(50);  // it waits at the first, as a rule
  processes.kill(first);
  for (const int rank : {0, 2}) processes.start([&, rank] { return meet_and_greet({.address = name, .size = 3, .rank = rank}); });
  EXPECT_EQ(processes.wait(), "");
}

TEST(Death, WhileAllAreBeingConnectedIsToldToAll) {
  const std::string name = unique_name();
  Processes processes;
  const auto lost = [&] { return meet_and_fail({.address = name, .size = 4}, Code::peer_lost, {"rank 3", "being connected"}); };
  for (int i = 0; i < 3; ++i) processes.start(lost);
  {
    const base::Fd dying = ask(name, 4, 3);
    EXPECT_EQ(next(dying).kind, Kind::rank);
  }
  EXPECT_EQ(processes.wait(), "");
}

TEST(Death, OfTheCoordinatorWhileAllAreBeingConnected) {
  const std::string name = unique_name();
  base::Fd held = hold_name(name, geteuid());
  Processes processes;
  processes.start([&] {
    held = base::Fd();
    return meet_and_fail({.address = name, .size = 3, .rank = 1}, Code::peer_lost, {"coordinator", "being connected"});
  });
  base::Fd member = accept_one(held);
  EXPECT_TRUE(bootstrap::send(member.get(), {.kind = Kind::rank, .value = 1}, soon()));
  member = base::Fd();
  EXPECT_EQ(processes.wait(), "");
}

// --- a coordinator that breaks the rules ---

TEST(Memory, ThatOneDoesNotHaveIsToldToAll) {
  const std::string name = unique_name();
  Processes processes;
  for (const int rank : {0, 2})
    processes.start([&, rank] { return meet_and_fail({.address = name, .size = 3, .rank = rank}, Code::out_of_memory, {}); });
  bootstrap::tell_no_memory(name, 3);
  EXPECT_EQ(processes.wait(), "");
}

TEST(Coordinator, ThatSaysNonsenseIsNotBelieved) {
  const auto with = [](std::vector<Message> messages) {
    const std::string name = unique_name();
    const base::Fd held = hold_name(name, geteuid());
    Processes processes;
    processes.start([&] { return meet_and_fail({.address = name, .size = 4, .rank = 1}, Code::malformed, {}); });
    const base::Fd member = accept_one(held);
    for (const Message& message : messages) EXPECT_TRUE(bootstrap::send(member.get(), message, soon()));
    return processes.wait();
  };
  const auto messages = [](auto... all) {
    std::vector<Message> list;
    (list.push_back(std::move(all)), ...);
    return list;
  };
  const auto plain = [](Kind kind, int value) { return Message{.kind = kind, .value = value, .bytes = {}, .file = {}}; };
  const auto peer = [](int rank) {
    return Message{.kind = Kind::peer, .value = rank, .bytes = {}, .file = std::move(nic::UnixBootstrap::socket_pair()->first)};
  };
  EXPECT_EQ(with(messages(plain(Kind::rank, 2))), "") << "another rank than the one asked for";
  EXPECT_EQ(with(messages(plain(Kind::rank, 4))), "") << "a rank too high";
  EXPECT_EQ(with(messages(plain(Kind::mesh, 0))), "") << "what belongs to TCP";
  EXPECT_EQ(with(messages(plain(Kind{77}, 0))), "") << "an unknown kind";
  EXPECT_EQ(with(messages(plain(Kind::rank, 1), plain(Kind::go, 0))), "") << "go too early";
  EXPECT_EQ(with(messages(plain(Kind::rank, 1), plain(Kind::peer, 2))), "") << "a peer without a socket";
  EXPECT_EQ(with(messages(plain(Kind::rank, 1), peer(1))), "") << "a connection to itself";
  EXPECT_EQ(with(messages(plain(Kind::rank, 1), peer(-1))), "") << "a peer below 0";
  EXPECT_EQ(with(messages(plain(Kind::rank, 1), peer(2), peer(2))), "") << "the same peer twice";
  EXPECT_EQ(with(messages(plain(Kind::refused, 1000))), "") << "an error that there is not";
}

// --- file descriptors ---

// Leaves room for two more files, or fewer.
bool allow_two_more_files() {
  constexpr rlim_t kAll = 40;
  const rlimit limit{kAll, kAll};
  int last = 0;
  while (last >= 0 && last < static_cast<int>(kAll) - 3) last = dup(0);
  return last >= 0 && setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

TEST(Files, ThatOneMayNotOpenAreAnErrorOfAll) {
  const std::string name = unique_name();
  const auto fails = [&]() -> std::string {
    const auto group = protocol::form_group(patient({.address = name, .size = 6}));
    if (group) return "they met";
    return group.error().code == Code::limit || group.error().code == Code::peer_lost ? "" : group.error().text();
  };
  Processes processes;
  for (int i = 0; i < 5; ++i) processes.start(fails);
  connect_to_name(name, geteuid());
  processes.start([&]() -> std::string { return allow_two_more_files() ? fails() : "setrlimit"; });
  EXPECT_EQ(processes.wait(), "");
}

TEST(Files, AreClosedWhateverHappens) {
  const auto meet_both = [](const BootstrapOptions& one, const BootstrapOptions& other) {
    std::thread thread([&] { static_cast<void>(protocol::form_group(one)); });
    static_cast<void>(protocol::form_group(other));
    thread.join();
  };
  const std::string name = unique_name();
  const std::size_t before = open_files();
  meet_both(patient({.address = name, .size = 2}), patient({.address = name, .size = 2}));
  EXPECT_EQ(open_files(), before) << "they met";
  meet_both({.address = name, .size = 3, .timeout_s = 0.1}, {.address = name, .size = 3, .timeout_s = 0.1});
  EXPECT_EQ(open_files(), before) << "timeout";
  meet_both({.address = name, .size = 3, .timeout_s = 0.1}, {.address = name, .size = 4, .timeout_s = 0.1});
  EXPECT_EQ(open_files(), before) << "refused";
  {
    Processes processes;
    processes.start([&] {
      const base::Fd dying = ask(name, 3, 2);
      return next(dying).kind == Kind::rank ? "" : "no rank";
    });
    meet_both(patient({.address = name, .size = 3}), patient({.address = name, .size = 3}));
  }
  EXPECT_EQ(open_files(), before) << "lost while being connected";
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
