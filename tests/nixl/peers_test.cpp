// Agents of other processes: one that dies, and one that says what no agent says.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <list>
#include <thread>

#include "lacuna/nixl/connection.hpp"
#include "tests/nixl/ends.hpp"
#include "tests/nixl/stranger.hpp"
#include "tests/support/child.hpp"
#include "tests/support/pair.hpp"
#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "NixlPeers.*");
// The other process has threads, of which ThreadSanitizer wants none after a fork.
LACUNA_LEFT_OUT(thread, "*NixlDeadPeer.*");
LACUNA_TIER(test, "*NixlDeadPeer.*");

using nixl::Connection;
using protocol::Communicator;

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

// Every kind of every length that is a limit, to both roles. What may be said leaves the connection for what comes
// next, which never may.
TEST(NixlPeers, SayWhatTheirRoleMayAndEndTheConnectionElse) {
  using Role = Connection::Role;
  constexpr int kAsk = 1, kAnswer = 2, kNotice = 3, kNoKind = 999;
  constexpr std::size_t kToken = sizeof(nixl::Token), kTold = 48, kLongest = Connection::kMostNotice;
  for (const Role role : {Role::first, Role::second}) {
    for (const int kind : {0, kAsk, kAnswer, kNotice, 4}) {
      for (const std::size_t bytes : {0UL, 1UL, kToken, kToken + 1, kTold, kTold + 1, kLongest, kLongest + 1}) {
        const bool asks = kind == kAsk && bytes == kToken, answers = kind == kAnswer && bytes == kTold;
        const bool may = role == Role::first ? answers : asks || (kind == kNotice && bytes <= kLongest);
        SCOPED_TRACE(fmt::format("role {}, kind {}, {} bytes", static_cast<int>(role), kind, bytes));
        Stranger stranger(role);
        ASSERT_TRUE(stranger.say(kind, std::vector<std::byte>(bytes)));
        ASSERT_TRUE(stranger.say(kNoKind, std::vector<std::byte>(3)));
        const auto lost = [&] {
          stranger.step();
          return stranger.connection().lost().has_value();
        };
        ASSERT_EQ(await("the connection to end", lost), "");
        const base::Error why = stranger.connection().lost().value();
        EXPECT_EQ(why.code, base::Code::malformed);
        const std::string of_kind = fmt::format("of kind {}", may ? kNoKind : kind);
        EXPECT_TRUE(why.message.ends_with(of_kind)) << why.message;
        EXPECT_TRUE(why.message.starts_with("agent stranger?[31m? sends ")) << why.message;
      }
    }
  }
}

// A peer that asks on and on, and takes no answer, is lost; notifications to one that takes none are refused.
TEST(NixlPeers, WhatWaitsForAPeerHasABound) {
  Stranger asks(Connection::Role::second);
  constexpr int kAsk = 1, kMostAsks = 2'000'000;
  int asked = 0;
  for (; asked < kMostAsks && asks.say(kAsk, std::vector<std::byte>(sizeof(nixl::Token))) && !asks.connection().lost(); ++asked)
    for (int i = 0; i < 2; ++i) asks.step();
  ASSERT_TRUE(asks.connection().lost());
  EXPECT_EQ(asks.connection().lost()->code, base::Code::limit);

  Stranger silent(Connection::Role::first);
  base::Result<void> told;
  std::size_t bytes = 0;
  const std::string text(Connection::kMostNotice, 'x');
  while ((told = silent.connection().notify(text)) && bytes <= 2 * Connection::kMostWaiting) bytes += text.size();
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, base::Code::limit);
  EXPECT_LE(bytes, Connection::kMostWaiting);
  EXPECT_GT(bytes, Connection::kMostWaiting / 2);
}

// One of two agents that both keep to the rules, of NIC local, with what a test needs to break them.
struct Half {
  std::vector<std::byte> memory = std::vector<std::byte>(4096, std::byte{7});
  nixl::Registrations registrations;
  nixl::Inbox inbox;
  nixl::Helpers helpers;
  std::unique_ptr<nixl::LocalMemory> owned;
  nic::Context* context = nullptr;
  nixl::Direct* direct = nullptr;
  std::unique_ptr<Connection> connection;

  [[nodiscard]] nic::Region region() { return context->register_memory(memory, nic::Rights{}).value(); }
};

// They end together.
struct Halves {
  Halves() = default;
  ~Halves() {
    std::thread end([this] { first.connection.reset(); });
    second.connection.reset();
    end.join();
  }
  Halves(const Halves&) = delete;
  Halves& operator=(const Halves&) = delete;
  Half first, second;
};

void connect(Halves& halves) {
  auto both = groups(2).value();
  const auto end = [&](int rank, nic::Bootstrap& bootstrap) -> std::string {
    Half& half = rank == 0 ? halves.first : halves.second;
    Connection::Ends ends{.context = nic::open("local").value(), .bootstrap = nullptr, .ranks = nullptr, .direct = nullptr};
    ends.ranks = LACUNA_END_TRY(Communicator::create(*ends.context, "local", std::move(both[static_cast<std::size_t>(rank)])));
    ends.direct = LACUNA_END_TRY(nixl::Direct::connect(*ends.context, bootstrap, kPatience));
    half.context = ends.context.get();
    half.direct = ends.direct.get();
    half.connection = std::make_unique<Connection>("other", rank == 0 ? Connection::Role::first : Connection::Role::second, std::move(ends),
                                                   Connection::Around{half.registrations, half.inbox, half.helpers, kPatience});
    return {};
  };
  ASSERT_EQ(in_two_threads(end), "");
  for (Half* half : {&halves.first, &halves.second})
    half->owned.reset(half->registrations.add(reinterpret_cast<std::uint64_t>(half->memory.data()), half->memory.size()).value());
}

// Of NIC local, keys follow one another: the peer knows each.
TEST(NixlPeers, ReachNoMemoryOfAnAgentThatBeginsTransfers) {
  Halves halves;
  ASSERT_TRUE(nic::tcp::Secret::create(""));
  connect(halves);
  Half &first = halves.first, &second = halves.second;
  constexpr std::uint32_t kStep = 1U << 16;  // from key to key, once no old one is left
  std::vector<nic::Region> old;
  do old.push_back(first.region());
  while (old.size() < 2 || old.back().rkey() - old[old.size() - 2].rkey() != kStep);
  const nic::Region& before = old.back();
  const nixl::LocalMemory &own = *first.owned, &far = *second.owned;
  const auto bytes = support::value(layout::Layout::bytes(100));
  std::vector<nixl::Part> parts{{.local = own.base,
                                 .ours = bytes,
                                 .memory = far.token,
                                 .base = reinterpret_cast<std::uint64_t>(far.base),
                                 .theirs = bytes,
                                 .own = nixl::Part::Own{.token = own.token, .base = own.base, .bytes = own.bytes}}};
  std::atomic<bool> asked = false;
  std::thread asks([&] {
    EXPECT_EQ(await("answers", [&] { return first.connection->resolve(parts, true).value_or(false); }), "");
    asked = true;
  });
  while (!asked) second.connection->step();
  asks.join();
  ASSERT_TRUE(parts[0].direct);
  const nic::Region after = first.region(), from = second.region();
  ASSERT_EQ(after.rkey() - before.rkey(), 2 * kStep);  // one registration lies between the two
  std::ranges::fill(second.memory, std::byte{9});
  for (const bool allowed : {true, false}) {  // the other registrations show that such a key works
    const std::uint32_t key = before.rkey() + (allowed ? 0 : kStep);
    auto job = support::value(nixl::Direct::Job::create(true, bytes, {reinterpret_cast<std::uint64_t>(far.base), from.lkey()}, bytes,
                                                        {reinterpret_cast<std::uint64_t>(own.base), key}));
    base::Result<void> moved;
    EXPECT_EQ(await("a write",
                    [&] {
                      moved = second.direct->advance(job);
                      return !moved || job.over();
                    }),
              "");
    EXPECT_EQ(moved.has_value(), allowed);
    EXPECT_EQ(first.memory[0], allowed ? std::byte{9} : std::byte{7});
    std::ranges::fill(first.memory, std::byte{7});
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
