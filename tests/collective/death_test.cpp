// A rank that dies, leaves, or gives up in an exchange: the others get an error, wherever it was.
#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

constexpr unsigned kMostSeconds = kPatience / 1'000'000'000;
LACUNA_TIER(gate, "*RankDeath.*");

constexpr int kRanks = 5;
constexpr int kVictim = 3;

struct Fate {
  std::string name;
  Schedule schedule;
  std::int64_t most;    // bytes of a block
  std::int64_t after;   // exchanges that it goes through before,
  std::string step;     // and the step of the protocol that it dies at then,
  int times;            // the how manieth
  bool leaves = false;  // it closes its communicator instead, half way
};

// All ranks exchange until one is gone.
base::Result<void> exchange_for_ever(Communicator& ranks, const Fate& fate, std::int64_t& rounds) {
  const std::vector<Edge> edges = everyone(ranks.size(), 5, {.most = fate.most, .empty = 1000});
  std::vector<Field> out, in;
  for (const Edge& edge : edges) {
    if (edge.from == ranks.rank()) out.emplace_back(edge.send, 1);
    if (edge.to == ranks.rank()) in.emplace_back(edge.receive, 2);
  }
  std::vector<collective::Source> sends;
  std::vector<collective::Target> receives;
  for (Field& field : out) sends.push_back({field.base(), field.layout});
  for (Field& field : in) receives.push_back({field.base(), field.layout});
  for (;;) {
    // A new one each time, so that it may happen while the ranks agree.
    const auto exchange = collective::alltoallw_init(ranks, sends, receives, {.schedule = fate.schedule, .window = 2});
    for (const int again : {0, 1}) {
      LACUNA_TRY(exchange->start());
      if (fate.leaves && ranks.rank() == kVictim && again == 1 && rounds >= fate.after) return {};
      LACUNA_TRY(exchange->wait());
      ++rounds;
    }
  }
}

std::string survive(protocol::Group group, const Fate& fate) {
  const auto context = LACUNA_END_TRY(nic::open("local"));
  std::int64_t rounds = 0;
  int left = fate.times;
  protocol::Options options;
  if (group.rank == kVictim && !fate.leaves) {
    options.at_step = [&](std::string_view step) {
      if (rounds >= fate.after && step == fate.step && --left == 0) raise(SIGKILL);
    };
  }
  const auto ranks = LACUNA_END_TRY(Communicator::create(*context, "local", std::move(group), options));
  const auto ended = exchange_for_ever(*ranks, fate, rounds);
  if (fate.leaves && ranks->rank() == kVictim) return {};
  LACUNA_END_EXPECT(!ended);
  if (ended.error().code != base::Code::peer_lost && ended.error().code != base::Code::timeout) return ended.error().text();
  return {};
}

class RankDeath : public testing::TestWithParam<Fate> {};

TEST_P(RankDeath, IsAnErrorOfAllOthers) {
  const Fate& fate = GetParam();
  std::vector<protocol::Group> made = support::value(groups(kRanks));
  std::vector<pid_t> children;
  for (int rank = 0; rank < kRanks; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      protocol::Group own = std::move(made[static_cast<std::size_t>(rank)]);
      made.clear();
      alarm(kMostSeconds);  // a hang ends the test
      const std::string wrong = survive(std::move(own), fate);
      if (!wrong.empty()) fprintf(stderr, "rank %d: %s\n", rank, wrong.c_str());
      _exit(wrong.empty() ? 0 : 1);
    }
    children.push_back(child);
  }
  made.clear();
  for (int rank = 0; rank < kRanks; ++rank) {
    int status = 0;
    waitpid(children[static_cast<std::size_t>(rank)], &status, 0);
    if (rank == kVictim && !fate.leaves) {
      EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the step was not reached";
    } else {
      const bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
      EXPECT_EQ(status, 0) << "rank " << rank << (hung ? ": " + in_vain("the news that a rank is gone") : "");
    }
  }
}

std::vector<Fate> fates() {
  std::vector<Fate> made;
  for (const Schedule schedule : {Schedule::at_once, Schedule::pairwise, Schedule::forward}) {
    const std::string name(collective::schedule_name(schedule));
    // While the ranks agree: the first small messages; and in the middle of the data.
    for (const int times : {1, 2, 3, 5}) made.push_back({fmt::format("{}_Agreeing{}", name, times), schedule, 100, 0, "send eager", times});
    for (const int times : {1, 6, 20}) made.push_back({fmt::format("{}_Small{}", name, times), schedule, 100, 4, "send eager", times});
    made.push_back({fmt::format("{}_Leaving", name), schedule, 100, 3, "", 0, true});
    if (schedule == Schedule::forward) continue;
    for (const char* step : {"packed", "unpacked"}) made.push_back({fmt::format("{}_{}", name, step), schedule, 300'000, 2, step, 3});
    made.push_back({fmt::format("{}_LeavingLarge", name), schedule, 300'000, 3, "", 0, true});
  }
  return made;
}
INSTANTIATE_TEST_SUITE_P(TwoProcesses, RankDeath, testing::ValuesIn(fates()), [](const auto& info) { return info.param.name; });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
