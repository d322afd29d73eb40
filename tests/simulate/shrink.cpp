#include "tests/simulate/shrink.hpp"

#include <algorithm>

namespace lacuna::simulate {
namespace {

struct Search {
  Story best;
  const std::function<bool(const Story&)>& fails;
  int left;
  bool try_it(const Story& story) {
    if (left <= 0) return false;
    --left;
    if (!fails(story)) return false;
    best = story;
    return true;
  }
};

// Steps in stretches of so many, over all rounds.
bool leave_out(Search& search, int stretch) {
  bool shorter = false;
  for (int begin = 0; begin < search.best.steps();) {
    Story story = search.best;
    int at = 0;
    for (Round& round : story.rounds) std::erase_if(round, [&](const Step&) { return at++ / stretch == begin / stretch; });
    std::erase_if(story.rounds, [](const Round& round) { return round.empty(); });
    const bool fails = search.try_it(story);
    shorter = shorter || fails;
    if (!fails) begin += stretch;
    if (search.left == 0) break;
  }
  return shorter;
}

}  // namespace

Story shrink(Story story, const std::function<bool(const Story&)>& fails, int most) {
  Search search{.best = std::move(story), .fails = fails, .left = most};
  for (int Luck::* kind : {&Luck::late, &Luck::slow, &Luck::stalls, &Luck::unready, &Luck::jumps, &Luck::no_keys, &Luck::slow_keys,
                           &Luck::no_posts, &Luck::lies}) {
    Story luckier = search.best;
    if (std::exchange(luckier.luck.*kind, 0) != 0) search.try_it(luckier);
  }
  for (int Luck::* rank : {&Luck::dies, &Luck::liar}) {
    Story luckier = search.best;
    if (std::exchange(luckier.luck.*rank, -1) >= 0) search.try_it(luckier);
  }
  for (int stretch = std::max(1, search.best.steps() / 2); stretch > 0; stretch /= 2) {
    while (leave_out(search, stretch) && search.left > 0) {
    }
  }
  return search.best;
}

}  // namespace lacuna::simulate
