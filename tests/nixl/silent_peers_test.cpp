// Agents whose peers are stopped: no call waits for them longer than it was told to, their transfers fail, and other
// agents' go on. And what an agent takes of its peers at most.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include "lacuna/nic/tcp.hpp"
#include "lacuna/nixl/address.hpp"
#include "tests/nixl/ends.hpp"
#include "tests/support/child.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

// The other process has threads, of which ThreadSanitizer wants none after a fork.
LACUNA_LEFT_OUT(thread, "*NixlSilentPeer.*");
LACUNA_TIER(test, "*NixlSilentPeer.*");
LACUNA_TIER(test, "NixlCrowd.*");
// One agent writes into memory of the other one, which ThreadSanitizer takes for a race where the two speak by sockets.
LACUNA_LEFT_OUT(thread, "*NixlOrder.*");
LACUNA_TIER(test, "*NixlOrder.*");

constexpr std::size_t kBytes = 4 << 20;

std::string short_name(const auto& info) { return std::string(info.param).substr(0, 3); }

// An agent "b" in a process of its own, which can be stopped. It writes its memory into the address of "a" again and
// again, once it was told where that is.
class Other {
 public:
  explicit Other(const char* nic, bool writes = false)
      : child_([this, nic, writes]() -> std::string {
          AgentEnd b("b", nic, kBytes);
          said_.say(std::to_string(getpid()));
          said_.say(b.address());
          said_.say(b.token());
          said_.say(std::to_string(reinterpret_cast<std::uint64_t>(b.memory().data())));
          if (!writes)
            for (;;) pause();
          const std::string address = heard_.hear(), token = heard_.hear(), base = heard_.hear();
          b.load("a", address, token, std::stoull(base), kBytes);
          std::ranges::fill(b.memory(), std::byte{2});
          const std::vector<Extent> all{{0, kBytes}};
          while (transfer(b, NIXL_WRITE, b.local(all), b.remote(all), "a") == NIXL_SUCCESS) said_.say("once more");
          said_.say("over");
          for (;;) pause();
        }) {
    process_ = static_cast<pid_t>(std::stol(said_.hear()));
    address_ = said_.hear();
    token_ = said_.hear();
    base_ = std::stoull(said_.hear());
  }
  ~Other() {
    kill(process_, SIGKILL);
    EXPECT_EQ(child_.end(SIGKILL), "");
  }
  Other(const Other&) = delete;
  Other& operator=(const Other&) = delete;

  void load_into(AgentEnd& a) const { a.load("b", address_, token_, base_, kBytes); }
  void learn(AgentEnd& a) const {
    heard_.say(a.address());
    heard_.say(a.token());
    heard_.say(std::to_string(reinterpret_cast<std::uint64_t>(a.memory().data())));
  }
  void stop() const {
    kill(process_, SIGSTOP);
    int status = 0;
    EXPECT_EQ(waitpid(process_, &status, WUNTRACED), process_);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void go_on() const { kill(process_, SIGCONT); }
  [[nodiscard]] std::string hear() const { return said_.hear(); }

 private:
  Pipe said_, heard_;
  Child child_;
  pid_t process_ = -1;
  std::string address_, token_;
  std::uint64_t base_ = 0;
};

class NixlSilentPeer : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto opened = nic::open(GetParam()); !opened) GTEST_SKIP() << opened.error().text();
  }
};
INSTANTIATE_TEST_SUITE_P(By, NixlSilentPeer, testing::Values("local", "ofi:tcp"), [](const auto& info) { return short_name(info); });

// The peer is stopped before the two have met, and goes on after the transfer was posted: had a call waited for it, it
// would have waited in vain.
TEST_P(NixlSilentPeer, PreparesAndPostsForOneThatIsStopped) {
  const Other other(GetParam());
  AgentEnd a("a", GetParam(), kBytes, {{"wait_s", "0.01"}});
  other.load_into(a);
  other.stop();
  const std::vector<Extent> all{{0, kBytes}};
  nixlBackendReqH* handle = nullptr;
  EXPECT_EQ(a.engine().connect("b"), NIXL_SUCCESS);
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_SUCCESS);
  ASSERT_EQ(a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_IN_PROG);
  EXPECT_EQ(a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(a.engine().genNotif("b", "later"), NIXL_SUCCESS);
  EXPECT_EQ(a.engine().checkXfer(handle), NIXL_IN_PROG);
  other.go_on();
  EXPECT_EQ(finish(a.engine(), handle), NIXL_SUCCESS);
  EXPECT_EQ(a.engine().releaseReqH(handle), NIXL_SUCCESS);
}

// A transfer that was never begun is released at once; another one fails by itself.
TEST_P(NixlSilentPeer, FailsTransfersToOneThatNeverAnswers) {
  const Other other(GetParam());
  AgentEnd a("a", GetParam(), kBytes, {{"wait_s", "0.01"}, {"timeout_s", "0.5"}}), c("c", GetParam(), kBytes);
  other.load_into(a);
  other.stop();
  const std::vector<Extent> all{{0, kBytes}};
  std::array<nixlBackendReqH*, 2> handles{};
  for (nixlBackendReqH*& handle : handles) {
    ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_SUCCESS);
    ASSERT_EQ(a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_IN_PROG);
  }
  EXPECT_EQ(a.engine().releaseReqH(handles[0]), NIXL_SUCCESS);
  EXPECT_LT(finish(a.engine(), handles[1]), NIXL_SUCCESS);
  EXPECT_EQ(a.engine().releaseReqH(handles[1]), NIXL_SUCCESS);
  EXPECT_EQ(a.engine().disconnect("b"), NIXL_SUCCESS);
}

// The two have met; the peer is stopped while it has nothing to do, or in the middle of a transfer.
TEST_P(NixlSilentPeer, FailsTransfersToOneThatIsStoppedLater) {
  for (const bool under_way : {false, true}) {
    SCOPED_TRACE(under_way);
    const Other other(GetParam());
    AgentEnd a("a", GetParam(), kBytes, {{"timeout_s", "3"}}), c("c", GetParam(), kBytes);
    other.load_into(a);
    const std::vector<Extent> all{{0, kBytes}};
    // A peer that gets no CPU for those three seconds is lost, too: then the two meet again.
    const auto first = [&] {
      const nixl_status_t status = transfer(a, NIXL_WRITE, a.local(all), a.remote(all), "b");
      if (status == NIXL_SUCCESS) return true;
      EXPECT_EQ(status, NIXL_ERR_REMOTE_DISCONNECT);
      EXPECT_EQ(a.engine().disconnect("b"), NIXL_SUCCESS);
      other.load_into(a);
      return false;
    };
    ASSERT_EQ(await("a first transfer", first), "");
    nixlBackendReqH* handle = nullptr;
    ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_SUCCESS);
    if (!under_way) other.stop();
    nixl_status_t status = a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr);
    if (under_way) other.stop();
    c.load(a);  // another agent reaches this one meanwhile
    EXPECT_EQ(transfer(c, NIXL_WRITE, c.local(all), c.remote(all), "a"), NIXL_SUCCESS);
    if (status == NIXL_IN_PROG) status = finish(a.engine(), handle);
    if (!under_way || status != NIXL_SUCCESS) {  // it may have been quick
      EXPECT_EQ(status, NIXL_ERR_REMOTE_DISCONNECT);
      EXPECT_EQ(a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_ERR_REMOTE_DISCONNECT);
      EXPECT_EQ(a.engine().genNotif("b", "are you there?"), NIXL_ERR_REMOTE_DISCONNECT);
    }
    EXPECT_EQ(a.engine().releaseReqH(handle), NIXL_SUCCESS);
    EXPECT_EQ(a.engine().disconnect("b"), NIXL_SUCCESS);
    EXPECT_EQ(a.deregister(), NIXL_SUCCESS);
  }
}

// What was deregistered in good order is not touched, whenever the peer that writes into it is stopped. One that is
// stopped within a copy by its own CPU keeps the memory, which is said, so there are rounds until two were not.
TEST_P(NixlSilentPeer, DoesNotReachMemoryThatWasTakenFromIt) {
  int taken = 0;
  constexpr int kMostRounds = 100;
  for (int round = 0; round < kMostRounds && taken < 2; ++round) {
    SCOPED_TRACE(round);
    const Other other(GetParam(), true);
    AgentEnd a("a", GetParam(), kBytes, {{"wait_s", "0.2"}});
    other.learn(a);
    for (int i = 0; i <= round % 7; ++i) ASSERT_EQ(other.hear(), "once more");
    other.stop();
    const nixl_status_t status = a.deregister();
    const std::vector<std::byte> mark(kBytes, std::byte{9});
    if (status == NIXL_SUCCESS) a.memory() = mark;
    other.go_on();
    std::string said;
    while ((said = other.hear()) == "once more") {
    }
    EXPECT_EQ(said, "over");
    if (status != NIXL_SUCCESS) continue;
    ++taken;
    EXPECT_TRUE(a.memory() == mark);
  }
  if (taken < 2) GTEST_SKIP() << "the peer was stopped within a copy in " << kMostRounds - taken << " of " << kMostRounds << " rounds";
}

TEST(NixlCrowd, TakesNoMoreConnectionsThanItWasTold) {
  AgentEnd b("b", "local", 1000, {{"connections", "1"}}), a("a", "local", 1000), c("c", "local", 1000);
  a.load(b);
  const auto try_it = [&](AgentEnd& from) {
    from.load(b);
    return transfer(from, NIXL_WRITE, from.local({{0, 10}}), from.remote({{0, 10}}), "b");
  };
  EXPECT_EQ(try_it(a), NIXL_SUCCESS);
  EXPECT_EQ(try_it(c), NIXL_ERR_NOT_SUPPORTED);
  EXPECT_EQ(try_it(a), NIXL_SUCCESS);
  EXPECT_EQ(a.engine().disconnect("b"), NIXL_SUCCESS);
  EXPECT_EQ(await("room", [&] { return try_it(c) == NIXL_SUCCESS; }), "");
}

// Agents that this one connects to, and that do not answer, keep no other agent from connecting to this one. They end
// once nothing listens there any more.
TEST(NixlCrowd, TakesOthersWhileItWaitsForManyThatAreSilent) {
  constexpr int kSilent = 300;
  AgentEnd b("b", "local", 1000, {{"wait_s", "0"}}), c("c", "local", 1000);
  nic::tcp::Endpoint endpoint = support::value(nic::tcp::resolve("127.0.0.1:1")).front();
  endpoint.set_port(0);
  const base::Fd silent = support::value(nic::tcp::listen_at(endpoint));
  nixl::Address there = support::value(nixl::decode_address(c.address()));
  there.port = support::value(nic::tcp::near_end(silent.get())).port();
  for (int i = 0; i < kSilent; ++i) {
    const std::string name = fmt::format("silent {}", i);
    ASSERT_EQ(b.engine().loadRemoteConnInfo(name, nixl::encode(there)), NIXL_SUCCESS);
    EXPECT_EQ(b.engine().connect(name), NIXL_SUCCESS);
  }
  c.load(b);
  EXPECT_EQ(transfer(c, NIXL_WRITE, c.local({{0, 10}}), c.remote({{0, 10}}), "b"), NIXL_SUCCESS);
}

// A notification never comes before the bytes of its transfer, whichever way these go: alone by this end, or as a put.
// The target looks from a thread of its own.
class NixlOrder : public NixlSilentPeer {};
INSTANTIATE_TEST_SUITE_P(By, NixlOrder, testing::Values("local", "ofi:tcp"), [](const auto& info) { return short_name(info); });

TEST_P(NixlOrder, NoNotificationOvertakesItsBytes) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  a.load(b);
  constexpr int kRounds = 200;
  for (const auto& [count, length] : {std::pair<std::int64_t, std::int64_t>{1, 1}, {3, 700}, {1, 200'000}, {2000, 64}}) {
    SCOPED_TRACE(fmt::format("{} pieces of {} bytes", count, length));
    std::vector<Extent> pieces;
    for (std::int64_t i = 0; i < count; ++i) pieces.push_back({i * (length + 9), length});
    const auto local = a.local(pieces), remote = a.remote(pieces);
    std::atomic<int> seen = 0;
    std::jthread target([&] {
      for (int round = 1; round <= kRounds; ++round) {
        if (notifications(b.engine(), 1).empty()) return;
        const auto is_there = [&](const Extent& piece) {
          return b.memory()[static_cast<std::size_t>(piece.offset + piece.length - 1)] == static_cast<std::byte>(round);
        };
        EXPECT_TRUE(std::ranges::all_of(pieces, is_there));
        seen = round;
      }
    });
    nixlBackendReqH* handle = nullptr;
    ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, local, remote, "b", handle, nullptr), NIXL_SUCCESS);
    for (int round = 1; round <= kRounds; ++round) {
      std::memset(a.memory().data(), round, static_cast<std::size_t>(pieces.back().offset + length));
      const nixlBackendOptionalArgs more{.notifMsg = "there", .hasNotif = true};
      nixl_status_t status = a.engine().postXfer(NIXL_WRITE, local, remote, "b", handle, &more);
      if (status == NIXL_IN_PROG) status = finish(a.engine(), handle);
      ASSERT_EQ(status, NIXL_SUCCESS);
      ASSERT_EQ(await("the target", [&] { return seen == round; }), "");
    }
    target.join();
    EXPECT_EQ(a.engine().releaseReqH(handle), NIXL_SUCCESS);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
