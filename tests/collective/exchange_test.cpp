// What an exchange leaves in memory is what messages one by one leave there, by every schedule.
#include <fmt/format.h>

#include "tests/collective/blocks.hpp"
#include "tests/support/tier.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_TIER(test, "*Exchanges.*");
LACUNA_TIER(gate, "*Exchanges.*/Processes16_*");
LACUNA_TIER(gate, "*Exchanges.*/Model16_*");
LACUNA_LEFT_OUT(thread, "*Exchanges.*/Processes*");

struct Kind {
  std::string name;
  Setting setting;
  bool model = false;
};

std::string run(const Kind& kind, const Program& program) {
  return kind.model ? in_model(kind.setting.ranks, kind.setting.options, program) : in_ranks(kind.setting, program);
}

class Exchanges : public testing::TestWithParam<std::tuple<Kind, Schedule>> {};

// One exchange among others.
struct Round {
  std::string name;
  bool all;
  std::vector<Edge> edges;
  collective::Options options;
};

TEST_P(Exchanges, AreWhatMessagesAre) {
  const auto& [kind, schedule] = GetParam();
  const int size = kind.setting.ranks;
  std::vector<Round> rounds;
  // Tiny blocks, middling ones, and some that do not go at once.
  for (const std::int64_t most : {20, 3000, 60'000}) {
    if (most > 3000 && size > 8) continue;
    const std::uint64_t seed = static_cast<std::uint64_t>(size) * 100 + static_cast<std::uint64_t>(most);
    for (const bool all : {true, false}) {
      if (!all && schedule == Schedule::forward) continue;
      const std::vector<Edge> edges = all ? everyone(size, seed, {.most = most}) : some(size, seed, {.most = most});
      for (const int window : {1, 8}) {
        if (schedule != Schedule::pairwise && window == 1) continue;
        rounds.push_back({fmt::format("{}, blocks of up to {} bytes, window {}", all ? "everyone" : "neighbours", most, window),
                          all,
                          edges,
                          {.schedule = schedule, .window = window}});
      }
    }
  }
  const auto program = [&](Communicator& ranks) -> std::string {
    for (const Round& round : rounds) {
      if (std::string wrong = matches_messages(ranks, round.edges, round.all, round.options); !wrong.empty())
        return round.name + ": " + wrong;
    }
    return {};
  };
  EXPECT_EQ(run(kind, program), "");
}

std::vector<Kind> kinds() {
  std::vector<Kind> made;
  for (const int ranks : {1, 2, 3, 4, 5, 8, 16}) made.push_back({fmt::format("Threads{}", ranks), {.ranks = ranks}});
  for (const int ranks : {2, 7, 16}) made.push_back({fmt::format("Processes{}", ranks), {.ranks = ranks, .processes = true}});
  for (const int ranks : {2, 6, 16}) made.push_back({fmt::format("Model{}", ranks), {.ranks = ranks}, true});
  made.push_back({"NothingEager", {.ranks = 4, .options = {.eager_bytes = 0}}});
  made.push_back({"ProgressThread", {.ranks = 3, .options = {.progress_thread = true}}});
  Kind queues{"WithoutSharedMemory", {.ranks = 4}};
  queues.setting.nic.forbidden_paths = {nic::Path::mapped};
  made.push_back(queues);
  return made;
}
INSTANTIATE_TEST_SUITE_P(Every, Exchanges,
                         testing::Combine(testing::ValuesIn(kinds()),
                                          testing::Values(Schedule::automatic, Schedule::at_once, Schedule::pairwise, Schedule::forward)),
                         [](const auto& info) {
                           return std::get<0>(info.param).name + "_" + std::string(collective::schedule_name(std::get<1>(info.param)));
                         });

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
