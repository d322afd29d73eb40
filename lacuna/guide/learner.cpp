#include "lacuna/guide/learner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace lacuna::guide {
namespace {

constexpr std::array<std::string_view, 3> kNames{"off", "observe", "on"};
static_assert(LearnOptions::kMostOverhead == TrialBudget::kShare);

}  // namespace

Result<LearnOptions> LearnOptions::from_text(std::string_view text) {
  const auto wrong = [&] {
    return base::fail(base::Code::invalid_argument,
                      fmt::format("learning: no \"{}\"; there are: {}; and with :N one transfer in N is tried, 10 to 1000000", text,
                                  fmt::join(kNames, ", ")));
  };
  LearnOptions options;
  const std::size_t colon = text.find(':');
  const auto found = std::ranges::find(kNames, text.substr(0, colon));
  if (found == kNames.end()) return wrong();
  options.learning = static_cast<Learning>(found - kNames.begin());
  if (colon == std::string_view::npos) return options;
  const std::string_view number = text.substr(colon + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), options.one_in);
  if (error != std::errc() || end != number.data() + number.size() || options.one_in < 10 || options.one_in > 1'000'000) return wrong();
  return options;
}

Result<LearnOptions> LearnOptions::from_environment() {
  const char* said = std::getenv("LACUNA_LEARN");
  if (said == nullptr || *said == '\0') return LearnOptions();
  Result<LearnOptions> options = from_text(said);
  if (!options) return base::fail(options.error().code, "LACUNA_LEARN: " + options.error().message);
  return options;
}

bool Learned::same(const Learned& other) const {
  return cold == other.cold && message_us == other.message_us && numbers_of(pair) == numbers_of(other.pair) &&
         ((first == other.first && second == other.second) || (first == other.second && second == other.first));
}

Result<Learner::Chosen> Learner::choose(Guide& guide, const Layout& src, const Layout& dst, const PeerClass& peer,
                                        const Placement& placement) {
  Choice choice = LACUNA_TRY(guide.choose(src, dst, peer, placement));
  if (options_.learning == Learning::off || placement.objective != Objective::latency) return Chosen{choice};
  ++transfers_;
  expected_ns_ += choice.plan.latency_ns;
  if (contests_.rests()) return Chosen{choice};
  const Subject subject{.src = src.digest(), .dst = dst.digest(), .placement = placement, .peer = &peer};
  const auto beside = [&](std::span<const Way> ways) -> std::optional<Contests<Subject, Way>::Beside> {
    const Result<Choice> other = guide.choose_beside(ways, src, dst, peer, placement);
    if (!other) return std::nullopt;
    return {{.way = other->way, .ns = other->plan.latency_ns}};
  };
  const auto trial = contests_.next(subject, choice.way, choice.plan.latency_ns, statistics().all_ns, beside);
  if (contests_.size() > pairs_.size()) pairs_.push_back(layout::outline(src, dst));
  if (!trial) return Chosen{choice};
  choice.way = trial->way;
  return Chosen{choice, trial->number};
}

void Learner::took(Guide& guide, std::uint32_t trial, double ns) {
  const auto decided = contests_.took(trial, ns);
  if (!decided) return;
  const Subject& subject = contests_.subject(decided->at);
  const Learned found{.pair = pairs_[decided->at],
                      .cold = subject.placement.cold,
                      .message_us = subject.peer->message_us(),
                      .first = decided->best,
                      .second = decided->other,
                      .log_ratio = decided->log_ratio,
                      .samples = decided->samples};
  std::erase_if(learned_, [&](const Learned& old) { return old.same(found); });
  learned_.push_back(found);
  if (options_.learning == Learning::on) guide.learn(*subject.peer, found);
}

Learner::Statistics Learner::statistics() const {
  return {.transfers = transfers_,
          .tried = contests_.tried(),
          .all_ns = expected_ns_ * contests_.slowness(),
          .extra_ns = contests_.extra_ns(),
          .settled = contests_.settled(),
          .better = contests_.better()};
}

std::string Learner::Statistics::describe() const {
  return fmt::format(
      "learning: {} of {} transfers went another way, which cost {:.2f}% of the time of all; {} comparisons decided, {} for the other "
      "way\n",
      tried, transfers, all_ns > 0 ? 100 * extra_ns / all_ns : 0.0, settled, better);
}

}  // namespace lacuna::guide
