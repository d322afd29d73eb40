#include "tests/simulate/run.hpp"

#include <fmt/format.h>

#include <memory>

#include "lacuna/method/method.hpp"
#include "lacuna/nic/world.hpp"
#include "tests/simulate/nonsense.hpp"
#include "tests/simulate/player.hpp"

namespace lacuna::simulate {
namespace {

using base::Result;

constexpr std::int64_t kUntil = 3'600'000'000'000;  // ns, by which all has to be over

protocol::Options options_of(const Story& story, Unlucky& nic, int rank) {
  protocol::Options options;
  if (rank == story.luck.liar) {  // channels are made in the order of the ranks
    const int victim = story.luck.victim - (story.luck.victim > rank ? 1 : 0);
    options.wrap_channel = [&nic, seed = story.seed, victim, made = 0](std::unique_ptr<protocol::Channel> channel) mutable {
      if (made++ != victim) return channel;
      return make_lying_channel(std::move(channel), seed,
                                {.wants = [&nic] { return nic.wants_to_lie(); }, .tells = [&nic] { nic.lies(); }});
    };
  }
  if (story.eager_bytes > 0) options.eager_bytes = story.eager_bytes;
  if (story.part_bytes > 0) options.part_bytes = story.part_bytes;
  if (story.registered_bytes > 0) options.registered_bytes = story.registered_bytes;
  if (story.registered_entries > 0) options.registered_entries = story.registered_entries;
  if (story.unexpected_bytes >= 0) options.unexpected_bytes = story.unexpected_bytes;
  options.registering = static_cast<protocol::Registering>(story.registering);
  if (story.learns) options.learn = {.learning = guide::Learning::on, .one_in = 3};
  if (!story.method.empty()) options.force.method = *method::find(story.method);
  return options;
}

nic::WorldOptions world_of(const Story& story) {
  nic::WorldOptions options{.profile = LACUNA_SOURCE_DIR "/lacuna/nic/model/profiles/" + story.profile + ".json",
                            .ranks = story.ranks,
                            .ranks_per_node = story.ranks_per_node};
  options.limits.max_send_wr = story.max_send_wr;
  options.limits.max_recv_wr = story.max_recv_wr;
  options.limits.max_sge = story.max_sge;
  if (story.keys >= 0) options.limits.indirect.keys = story.keys;
  return options;
}

}  // namespace

Outcome run(const Story& story, bool keeps_trace, std::FILE* shown) {
  Outcome outcome;
  Trace trace(keeps_trace, shown);
  Result<std::unique_ptr<nic::World>> world = nic::simulate(world_of(story));
  if (!world) {
    outcome.wrong.push_back("the world: " + world.error().text());
    return outcome;
  }
  const auto ranks = static_cast<std::size_t>(story.ranks);
  Stage stage{.story = story,
              .outcome = outcome,
              .fate = Fate(trace, kUntil, story.ranks),
              .ground = {},
              .steps = {},
              .exposed = std::vector<protocol::Exposed>(ranks),
              .memory = std::vector<std::span<const std::byte>>(ranks),
              .was_put = {}};
  for (const Round& round : story.rounds) {
    for (const Step& step : round) stage.steps[step.number] = &step;
  }
  stage.was_put.resize(static_cast<std::size_t>(stage.slots()));
  const Result<void> ran = (*world)->run([&](int rank) -> Result<void> {
    Unlucky nic((*world)->context(rank), story.luck, story.seed, rank, stage.fate);
    {
      auto group = story.hub ? protocol::form_group_by_hub(**world, rank) : protocol::form_group(**world, rank);
      const auto made = protocol::Communicator::create(nic, "model", std::move(group), options_of(story, nic, rank));
      if (!made) {
        outcome.wrong.push_back(fmt::format("rank {}: no communicator: {}", rank, made.error().text()));
        return {};
      }
      Player(stage, nic, **made).play();
    }
    outcome.happened.add(nic.happened());
    return {};
  });
  if (!ran) outcome.wrong.push_back(ran.error().text());
  for (int rank = 0; rank < story.ranks; ++rank) {
    const nic::World::Usage left = (*world)->usage(rank);
    if (left.allocated != 0 || left.registered != 0)
      outcome.wrong.push_back(fmt::format("rank {} leaves {} bytes allocated and {} registered", rank, left.allocated, left.registered));
  }
  outcome.unmapped = stage.ground.given_back();
  outcome.trace = trace.text();
  outcome.digest = trace.digest();
  return outcome;
}

}  // namespace lacuna::simulate
