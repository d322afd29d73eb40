// Two agents in one process, by the functions that NIXL calls: what arrives, what stays as it was, and what is refused.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <thread>

#include "tests/nixl/ends.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

// One agent writes into memory of the other one, which ThreadSanitizer takes for a race where the two speak by sockets.
LACUNA_LEFT_OUT(thread, "*NixlEngineBy.MovesRandomListsAndNothingElse/ofi");
LACUNA_TIER(test, "*NixlEngineBy.*");
LACUNA_TIER(test, "NixlEngine.*");

constexpr std::size_t kBytes = 1 << 20;

void fill(std::vector<std::byte>& memory, support::Random& random) {
  for (std::byte& byte : memory) byte = static_cast<std::byte>(random.below(256));
}

void copy(std::vector<std::byte>& to, const std::vector<Extent>& there, const std::vector<std::byte>& from,
          const std::vector<Extent>& here) {
  for (std::size_t i = 0; i < here.size(); ++i)
    std::memcpy(to.data() + there[i].offset, from.data() + here[i].offset, static_cast<std::size_t>(here[i].length));
}

class NixlEngineBy : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto opened = nic::open(GetParam()); !opened) GTEST_SKIP() << opened.error().text();
  }
};
INSTANTIATE_TEST_SUITE_P(Nic, NixlEngineBy, testing::Values("local", "ofi:tcp"),
                         [](const auto& info) { return std::string(info.param).substr(0, 3); });

TEST_P(NixlEngineBy, MovesRandomListsAndNothingElse) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  ASSERT_TRUE(a.works() && b.works());
  a.load(b);
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    SCOPED_TRACE(seed);
    support::Random random(seed);
    fill(a.memory(), random);
    fill(b.memory(), random);
    const std::int64_t count = 1 + random.scaled(4000), longest = static_cast<std::int64_t>(kBytes) / count;
    std::vector<std::int64_t> lengths;
    const std::int64_t alike = random.between(1, longest);
    for (std::int64_t i = 0; i < count; ++i) lengths.push_back(seed % 2 == 0 ? alike : random.between(0, longest));
    const auto here = random_extents(random, count, static_cast<std::int64_t>(kBytes), lengths);
    const auto there = random_extents(random, count, static_cast<std::int64_t>(kBytes), lengths);
    std::vector<std::byte> ours = a.memory(), theirs = b.memory();
    const bool writes = random.one_in(2);
    if (writes) {
      copy(theirs, there, ours, here);
    } else {
      copy(ours, here, theirs, there);
    }
    ASSERT_EQ(transfer(a, writes ? NIXL_WRITE : NIXL_READ, a.local(here), a.remote(there), "b"), NIXL_SUCCESS);
    ASSERT_EQ(a.memory(), ours);
    ASSERT_EQ(b.memory(), theirs);
  }
}

// Longer than what a layout's wire form may be.
TEST_P(NixlEngineBy, MovesListsThatOnePutCannotDescribe) {
  constexpr std::int64_t kCount = 150'000, kLength = 3, kMemory = kCount * 40;
  AgentEnd a("a", GetParam(), kMemory), b("b", GetParam(), kMemory);
  a.load(b);
  support::Random random(7);
  fill(a.memory(), random);
  const std::vector<std::int64_t> lengths(kCount, kLength);
  const auto here = random_extents(random, kCount, kMemory, lengths), there = random_extents(random, kCount, kMemory, lengths);
  std::vector<std::byte> theirs = b.memory();
  copy(theirs, there, a.memory(), here);
  ASSERT_EQ(transfer(a, NIXL_WRITE, a.local(here), a.remote(there), "b"), NIXL_SUCCESS);
  EXPECT_EQ(b.memory(), theirs);
}

TEST_P(NixlEngineBy, NotifiesOnceTheBytesAreThere) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  a.load(b);
  const auto list = [](std::int64_t length) { return std::vector<Extent>{{100, length}}; };
  for (int round = 1; round <= 20; ++round) {
    const std::int64_t length = 1000L * round;
    std::ranges::fill(a.memory(), static_cast<std::byte>(round));
    const std::string text = "round " + std::to_string(round) + std::string(1, '\0') + "end";
    ASSERT_EQ(transfer(a, NIXL_WRITE, a.local(list(length)), a.remote(list(length)), "b", {.notifMsg = text, .hasNotif = true}),
              NIXL_SUCCESS);
    EXPECT_EQ(notifications(b.engine(), 1), (notif_list_t{{"a", text}}));
    EXPECT_EQ(b.memory()[static_cast<std::size_t>(99 + length)], static_cast<std::byte>(round));
  }
  EXPECT_EQ(a.engine().genNotif("b", "alone"), NIXL_SUCCESS);
  EXPECT_EQ(notifications(b.engine(), 1), (notif_list_t{{"a", "alone"}}));
}

TEST_P(NixlEngineBy, PostsATransferAgainAndAgain) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  a.load(b);
  const std::vector<Extent> pieces{{0, 10'000}, {20'000, 30'000}, {70'000, 5}};
  const auto local = a.local(pieces), remote = a.remote(pieces);
  nixlBackendReqH* handle = nullptr;
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, local, remote, "b", handle, nullptr), NIXL_SUCCESS);
  for (int round = 1; round <= 10; ++round) {
    std::ranges::fill(a.memory(), static_cast<std::byte>(round));
    nixl_status_t status = a.engine().postXfer(NIXL_WRITE, local, remote, "b", handle, nullptr);
    if (status == NIXL_IN_PROG) status = finish(a.engine(), handle);
    ASSERT_EQ(status, NIXL_SUCCESS);
    EXPECT_EQ(b.memory()[49'999], static_cast<std::byte>(round));
    EXPECT_EQ(b.memory()[50'000], std::byte{0});
  }
  std::chrono::microseconds time{0}, margin{0};
  nixl_cost_t method{};
  ASSERT_EQ(a.engine().estimateXferCost(NIXL_WRITE, local, remote, "b", handle, time, margin, method, nullptr), NIXL_SUCCESS);
  EXPECT_GT(time.count(), 0);
  EXPECT_GT(margin.count(), 0);
  EXPECT_EQ(a.engine().releaseReqH(handle), NIXL_SUCCESS);
}

// Both are in a loop of calls, which keeps their threads away: each serves the other by these calls.
TEST_P(NixlEngineBy, TwoThatPollServeOneAnother) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  a.load(b);
  b.load(a);
  support::Random random(5);
  constexpr std::int64_t kCount = 3000, kHalf = kBytes / 2;
  const std::vector<std::int64_t> lengths(kCount, 100);
  const auto here = random_extents(random, kCount, kHalf, lengths);
  auto there = random_extents(random, kCount, kHalf, lengths);
  for (Extent& piece : there) piece.offset += kHalf;
  fill(a.memory(), random);
  fill(b.memory(), random);
  std::vector<std::byte> of_a = a.memory(), of_b = b.memory();
  copy(of_a, there, b.memory(), here);
  copy(of_b, there, a.memory(), here);
  nixlBackendReqH *from_a = nullptr, *from_b = nullptr;
  const auto a_here = a.local(here), a_there = a.remote(there), b_here = b.local(here), b_there = b.remote(there);
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a_here, a_there, "b", from_a, nullptr), NIXL_SUCCESS);
  ASSERT_EQ(b.engine().prepXfer(NIXL_WRITE, b_here, b_there, "a", from_b, nullptr), NIXL_SUCCESS);
  std::array<nixl_status_t, 2> ended{};
  ended[0] = a.engine().postXfer(NIXL_WRITE, a_here, a_there, "b", from_a, nullptr);
  ended[1] = b.engine().postXfer(NIXL_WRITE, b_here, b_there, "a", from_b, nullptr);
  EXPECT_EQ(await("both transfers",
                  [&] {
                    ended = {a.engine().checkXfer(from_a), b.engine().checkXfer(from_b)};
                    return ended[0] != NIXL_IN_PROG && ended[1] != NIXL_IN_PROG;
                  }),
            "");
  EXPECT_EQ(ended, (std::array{NIXL_SUCCESS, NIXL_SUCCESS}));
  EXPECT_EQ(a.memory(), of_a);
  EXPECT_EQ(b.memory(), of_b);
  EXPECT_EQ(a.engine().releaseReqH(from_a), NIXL_SUCCESS);
  EXPECT_EQ(b.engine().releaseReqH(from_b), NIXL_SUCCESS);
}

TEST_P(NixlEngineBy, ReachesNoMemoryThatWasWithdrawn) {
  AgentEnd a("a", GetParam(), kBytes), b("b", GetParam(), kBytes);
  a.load(b);
  const std::vector<Extent> pieces{{0, 100'000}};
  const auto local = a.local(pieces), remote = a.remote(pieces);
  nixlBackendReqH* handle = nullptr;
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, local, remote, "b", handle, nullptr), NIXL_SUCCESS);
  ASSERT_EQ(b.deregister(), NIXL_SUCCESS);
  std::ranges::fill(a.memory(), std::byte{1});
  nixl_status_t status = a.engine().postXfer(NIXL_WRITE, local, remote, "b", handle, nullptr);
  if (status == NIXL_IN_PROG) status = finish(a.engine(), handle);
  EXPECT_EQ(status, NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(b.memory()[0], std::byte{0});
  EXPECT_EQ(a.engine().releaseReqH(handle), NIXL_SUCCESS);

  // Other memory is reached as before
  ASSERT_EQ(b.register_again(), NIXL_SUCCESS);
  a.load(b);
  ASSERT_EQ(transfer(a, NIXL_WRITE, a.local(pieces), a.remote(pieces), "b"), NIXL_SUCCESS);
  EXPECT_EQ(b.memory()[99'999], std::byte{1});
}

// What is loaded and registered next lies where the old registration lay, and is what the transfer may not move.
TEST_P(NixlEngineBy, PostsNothingOfARegistrationThatIsGone) {
  for (const bool here : {false, true}) {
    SCOPED_TRACE(here);
    AgentEnd a("a", GetParam(), 1000), b("b", GetParam(), 1000);
    a.load(b);
    const std::vector<Extent> pieces{{0, 100}};
    nixlBackendReqH *before = nullptr, *after = nullptr;
    const auto prepare = [&](nixlBackendReqH*& handle) {
      return a.engine().prepXfer(NIXL_WRITE, a.local(pieces), a.remote(pieces), "b", handle, nullptr);
    };
    ASSERT_EQ(prepare(before), NIXL_SUCCESS);
    AgentEnd& renewed = here ? a : b;
    ASSERT_EQ(renewed.deregister(), NIXL_SUCCESS);
    ASSERT_EQ(renewed.register_again(), NIXL_SUCCESS);
    if (!here) a.load(b);
    ASSERT_EQ(prepare(after), NIXL_SUCCESS);
    std::ranges::fill(a.memory(), std::byte{1});
    nixl_status_t status = a.engine().postXfer(NIXL_WRITE, {}, {}, "b", before, nullptr);
    if (status == NIXL_IN_PROG) status = finish(a.engine(), before);
    // A put needs no registration here
    const bool put = here && GetParam() != std::string_view("local");
    EXPECT_EQ(status, put ? NIXL_SUCCESS : NIXL_ERR_INVALID_PARAM);
    EXPECT_EQ(b.memory()[0], std::byte{put ? std::uint8_t{1} : std::uint8_t{0}});
    a.engine().releaseReqH(before);
    a.engine().releaseReqH(after);
  }
}

// --- what is not about the NIC ---------------------------------------------------------------------------------------

TEST(NixlEngine, MovesWithinOneAgent) {
  AgentEnd a("a", "", 1000);
  a.load_self();
  support::Random random(3);
  fill(a.memory(), random);
  std::vector<std::byte> expected = a.memory();
  std::memcpy(expected.data() + 500, a.memory().data(), 100);
  ASSERT_EQ(transfer(a, NIXL_WRITE, a.local({{0, 100}}), a.remote({{500, 100}}), "a", {.notifMsg = "to myself", .hasNotif = true}),
            NIXL_SUCCESS);
  EXPECT_EQ(a.memory(), expected);
  EXPECT_EQ(notifications(a.engine(), 1), (notif_list_t{{"a", "to myself"}}));
}

TEST(NixlEngine, ChoosesItsNicItself) {
  AgentEnd a("a", "", 1000), b("b", "", 1000);
  a.load(b);
  a.memory()[0] = std::byte{9};
  ASSERT_EQ(transfer(a, NIXL_WRITE, a.local({{0, 1}}), a.remote({{999, 1}}), "b"), NIXL_SUCCESS);
  EXPECT_EQ(b.memory()[999], std::byte{9});
}

TEST(NixlEngine, RefusesWhatCannotBe) {
  AgentEnd a("a", "local", 1000), b("b", "local", 1000);
  a.load(b);
  nixlBackendReqH* handle = nullptr;
  const auto prepare = [&](const std::vector<Extent>& ours, const std::vector<Extent>& theirs, const char* agent) {
    return a.engine().prepXfer(NIXL_WRITE, a.local(ours), a.remote(theirs), agent, handle, nullptr);
  };
  EXPECT_EQ(prepare({{0, 10}}, {{991, 10}}, "b"), NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(prepare({{0, 10}, {20, 10}}, {{0, 10}, {9, 10}}, "b"), NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(prepare({{0, 10}}, {{0, 10}}, "stranger"), NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(a.engine().checkXfer(nullptr), NIXL_ERR_INVALID_PARAM);
  nixlBackendMD* made = nullptr;
  nixlBlobDesc memory;
  memory.addr = 4096;
  memory.len = 10;
  memory.devId = 0;
  EXPECT_EQ(a.engine().registerMem(memory, VRAM_SEG, made), NIXL_ERR_NOT_SUPPORTED);
  memory.len = 0;
  EXPECT_EQ(a.engine().registerMem(memory, DRAM_SEG, made), NIXL_ERR_INVALID_PARAM);
  memory.len = 10;
  memory.metaInfo = "short";
  EXPECT_EQ(a.engine().loadRemoteMD(memory, DRAM_SEG, "b", made), NIXL_ERR_MISMATCH);
  EXPECT_EQ(a.engine().loadRemoteConnInfo("b", "what is this"), NIXL_ERR_MISMATCH);
  EXPECT_EQ(a.engine().genNotif("b", std::string((1 << 20) + 1, 'x')), NIXL_ERR_BACKEND);
}

TEST(NixlEngine, SaysWhichParametersAreWrong) {
  EXPECT_FALSE(AgentEnd("a", "carrier-pigeon", 10).works());
  EXPECT_FALSE(AgentEnd("a", "local", 10, {{"timeout_s", "-1"}}).works());
  EXPECT_FALSE(AgentEnd("a", "local", 10, {{"timeout_s", "soon"}}).works());
  EXPECT_FALSE(AgentEnd("a", "local", 10, {{"wait_s", "-1"}}).works());
  EXPECT_FALSE(AgentEnd("a", "local", 10, {{"connections", "0"}}).works());
  AgentEnd a("a", "local", 1000), b("b", "ofi:tcp", 1000);
  if (!b.works()) GTEST_SKIP() << "no ofi:tcp here";
  a.load(b);
  nixlBackendReqH* handle = nullptr;
  EXPECT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local({{0, 1}}), a.remote({{0, 1}}), "b", handle, nullptr), NIXL_ERR_INVALID_PARAM);
}

// As between two machines: over TCP alone.
TEST(NixlEngine, MeetsOverTcpWhereMachinesDiffer) {
  if (const auto opened = nic::open("ofi:tcp"); !opened) GTEST_SKIP() << opened.error().text();
  for (const std::string nic : {"ofi:tcp", "local"}) {
    AgentEnd a("a", nic, 100'000), b("b", nic, 100'000, {{"host", "127.0.0.1"}});
    nixl::Address there = nixl::decode_address(b.address()).value();
    there.machine[0] = static_cast<char>(there.machine[0] ^ 1);
    a.load("b", encode(there), b.token(), reinterpret_cast<std::uint64_t>(b.memory().data()), b.memory().size());
    a.memory()[5] = std::byte{9};
    const nixl_status_t status = transfer(a, NIXL_WRITE, a.local({{0, 50'000}}), a.remote({{0, 50'000}}), "b");
    EXPECT_EQ(status, nic == "local" ? NIXL_ERR_NOT_SUPPORTED : NIXL_SUCCESS);  // files do not travel between machines
    EXPECT_EQ(b.memory()[5], nic == "local" ? std::byte{0} : std::byte{9});
  }
}

// The first two hosts are no agent: one has no such name, the other one hears and ends.
TEST(NixlEngine, TriesEachHostOfAnAgent) {
  AgentEnd a("a", "local", 1000), b("b", "local", 1000);
  nixl::Address there = nixl::decode_address(b.address()).value();
  auto other = nic::tcp::resolve(nixl::at_port("127.0.0.2", there.port));
  const auto listening = nic::tcp::listen_at(support::value(std::move(other)).front());
  if (!listening) GTEST_SKIP() << "another program listens there: " << listening.error().text();
  const std::jthread ends([&] {
    pollfd there{.fd = listening->get(), .events = POLLIN, .revents = 0};
    poll(&there, 1, -1);
    const base::Fd heard(accept(there.fd, nullptr, nullptr));
  });
  there.hosts = {"127.no such host", "127.0.0.2", "127.0.0.1"};
  a.load("b", encode(there), b.token(), reinterpret_cast<std::uint64_t>(b.memory().data()), b.memory().size());
  EXPECT_EQ(transfer(a, NIXL_WRITE, a.local({{0, 10}}), a.remote({{0, 10}}), "b"), NIXL_SUCCESS);
  shutdown(listening->get(), SHUT_RDWR);
}

TEST(NixlEngine, GivesNothingToWhoKnowsTooLittle) {
  AgentEnd a("a", "local", 1000), b("b", "local", 1000), c("c", "local", 1000);
  const auto try_it = [&](AgentEnd& from, const std::string& name, std::string address, std::string token) {
    from.load(name, address, token, reinterpret_cast<std::uint64_t>(b.memory().data()), b.memory().size());
    return transfer(from, NIXL_READ, from.local({{0, 10}}), from.remote({{0, 10}}), name);
  };
  std::string other_secret = b.address(), other_token = b.token();
  other_secret[40] = static_cast<char>(other_secret[40] ^ 1);
  other_token[0] = static_cast<char>(other_token[0] ^ 1);
  EXPECT_EQ(try_it(a, "b", other_secret, b.token()), NIXL_ERR_NOT_ALLOWED);
  AgentEnd d("d", "local", 1000), e("e", "local", 1000);
  EXPECT_EQ(try_it(d, "b", b.address(), other_token), NIXL_ERR_INVALID_PARAM);
  EXPECT_EQ(try_it(e, "c", b.address(), b.token()), NIXL_ERR_MISMATCH);  // b is not c
}

// NIXL's own order: it asks once, and then destroys the request whatever the answer was.
TEST(NixlEngine, ReleasesATransferThatIsUnderWay) {
  AgentEnd a("a", "local", 64 << 20), b("b", "local", 64 << 20);
  a.load(b);
  const std::vector<Extent> all{{0, 64 << 20}};
  nixlBackendReqH* handle = nullptr;
  ASSERT_EQ(a.engine().prepXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr), NIXL_SUCCESS);
  if (a.engine().postXfer(NIXL_WRITE, a.local(all), a.remote(all), "b", handle, nullptr) != NIXL_IN_PROG)
    GTEST_SKIP() << "it was over at once";
  if (a.engine().releaseReqH(handle) == NIXL_ERR_REPOST_ACTIVE) a.engine().releaseReqH(handle);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
