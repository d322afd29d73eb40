// A peer that dies at any step of any protocol: the survivor gets an error, and keeps nothing of it.
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>

#include "tests/support/random_layout.hpp"
#include "tests/support/ranks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "DeadPeer.*");
LACUNA_TIER(gate, "*PeerDeath.*");

using layout::Layout;
using protocol::Communicator;

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator{});
}
// Mappings of memory files: regions, inboxes, key tables.
int shared_mappings() {
  std::ifstream maps("/proc/self/maps");
  int found = 0;
  for (std::string line; std::getline(maps, line);) found += line.contains("memfd:") ? 1 : 0;
  return found;
}

// Messages of all kinds in both directions, for ever.
base::Result<void> talk(Communicator& ranks) {
  const int peer = 1 - ranks.rank();
  std::vector<std::byte> out(4 << 20), in(4 << 20);
  const Layout gaps = LACUNA_TRY(Layout::vector(3000, 40, 90, LACUNA_TRY(Layout::bytes(1))));
  std::vector<std::byte> memory(100'000);
  protocol::Exposed mine = LACUNA_TRY(ranks.expose(memory.data(), static_cast<std::int64_t>(memory.size()))), theirs;
  const Layout token = LACUNA_TRY(Layout::bytes(sizeof mine));
  LACUNA_TRY(ranks.send(&mine, token, peer, 3));
  LACUNA_TRY(ranks.recv(&theirs, token, peer, 3));
  for (;;) {
    std::vector<protocol::Request*> requests;
    for (const std::int64_t n : {500, 90'000}) {
      const Layout bytes = LACUNA_TRY(Layout::bytes(n));
      requests.push_back(LACUNA_TRY(ranks.put(out.data(), bytes, theirs, 0, bytes)));
      requests.push_back(LACUNA_TRY(ranks.get(in.data() + (3 << 20) + n, bytes, theirs, 0, bytes)));
    }
    // Offers: one that waits for its receiver, one that is left.
    const Layout long_one = LACUNA_TRY(Layout::bytes(3'000'000));
    const Layout ticket = LACUNA_TRY(Layout::bytes(sizeof(protocol::Ticket)));
    for (const bool leaves : {false, true}) {
      protocol::Ticket said, heard;
      protocol::Request* offer =
          LACUNA_TRY(ranks.offer(out.data(), long_one, peer, leaves ? protocol::Behind::bounded : protocol::Behind::no, said));
      if (leaves) LACUNA_TRY(ranks.leave(offer));
      LACUNA_TRY(ranks.send(&said, ticket, peer, 4));
      LACUNA_TRY(ranks.recv(&heard, ticket, peer, 4));
      requests.push_back(LACUNA_TRY(ranks.accept(in.data(), long_one, peer, long_one.size(), heard)));
      requests.push_back(offer);
      LACUNA_TRY(ranks.wait_all(requests));
      requests.clear();
    }
    // Nobody expects this one for a while.
    const Layout small = LACUNA_TRY(Layout::bytes(100));
    LACUNA_TRY(ranks.send(out.data(), small, peer, 7));
    std::size_t at = 0;
    for (const std::int64_t n : {8, 6000, 50'000, 700'000}) {
      const Layout bytes = LACUNA_TRY(Layout::bytes(n));
      requests.push_back(LACUNA_TRY(ranks.isend(out.data(), bytes, peer, 1)));
      requests.push_back(LACUNA_TRY(ranks.irecv(in.data() + at, bytes, peer, 1)));
      at += static_cast<std::size_t>(n);
    }
    // More than there are windows
    for (int i = 0; i < 6; ++i) requests.push_back(LACUNA_TRY(ranks.isend(out.data(), gaps, peer, 2)));
    for (int i = 0; i < 6; ++i) requests.push_back(LACUNA_TRY(ranks.irecv(in.data() + (1 << 20) + i * 300'000, gaps, peer, 2)));
    LACUNA_TRY(ranks.wait_all(requests));
    LACUNA_TRY(ranks.recv(in.data(), small, peer, 7));
  }
}

struct Fate {
  std::string step;
  std::string method;  // forced; empty for none
};
std::ostream& operator<<(std::ostream& out, const Fate& fate) {
  return out << fate.step << (fate.method.empty() ? "" : " of ") << fate.method;
}

class PeerDeath : public testing::TestWithParam<Fate> {};

TEST_P(PeerDeath, IsTold) {
  const std::string what = "the news that its peer died at step \"" + GetParam().step + "\"";
  auto* died =
      static_cast<std::atomic<bool>*>(mmap(nullptr, sizeof(std::atomic<bool>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  protocol::Options options;
  if (!GetParam().method.empty()) options.force.method = support::value(method::find(GetParam().method));
  for (const int times : {1, 9}) {
    *died = false;
    const Watchdog dog(what);
    const std::ptrdiff_t files = open_files();
    const int mappings = shared_mappings();
    {
      std::vector<protocol::Group> made = support::value(groups(2));
      const pid_t child = fork();
      if (child == 0) {
        int left = times;
        protocol::Options doomed = options;
        doomed.at_step = [&](std::string_view step) {
          if (step != GetParam().step || --left > 0) return;
          *died = true;
          kill(getpid(), SIGKILL);
        };
        auto context = nic::open("local");
        auto ranks = Communicator::create(**context, "local", std::move(made[1]), doomed);
        if (ranks) (void)talk(**ranks);
        _exit(3);
      }
      made[1] = {};
      auto context = support::value(nic::open("local"));
      auto ranks = support::value(Communicator::create(*context, "local", std::move(made[0]), options));
      const base::Result<void> ended = talk(*ranks);
      ASSERT_FALSE(ended);
      EXPECT_EQ(ended.error().code, base::Code::peer_lost) << ended.error().text();
      ASSERT_TRUE(*died) << "the step was not reached: " << ended.error().text();
      // What follows fails at once.
      int word = 0;
      EXPECT_FALSE(ranks->send(&word, support::value(Layout::bytes(4)), 1, 1));
      EXPECT_FALSE(ranks->recv(&word, support::value(Layout::bytes(4)), protocol::kAnySource, 99));
      int status = 0;
      waitpid(child, &status, 0);
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    }
    EXPECT_EQ(open_files(), files);
    EXPECT_EQ(shared_mappings(), mappings);
  }
  munmap(died, sizeof *died);
}

// A death is looked for each few milliseconds, while the survivor looks for messages: once they have passed, some
// rounds tell.
TEST(DeadPeer, IsKnownSoon) {
  std::vector<protocol::Group> made = support::value(groups(2));
  const pid_t child = fork();
  if (child == 0) {
    auto context = nic::open("local");
    auto ranks = Communicator::create(**context, "local", std::move(made[1]));
    raise(SIGKILL);
  }
  made[1] = {};
  auto context = support::value(nic::open("local"));
  auto ranks = support::value(Communicator::create(*context, "local", std::move(made[0])));
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  usleep(50'000);
  int rounds = 0;
  while (rounds < 10'000 && ranks->probe(1, 7)) ++rounds;
  const auto known = ranks->probe(1, 7);
  ASSERT_FALSE(known) << "after " << rounds << " rounds";
  EXPECT_EQ(known.error().code, base::Code::peer_lost);
}

// A rank that gives a message up goes on living, and has nothing more to do with its peer, which waits for another one.
TEST(DeadPeer, OrOneThatGaveUpIsKnown) {
  EXPECT_EQ(in_ranks({.processes = true},
                     [](Communicator& ranks) -> std::string {
                       std::vector<std::byte> memory(8 << 20);
                       const Layout bytes = LACUNA_END_TRY(Layout::bytes(std::ssize(memory)));
                       const Layout none = LACUNA_END_TRY(Layout::bytes(0));
                       if (ranks.rank() == 0) {
                         protocol::Request* send = LACUNA_END_TRY(ranks.isend(memory.data(), bytes, 1, 1));
                         LACUNA_END_TRY(ranks.recv(memory.data(), none, 1, 2));
                         ranks.give_up(send);
                       } else {
                         LACUNA_END_TRY(ranks.send(memory.data(), none, 0, 2));
                         const auto came = ranks.recv(memory.data(), none, 0, 3);  // while rank 0 is still there
                         LACUNA_END_EXPECT(!came && came.error().code == base::Code::transfer);
                       }
                       return {};
                     }),
            "");
}

// What an offer's sender left behind is there when it is not.
TEST(DeadPeer, LeavesWhatItOffered) {
  std::vector<protocol::Group> made = support::value(groups(2));
  const Layout bytes = support::value(Layout::bytes(5'000'000));
  const Layout ticket = support::value(Layout::bytes(sizeof(protocol::Ticket)));
  const auto leave = [&](protocol::Group group) -> base::Result<void> {
    auto context = LACUNA_TRY(nic::open("local"));
    auto ranks = LACUNA_TRY(Communicator::create(*context, "local", std::move(group)));
    const std::vector<std::byte> source(5'000'000, std::byte{5});
    protocol::Ticket said;
    LACUNA_TRY(ranks->leave(LACUNA_TRY(ranks->offer(source.data(), bytes, 0, protocol::Behind::bounded, said))));
    LACUNA_TRY(ranks->send(&said, ticket, 0, 1));
    _exit(0);
  };
  const pid_t child = fork();
  if (child == 0) {
    (void)leave(std::move(made[1]));
    _exit(3);
  }
  made[1] = {};
  auto context = support::value(nic::open("local"));
  auto ranks = support::value(Communicator::create(*context, "local", std::move(made[0])));
  protocol::Ticket heard;
  support::value(ranks->recv(&heard, ticket, 1, 1));
  EXPECT_EQ(await("the news that the peer has gone", [&] { return !ranks->probe(1, 7); }), "");
  std::vector<std::byte> target(5'000'000);
  EXPECT_EQ(support::value(ranks->wait(support::value(ranks->accept(target.data(), bytes, 1, bytes.size(), heard)))).bytes, 5'000'000);
  EXPECT_EQ(std::ranges::count(target, std::byte{5}), 5'000'000);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

std::vector<Fate> fates() {
  std::vector<Fate> made;
  for (const char* step : {"send eager", "send stream", "send announce", "send answer", "packed", "unpacked", "receive stream",
                           "keep unexpected", "send access", "serve access", "offer", "moved"})
    made.push_back({step, ""});
  for (const char* method : {"pack", "pack_write", "scatter_read", "sgrs", "umr_write", "umr_read"}) {
    for (const char* step : {"send announce", "send answer", "start method", "method done"}) made.push_back({step, method});
  }
  made.push_back({"send ready", "umr_read"});
  return made;
}
INSTANTIATE_TEST_SUITE_P(AtEveryStep, PeerDeath, testing::ValuesIn(fates()), [](const auto& info) {
  std::string name = info.param.step + "_" + info.param.method;
  std::ranges::replace(name, ' ', '_');
  return name;
});

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
