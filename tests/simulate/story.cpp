#include "tests/simulate/story.hpp"

#include <fmt/format.h>

#include <array>
#include <map>

#include "lacuna/method/method.hpp"

namespace lacuna::simulate {
namespace {

using support::Random;

// Rare things are not rare in all worlds: in half of them nothing of a kind ever happens.
int often(Random& random, int most) { return random.one_in(2) ? 0 : static_cast<int>(random.scaled(most)); }

Step draw_step(Random& random, const Story& story, int number) {
  Step step;
  step.number = step.tag = number;
  step.from = static_cast<int>(random.below(story.ranks));
  step.to = static_cast<int>(random.below(story.ranks));
  step.seed = random.next();
  step.bytes = random.one_in(8) ? 0 : random.scaled(random.one_in(6) ? 300'000 : 20'000);
  step.probes = random.one_in(10);
  step.takes_back = random.one_in(12);
  switch (random.below(16)) {
    case 0: step.kind = Step::Kind::nothing; break;
    case 1: step.kind = Step::Kind::works; break;
    case 2:
    case 3: step.kind = Step::Kind::put; break;
    case 4:
    case 5: step.kind = Step::Kind::get; break;
    case 6: step.kind = !story.luck.kills() && (story.ranks <= 8 || random.one_in(4)) ? Step::Kind::exchange : Step::Kind::message; break;
    default: break;
  }
  const bool remote = step.kind == Step::Kind::put || step.kind == Step::Kind::get;
  if (remote && step.to == step.from) step.to = (step.to + 1) % story.ranks;
  if (remote) step.bytes = 1 + step.bytes % 4000;
  step.waits = remote && random.one_in(2);
  if (step.kind == Step::Kind::exchange) {
    step.bytes = random.scaled(5000);
    if (random.one_in(12)) step.flaw = random.one_in(2) ? Step::Flaw::misfit : Step::Flaw::refused;
  }
  if (step.kind == Step::Kind::works) step.takes_ns = random.scaled(3'000'000);
  return step;
}

// Whether receives may name no source. Else a rank that is gone, or lost to this one, may be the one waited for.
bool may_be_wild(const Story& story) {
  return !story.luck.kills() && !story.luck.refuses() && !story.luck.deceives() && (story.keys < 0 || story.method.empty());
}

// What a receive finds is not known before, so all messages to that rank have as many bytes and may be any of them.
void open_up(Round& round, int to) {
  std::int64_t bytes = -1;
  for (Step& step : round) {
    if (step.kind != Step::Kind::message || step.to != to) continue;
    if (bytes < 0) bytes = step.bytes;
    step.bytes = bytes;
    step.open = step.any_source = step.any_tag = true;
  }
}

// Each receive to that rank names its source and tag, or one of them, or, where there is one source, none. Each takes
// the message of its step all the same: no receive of a message of another rank takes one of this rank, and those of
// one rank come in their order, and so do their receives. Receives that are exact wait before, behind and between
// wildcards; some messages of a rank all have the same tag.
void mix_up(Random& random, Round& round, int to) {
  std::map<int, int> tags;  // by source
  for (const Step& step : round) {
    if (step.kind == Step::Kind::message && step.to == to) tags.try_emplace(step.from, step.number);
  }
  const bool one_source = tags.size() == 1;
  const bool same_tag = random.one_in(2);
  for (Step& step : round) {
    if (step.kind != Step::Kind::message || step.to != to) continue;
    if (same_tag) step.tag = tags.at(step.from);
    step.any_source = random.one_in(2);
    step.any_tag = random.one_in(2) && (one_source || !step.any_source);
  }
}

// Most messages of the round go from one rank to this one; else it has few receives.
void gather(Random& random, Round& round, int to) {
  const int from = round.front().from;
  for (Step& step : round) {
    if (step.kind != Step::Kind::message || random.one_in(4)) continue;
    step.from = from;
    step.to = to;
  }
}

void draw_wildcards(Random& random, Round& round, const Story& story) {
  const int to = static_cast<int>(random.below(story.ranks));
  const bool opens = random.one_in(2);
  if (random.one_in(2)) gather(random, round, to);
  if (may_be_wild(story)) opens ? open_up(round, to) : mix_up(random, round, to);
}

void draw_world(Random& random, Story& story) {
  constexpr std::array kProfiles{"connectx5-rocev2",    "connectx5-rocev2-cache", "connectx5-platform1",
                                 "infiniband-ddr-2006", "what-if-400g",           "what-if-no-umr"};
  story.profile = kProfiles.at(static_cast<std::size_t>(random.below(kProfiles.size())));
  story.ranks = random.one_in(12) ? static_cast<int>(random.between(9, 64)) : static_cast<int>(random.between(2, 8));
  story.hub = random.one_in(3);
  story.ranks_per_node = random.one_in(2) ? 1 : static_cast<int>(random.between(1, story.ranks));
  if (random.one_in(3)) story.max_send_wr = static_cast<int>(random.between(4, 64));
  if (random.one_in(3)) story.max_recv_wr = static_cast<int>(random.between(8, 64));
  if (random.one_in(4)) story.max_sge = static_cast<int>(random.between(1, 8));
  if (random.one_in(4)) story.keys = static_cast<int>(random.between(0, 4));
  story.eager_bytes = random.one_in(3) ? random.scaled(60'000) : 0;
  story.part_bytes = random.one_in(3) ? 1024 + random.scaled(127 << 10) : 0;
  story.registered_bytes = random.one_in(3) ? random.between(4096, 1 << 20) : 0;
  story.registered_entries = random.one_in(3) ? static_cast<std::size_t>(random.between(1, 16)) : 0;
  story.unexpected_bytes = random.one_in(3) ? random.scaled(64 << 10) : -1;
  story.registering = random.one_in(2) ? 0 : static_cast<int>(random.between(1, 4));
  const method::Method& forced = method::methods()[static_cast<std::size_t>(random.below(std::ssize(method::methods())))];
  const bool has_keys = story.keys != 0 && (story.profile.starts_with("connectx5") || story.profile == "what-if-400g");
  // Few keys are of no interest to what needs none
  if ((story.keys > 0 ? forced.indirect_keys : random.one_in(2)) && (!forced.indirect_keys || has_keys)) story.method = forced.name;
  story.learns = random.one_in(4);
}

// So many layouts that their numbers are used up, between two ranks whose messages all travel with theirs.
void be_busy(Random& random, Story& story) {
  story.ranks = 2;
  story.ranks_per_node = 1;
  story.eager_bytes = 1;
  for (int i = 0; i < 10; ++i) {
    Round round;
    for (int k = 0; k < 60; ++k)
      round.push_back({.number = i * 60 + k,
                       .from = k % 2,
                       .to = 1 - k % 2,
                       .tag = i * 60 + k,
                       .bytes = random.between(2, 3000),
                       .seed = random.next()});
    story.rounds.push_back(std::move(round));
  }
}

}  // namespace

Luck draw_luck(Random& random, int ranks, bool hub) {
  Luck luck;
  luck.late = often(random, 300);
  luck.late_ns = random.scaled(200'000);
  luck.slow = often(random, 100);
  luck.slow_ns = random.scaled(50'000);
  luck.stalls = often(random, 300);
  luck.stall_ns = random.scaled(3'000'000'000);
  luck.unready = random.one_in(4) ? often(random, 1000) : 0;
  luck.unready_ns = random.scaled(5'000'000'000);
  luck.no_keys = random.one_in(4) ? static_cast<int>(random.between(50, 700)) : 0;
  luck.slow_keys = random.one_in(3) ? often(random, 500) : 0;
  luck.slow_keys_ns = random.scaled(20'000'000);
  luck.no_posts = random.one_in(4) ? static_cast<int>(random.between(20, 2000)) : 0;
  if (random.one_in(2)) luck.poor = static_cast<int>(random.below(ranks));
  luck.jumps = often(random, 3000);
  luck.jump_ns = random.scaled(2'000'000'000);
  if (random.one_in(5)) {
    luck.dies = static_cast<int>(random.below(ranks));
    luck.dies_at = random.scaled(4000);
    luck.dies_behind = random.one_in(2);
  } else if (!hub && random.one_in(3)) {
    luck.lies = static_cast<int>(random.between(20, 500));
    luck.liar = static_cast<int>(random.below(ranks));
    luck.victim = (luck.liar + 1 + static_cast<int>(random.below(ranks - 1))) % ranks;
  }
  // So that what a rank sent last is found together with its end.
  if ((luck.kills() || luck.no_posts > 0) && !random.one_in(4)) {
    luck.slow = 900;
    luck.late = 500;
    luck.late_ns = hub ? 300'000 : 100'000;
    luck.slow_ns = hub ? 300'000 : 50'000;
  }
  return luck;
}

Story draw(std::uint64_t seed) {
  Random random(seed);
  Story story{.seed = seed};
  draw_world(random, story);
  const bool busy = random.one_in(60);
  if (busy) be_busy(random, story);
  story.luck = draw_luck(random, story.ranks, story.hub);
  if (busy) return story;
  const std::int64_t rounds = random.between(1, story.ranks > 8 ? 4 : 10);
  int number = 0;
  for (std::int64_t i = 0; i < rounds; ++i) {
    Round round;
    const std::int64_t steps = random.between(1, 24);
    for (std::int64_t k = 0; k < steps; ++k) round.push_back(draw_step(random, story, number++));
    if (random.one_in(2)) draw_wildcards(random, round, story);
    story.rounds.push_back(std::move(round));
  }
  return story;
}

int Story::steps() const {
  int all = 0;
  for (const Round& round : rounds) all += static_cast<int>(round.size());
  return all;
}

std::string Story::describe() const {
  constexpr std::array kNames{"message", "put", "get", "exchange", "nothing", "works"};
  std::string text = fmt::format(
      "seed {}: {} ranks, {} of a node, {}, NIC {}, send queue {}, receive queue {}, sge {}, keys {}, eager {}, parts {}, registered {} in "
      "{}, "
      "unexpected {}, registering {}, method '{}', {}\n",
      seed, ranks, ranks_per_node, hub ? "a hub" : "connections", profile, max_send_wr, max_recv_wr, max_sge, keys, eager_bytes, part_bytes,
      registered_bytes, registered_entries, unexpected_bytes, registering, method, learns ? "learns" : "learns nothing");
  text += fmt::format("luck: late {} by {} ns, slow {} by {}, stalls {} of {}, unready {} by {}, jumps {} by {}, rank {} dies at call {}\n",
                      luck.late, luck.late_ns, luck.slow, luck.slow_ns, luck.stalls, luck.stall_ns, luck.unready, luck.unready_ns,
                      luck.jumps, luck.jump_ns, luck.dies, luck.dies_at);
  text += fmt::format("  no keys {}, slow keys {} by {}, no posts {}, to rank {} alone; rank {} lies to {}: {}\n", luck.no_keys,
                      luck.slow_keys, luck.slow_keys_ns, luck.no_posts, luck.poor, luck.liar, luck.victim, luck.lies);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    for (const Step& step : rounds[i]) {
      text += fmt::format("  round {}, step {}: {} {} -> {}, tag {}, {} bytes{}{}{}{}{}{}\n", i, step.number,
                          kNames.at(static_cast<std::size_t>(step.kind)), step.from, step.to, step.tag, step.bytes,
                          step.any_source ? ", any source" : "", step.any_tag ? ", any tag" : "", step.probes ? ", probed" : "",
                          step.takes_back ? ", taken back" : "", step.waits ? ", waited for" : "",
                          std::array{"", ", a block does not fit", ", one may not take part"}.at(static_cast<std::size_t>(step.flaw)));
    }
  }
  return text;
}

}  // namespace lacuna::simulate
