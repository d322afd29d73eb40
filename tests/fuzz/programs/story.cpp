#include "tests/fuzz/programs/story.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "tests/fuzz/programs/windows.hpp"

namespace lacuna::fuzz {
namespace {

using support::Random;
namespace fake = test::fake;

std::int64_t draw_bytes(Random& random) {
  static const std::vector<std::int64_t> known{1, 60, 252, 253, 254, 1000, 2048, 4032, 8191, 8192, 9000, 20'000, 70'000};
  return random.one_in(2) ? random.pick(known) : 1 + random.scaled(30'000);
}

std::vector<int> there(const Story& story, std::size_t round) {
  std::vector<int> ranks;
  for (int rank = 0; rank < story.options.ranks; ++rank) {
    if (story.is_there(rank, round)) ranks.push_back(rank);
  }
  return ranks;
}

// All messages of one sender, receiver and tag are begun, or none is: so each blocking send meets the receive of its
// number. Receives of anyone are begun.
void draw_ways(Random& random, StoryRound& round) {
  std::map<std::tuple<int, int, int>, std::pair<bool, bool>> begun;
  for (StoryMessage& one : round.messages) {
    const auto [found, is_new] = begun.try_emplace({one.from, one.to, one.tag}, random.one_in(2), random.one_in(2));
    auto [sends, receives] = found->second;
    if (one.from == one.to) sends = receives = true;
    if (round.wild[static_cast<std::size_t>(one.to)] != Wild::no) receives = true;
    one.send = static_cast<SendWay>(sends ? random.between(3, 6) : random.below(3));
    one.receive = static_cast<ReceiveWay>(receives ? random.between(4, 5) : random.below(4));
  }
}

StoryCollective draw_collective(Random& random, int ranks, int root) {
  StoryCollective made{
      .kind = static_cast<Collected>(random.below(static_cast<int>(Collected::last) + 1)), .root = root, .data = random.next()};
  const std::int64_t bytes = random.one_in(3) ? random.between(1, 20'000) : random.between(1, 600);
  for (int rank = 0; rank < ranks; ++rank) {
    made.out.push_back(draw_shape(random, bytes));
    made.in.push_back(draw_shape(random, bytes));
  }
  return made;
}

StoryRound draw_round(Random& random, const Story& story, std::size_t number) {
  StoryRound round;
  const std::vector<int> ranks = there(story, number);
  round.wild.resize(static_cast<std::size_t>(story.options.ranks));
  for (Wild& one : round.wild) one = random.one_in(2) ? Wild::no : static_cast<Wild>(random.below(3));
  if (story.has_death(number)) std::ranges::fill(round.wild, Wild::no);
  round.messages.resize(static_cast<std::size_t>(random.between(1, 10)));
  std::map<int, std::int64_t> most;  // bytes that a receiver who asks for anyone's has to have room for
  for (StoryMessage& one : round.messages) {
    one.from = random.pick(ranks);
    one.to = random.pick(ranks);
    one.tag = static_cast<int>(random.below(3));
    one.data = random.next();
    one.out = draw_shape(random, draw_bytes(random));
    most[one.to] = std::max(most[one.to], one.out.size());
  }
  draw_ways(random, round);
  for (StoryMessage& one : round.messages) {
    const bool any = round.wild[static_cast<std::size_t>(one.to)] != Wild::no;
    one.in = draw_shape(random, (any ? most[one.to] : one.out.size()) + (random.one_in(3) ? random.below(400) : 0));
  }
  // Those of one sender and tag come in their order, whatever the room: all have as much as the longest
  for (StoryMessage& one : round.messages) {
    for (const StoryMessage& other : round.messages) {
      const bool same = other.from == one.from && other.to == one.to && other.tag == one.tag;
      if (same && other.out.size() > one.in.size()) one.in = draw_shape(random, other.out.size());
    }
  }
  round.late.resize(static_cast<std::size_t>(story.options.ranks));
  for (const int rank : ranks) {
    if (random.one_in(6)) round.cancels.push_back(rank);
    if (random.one_in(8)) round.late[static_cast<std::size_t>(rank)] = static_cast<int>(random.between(1, 3));
  }
  round.own_comm = random.one_in(3);
  round.freed_early = round.own_comm && random.one_in(2);
  round.completion = static_cast<int>(random.below(5));
  if (random.one_in(2)) round.collective = draw_collective(random, story.options.ranks, random.pick(ranks));
  return round;
}

// By numbers of its own: a seed without a death is what it was before there were deaths.
void draw_death(std::uint64_t seed, Story& story) {
  Random random(seed ^ 0xdea7'0000'0000);
  const auto rank = static_cast<int>(random.below(story.options.ranks));
  int& end = story.ends[static_cast<std::size_t>(rank)];
  if (!random.one_in(4) || end == 0) return;
  story.death = {.rank = rank, .round = static_cast<std::size_t>(random.below(end)), .calls = static_cast<int>(random.below(6))};
  end = static_cast<int>(story.death->round) + 1;
}

}  // namespace

Story draw_story(std::uint64_t seed) {
  Random random(seed);
  static const std::vector<std::int64_t> eager{0, 253, 4096, 1 << 20};
  Story story;
  story.options = {.ranks = static_cast<int>(random.one_in(3) ? random.between(3, 8) : random.between(2, 4)),
                   .eager = random.pick(eager),
                   .threads = random.one_in(2)};
  story.options.renews = random.one_in(4);
  story.options.open_mpi = random.one_in(2);
  story.options.decode_at = static_cast<int>(random.below(4));
  story.options.distance = "";
  story.options.slow = random.one_in(2) ? random.next() : 0;
  if (random.one_in(3)) story.options.nodes = static_cast<int>(random.between(1, std::min(story.options.ranks, 3)));
  if (story.options.nodes > 1 && random.one_in(2)) story.options.nic = "fake";
  static const std::vector<std::string> calls{"Type_get_envelope", "Type_get_contents", "Type_get_envelope_c", "Type_get_contents_c",
                                              "Type_set_attr",     "Comm_set_attr",     "Type_contiguous"};
  if (random.one_in(3))
    story.faults.push_back({.call = random.pick(calls),
                            .n = random.one_in(4) ? fake::Fault::kAll : static_cast<int>(random.between(1, 20)),
                            .rank = static_cast<int>(random.below(story.options.ranks))});
  if (random.one_in(3)) story.scarce_rank = static_cast<int>(random.below(story.options.ranks));
  story.scarce = random.next();
  const auto rounds = static_cast<std::size_t>(random.between(1, 4));
  story.ends.assign(static_cast<std::size_t>(story.options.ranks), static_cast<int>(rounds));
  if (story.options.ranks > 2 && random.one_in(3))
    story.ends[static_cast<std::size_t>(random.below(story.options.ranks))] =
        static_cast<int>(random.below(static_cast<std::int64_t>(rounds)));
  draw_death(seed, story);
  for (std::size_t i = 0; i < rounds; ++i) story.rounds.push_back(draw_round(random, story, i));
  for (std::size_t i = 0; i < rounds; ++i) {
    if (random.one_in(3) && !story.has_death(i)) story.rounds[i].window = draw_window(random, story.options.ranks, there(story, i));
  }
  return story;
}

std::string Story::describe() const {
  std::string text =
      fmt::format("  {} ranks on {} nodes{}, eager {}, threads {}, slow {}, decodes at {}\n", options.ranks, options.nodes,
                  options.nic.empty() ? "" : " with devices", options.eager, options.threads, options.slow != 0, options.decode_at);
  for (const fake::Fault& fault : faults) text += fmt::format("  call {} of {} fails on rank {}\n", fault.n, fault.call, fault.rank);
  if (scarce_rank >= 0) text += fmt::format("  rank {} has no memory now and then\n", scarce_rank);
  if (death) text += fmt::format("  rank {} dies in round {} after {} calls\n", death->rank, death->round, death->calls);
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    const StoryRound& round = rounds[i];
    text += fmt::format("  round {}{}{}{}, completion {}\n", i, round.own_comm ? ", with a communicator" : "",
                        round.freed_early ? " that is freed early" : "",
                        round.collective ? fmt::format(", collective {}", static_cast<int>(round.collective->kind)) : "", round.completion);
    for (const StoryMessage& one : round.messages)
      text += fmt::format("    {} to {} tag {}, send {} receive {} wild {}: {}; {}\n", one.from, one.to, one.tag,
                          static_cast<int>(one.send), static_cast<int>(one.receive),
                          static_cast<int>(round.wild[static_cast<std::size_t>(one.to)]), one.out.describe(), one.in.describe());
    if (round.window) text += fuzz::describe(*round.window);
  }
  return text;
}

Story shorter(Story story) {
  const auto fails = [](const Story& one) { return !play(one, true, false).empty(); };
  const auto without = [&](const auto& change) {
    Story less = story;
    change(less);
    if (fails(less)) story = std::move(less);
  };
  for (std::size_t round = story.rounds.size(); round-- > 0;) {
    for (std::size_t i = story.rounds[round].messages.size(); i-- > 0;)
      without(
          [&](Story& less) { less.rounds[round].messages.erase(less.rounds[round].messages.begin() + static_cast<std::ptrdiff_t>(i)); });
    without([&](Story& less) { less.rounds[round].collective.reset(); });
    without([&](Story& less) { less.rounds[round].window.reset(); });
    for (std::size_t i = story.rounds[round].window ? story.rounds[round].window->epochs.size() : 0; i-- > 0;)
      without([&](Story& less) {
        std::vector<StoryEpoch>& epochs = less.rounds[round].window->epochs;
        epochs.erase(epochs.begin() + static_cast<std::ptrdiff_t>(i));
      });
    without([&](Story& less) { less.rounds[round].cancels.clear(); });
    without([&](Story& less) { less.rounds[round].own_comm = less.rounds[round].freed_early = false; });
  }
  without([](Story& less) { less.faults.clear(); });
  without([](Story& less) { less.scarce_rank = -1; });
  without([](Story& less) { less.death.reset(); });
  without([](Story& less) { less.options.slow = 0; });
  return story;
}

}  // namespace lacuna::fuzz
