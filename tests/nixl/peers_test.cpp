// Agents of other processes: one that dies, and one that says what no agent says.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "lacuna/nixl/connection.hpp"
#include "tests/nixl/ends.hpp"
#include "tests/support/child.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "NixlPeers.*");
// The other process has threads, of which ThreadSanitizer wants none after a fork.
LACUNA_LEFT_OUT(thread, "*NixlDeadPeer.*");
LACUNA_TIER(test, "*NixlDeadPeer.*");
LACUNA_TIER(gate, "NixlPeers.HostileMessagesReachNothing");

using nixl::Connection;
using protocol::Communicator;

// What a process tells another one through a pipe.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_.data()), 0); }
  void say(const std::string& text) const {
    const std::uint64_t length = text.size();
    EXPECT_EQ(write(ends_[1], &length, sizeof length), static_cast<ssize_t>(sizeof length));
    EXPECT_EQ(write(ends_[1], text.data(), length), static_cast<ssize_t>(length));
  }
  // Empty: nothing came.
  [[nodiscard]] std::string hear() const {
    pollfd ready{ends_[0], POLLIN, 0};
    if (poll(&ready, 1, static_cast<int>(kPatience / 1'000'000)) != 1) return {};
    std::uint64_t length = 0;
    EXPECT_EQ(read(ends_[0], &length, sizeof length), static_cast<ssize_t>(sizeof length));
    std::string text(length, '\0');
    EXPECT_EQ(read(ends_[0], text.data(), length), static_cast<ssize_t>(length));
    return text;
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

constexpr std::size_t kBytes = 1 << 20;

class NixlDeadPeer : public testing::TestWithParam<std::tuple<const char*, std::int64_t>> {};
INSTANTIATE_TEST_SUITE_P(By, NixlDeadPeer, testing::Combine(testing::Values("local", "ofi:tcp"), testing::Values(100, kBytes)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)).substr(0, 3) + std::to_string(std::get<1>(info.param));
                         });

// Long transfers and short ones go different ways.
TEST_P(NixlDeadPeer, IsAnError) {
  const auto [nic, bytes] = GetParam();
  if (const auto opened = nic::open(nic); !opened) GTEST_SKIP() << opened.error().text();
  const Pipe told;
  Child other([&, name = nic]() -> std::string {
    AgentEnd b("b", name, kBytes);
    told.say(std::to_string(getpid()));
    told.say(b.address());
    told.say(b.token());
    told.say(std::to_string(reinterpret_cast<std::uint64_t>(b.memory().data())));
    for (;;) pause();
  });
  const std::string process = told.hear(), address = told.hear(), token = told.hear(), base = told.hear();
  ASSERT_FALSE(base.empty()) << in_vain("the other process");
  AgentEnd a("a", nic, kBytes);
  a.load("b", address, token, std::stoull(base), kBytes);
  const std::vector<Extent> all{{0, bytes}};
  EXPECT_EQ(transfer(a, NIXL_WRITE, a.local(all), a.remote(all), "b"), NIXL_SUCCESS);
  nixlBackendReqH* handle = nullptr;
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_SUCCESS);
  kill(static_cast<pid_t>(std::stol(process)), SIGKILL);
  EXPECT_EQ(other.end(SIGKILL), "");
  nixl_status_t status = NIXL_SUCCESS;
  EXPECT_EQ(await("an error",
                  [&] {
                    status = a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr);
                    if (status == NIXL_IN_PROG) status = finish(a.engine(), handle);
                    return status != NIXL_SUCCESS;
                  }),
            "");
  EXPECT_EQ(status, NIXL_ERR_REMOTE_DISCONNECT);
  EXPECT_EQ(await("the connection to be lost", [&] { return a.engine().genNotif("b", "are you there?") != NIXL_SUCCESS; }), "");
  EXPECT_EQ(a.engine().genNotif("b", "are you there?"), NIXL_ERR_REMOTE_DISCONNECT);
  a.engine().releaseReqH(handle);
  EXPECT_EQ(a.engine().disconnect("b"), NIXL_SUCCESS);
}

// A peer that has the secret, and says anything: the connection ends, or the words mean nothing.
TEST(NixlPeers, HostileMessagesReachNothing) {
  std::vector<std::byte> memory(4096, std::byte{7});
  int lost = 0;
  constexpr int kRounds = 60;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    SCOPED_TRACE(seed);
    support::Random random(seed);
    nixl::Registrations registrations;
    ASSERT_TRUE(nic::tcp::Secret::create(""));
    const auto registered = registrations.add(reinterpret_cast<std::uint64_t>(memory.data()), memory.size());
    ASSERT_TRUE(registered);
    const std::unique_ptr<nixl::LocalMemory> owned(*registered);
    nixl::Inbox inbox;
    auto both = groups(2);
    ASSERT_TRUE(both) << both.error().text();
    auto make = [&](int rank) {
      Connection::Ends ends{.context = nic::open("local").value(), .bootstrap = nullptr, .ranks = nullptr, .direct = nullptr};
      ends.ranks = Communicator::create(*ends.context, "local", std::move((*both)[static_cast<std::size_t>(rank)])).value();
      return ends;
    };
    Connection::Ends hostile;
    std::thread other([&] { hostile = make(0); });
    Connection::Ends ends = make(1);
    other.join();
    Connection connection("stranger", Connection::Role::second, std::move(ends), registrations, inbox);
    std::vector<std::vector<std::byte>> said;
    for (int i = 0; i < 20 && !connection.lost(); ++i) {
      said.emplace_back(static_cast<std::size_t>(random.one_in(2) ? 16 : random.scaled(3000)));
      for (std::byte& byte : said.back()) byte = static_cast<std::byte>(random.below(256));
      const int kind = static_cast<int>(random.one_in(4) ? random.below(1000) : random.between(1, 3));
      const auto layout = support::value(layout::Layout::bytes(static_cast<std::int64_t>(said.back().size())));
      const auto sent = hostile.ranks->isend(said.back().data(), layout, 1, kind);
      for (int step = 0; step < 20; ++step) {
        connection.step();
        hostile.ranks->progress();
      }
      if (!sent) break;
    }
    lost += connection.lost().has_value() ? 1 : 0;
    std::thread end([&] { hostile.ranks.reset(); });
    for (int step = 0; step < 100; ++step) connection.step();
    end.join();
    ASSERT_EQ(memory, std::vector<std::byte>(4096, std::byte{7}));
  }
  EXPECT_GT(lost, kRounds / 2);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
