// Reaching another process's memory by its card, without its help.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "lacuna/nic/local/card.hpp"
#include "tests/nic/rig.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using nic::Card;
using nic::local::CardText;

struct Said {
  Card card;
  std::uint64_t addr = 0, rkey = 0, private_addr = 0;
};

base::Result<Said> told(nic::Bootstrap& bootstrap, const Said& mine) {
  nic::Hello hello;
  hello.bytes.resize(sizeof mine);
  std::memcpy(hello.bytes.data(), &mine, sizeof mine);
  const nic::Hello answer = LACUNA_TRY(bootstrap.exchange(hello, kPatience));
  Said theirs;
  if (answer.bytes.size() != sizeof theirs) return base::fail(base::Code::malformed, "another length");
  std::memcpy(&theirs, answer.bytes.data(), sizeof theirs);
  return theirs;
}

constexpr std::size_t kBytes = 100'000;

// Rank 1 does nothing but tell its card, and wait; rank 0 reads, writes, copies, and learns that rank 1 is gone.
std::string reached(int rank, nic::Bootstrap& bootstrap) {
  auto context = LACUNA_END_TRY(nic::open("local", {.shared_bytes = 64 << 20}));
  nic::RegisteredBuffer buffer = LACUNA_END_TRY(nic::RegisteredBuffer::create(*context, kBytes));
  std::memset(buffer.buffer.data(), 7 + rank, kBytes);
  std::vector<std::byte> own(kBytes, std::byte{static_cast<unsigned char>(50 + rank)});
  const Said mine{LACUNA_END_TRY(context->card()), buffer.region.addr(), buffer.region.rkey(), reinterpret_cast<std::uint64_t>(own.data())};
  const Said theirs = LACUNA_END_TRY(told(bootstrap, mine));
  if (rank == 1) {
    LACUNA_END_TRY(told(bootstrap, mine));
    LACUNA_END_EXPECT(buffer.buffer.data()[5] == std::byte{99});
    return {};
  }
  auto peer = LACUNA_END_TRY(context->attach(theirs.card));
  const auto key = static_cast<std::uint32_t>(theirs.rkey);
  std::byte* const there = peer->rkey_ptr(theirs.addr, key, kBytes);
  LACUNA_END_EXPECT(there != nullptr && there[0] == std::byte{8} && there[kBytes - 1] == std::byte{8});
  LACUNA_END_EXPECT(peer->rkey_ptr(theirs.addr, key, kBytes + 1) == nullptr);
  LACUNA_END_EXPECT(peer->rkey_ptr(theirs.addr - 1, key, 8) == nullptr);
  LACUNA_END_EXPECT(peer->rkey_ptr(theirs.addr, key + 1, 8) == nullptr);
  LACUNA_END_EXPECT(peer->fault() == nullptr);
  const nic::Sge sge = buffer.sge(0, 8);
  LACUNA_END_EXPECT(!peer->post_recv({.sg_list = {&sge, 1}}));
  if (peer->copies()) {
    const nic::Sge here{reinterpret_cast<std::uint64_t>(own.data()), kBytes, 0}, at{theirs.private_addr, kBytes, 0};
    LACUNA_END_TRY(peer->copy(false, {&here, 1}, {&at, 1}));
    LACUNA_END_EXPECT(own[0] == std::byte{51} && own[kBytes - 1] == std::byte{51});
  }
  there[5] = std::byte{99};
  LACUNA_END_TRY(told(bootstrap, mine));
  const std::int64_t until = context->now() + kPatience;
  while (peer->fault() == nullptr && context->now() < until) usleep(1000);
  LACUNA_END_EXPECT(peer->fault() != nullptr && peer->fault()->code == base::Code::peer_lost);
  return {};
}
TEST(Card, ReachesMemoryWithoutItsOwnersHelpTwoProcesses) { EXPECT_EQ(in_two_processes(&reached), ""); }

constexpr base::Code kTaken = base::Code::truncated;  // which no refusal has

std::vector<int> open_files() {
  std::vector<int> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) all.push_back(std::stoi(entry.path().filename()));
  std::erase_if(all, [](int file) { return fcntl(file, F_GETFD) < 0; });  // the one that looked
  return all;
}

// However many peers there are, and however few files a program may open: one of them, once.
TEST(Card, TakesNoOpenFileForEachPeer) {
  auto context = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
  auto other = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
  const Card card = support::value(other->card());
  std::vector<std::unique_ptr<nic::QueuePair>> peers;
  peers.push_back(support::value(context->attach(card)));
  const std::size_t files = open_files().size();
  for (int i = 0; i < 3; ++i) peers.push_back(support::value(context->attach(card)));
  EXPECT_EQ(open_files().size(), files);

  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<base::Fd> taken;
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(std::ranges::max(open_files())) + 8;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (base::Fd file(open("/dev/null", O_RDONLY)); file; file = base::Fd(open("/dev/null", O_RDONLY))) taken.push_back(std::move(file));
  const auto attached = context->attach(card);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(attached) << attached.error().text();
  EXPECT_FALSE(taken.empty());
  EXPECT_EQ((*attached)->fault(), nullptr);
}

// What a process may say of itself.
base::Code refused(const std::function<void(CardText&)>& change) {
  auto context = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
  auto other = support::value(nic::open("local", {.shared_bytes = 64 << 20}));
  Card card = support::value(other->card());
  CardText text;
  std::memcpy(&text, card.bytes.data(), sizeof text);
  change(text);
  std::memcpy(card.bytes.data(), &text, sizeof text);
  const auto attached = context->attach(card);
  return attached ? kTaken : attached.error().code;
}
TEST(Card, ThatIsFalseIsRefused) {
  EXPECT_EQ(refused([](CardText&) {}), kTaken);
  EXPECT_EQ(refused([](CardText& text) { text.magic ^= 1; }), base::Code::malformed);
  for (const std::int64_t process : {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1} << 40}) {
    EXPECT_EQ(refused([&](CardText& text) { text.process = process; }), base::Code::malformed) << process;
  }
  EXPECT_NE(refused([](CardText& text) { text.process = INT32_MAX; }), kTaken);  // no such process
  EXPECT_NE(refused([](CardText& text) { text.arena.inode ^= 1; }), kTaken);
  EXPECT_NE(refused([](CardText& text) { text.key_table.inode ^= 1; }), kTaken);
  EXPECT_NE(refused([](CardText& text) { text.process = getppid(); }), kTaken);
  EXPECT_NE(refused([](CardText& text) { text.arena.number = 0; }), kTaken);
  EXPECT_NE(refused([](CardText& text) { text.key_table.number = INT64_MAX; }), kTaken);
  EXPECT_EQ(refused([](CardText& text) { text.arena.bytes *= 2; }), base::Code::malformed);
  EXPECT_EQ(refused([](CardText& text) { text.arena.bytes = 0; }), base::Code::malformed);
  EXPECT_EQ(refused([](CardText& text) { text = {}; }), base::Code::malformed);
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
