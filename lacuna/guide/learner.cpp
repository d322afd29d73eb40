#include "lacuna/guide/learner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace lacuna::guide {
namespace {

constexpr std::array<std::string_view, 3> kNames{"off", "observe", "on"};
constexpr std::size_t kMostContests = 1024;
constexpr int kLeast = 4, kMost = 16;  // trials of a comparison
constexpr double kSure = 2.5;          // standard errors
constexpr double kSpread = 0.02;       // trials that agree by chance are not surer than this
constexpr double kMostLog = 0.7;       // of one trial: somebody else had the CPU
constexpr double kTie = 0.01;          // a way that is better by less is none
constexpr double kWorthATry = 1.5;     // times what the best is expected to take
constexpr int kPatience = 64;          // transfers of other pairs, times one_in
constexpr int kRests = 64;             // times that a pair with nothing left to try is passed over
constexpr double kClockNs = 100;       // to time a trial's transfers

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

bool Learner::Contest::of(const Layout& from, const Layout& to, const Peer& whose, const Placement& where) const {
  return src == from.digest() && dst == to.digest() && peer == &whose && placement == where;
}

void Learner::Contest::restart(const Way& now_best) {
  best = now_best;
  over = {now_best};
  sum = squares = 0;
  samples = rests = 0;
}

// xorshift64*. The time to the next trial varies, so that a program that repeats itself has all its pairs tried.
std::uint64_t Learner::random() {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545f4914f6cdd1d;
}

void Learner::rest() {
  const auto one_in = static_cast<std::uint64_t>(std::max(1, options_.one_in));  // two transfers of a trial go another way
  until_ = static_cast<std::int64_t>(one_in * 3 / 2 + random() % (one_in + 1));
}

Result<Learner::Chosen> Learner::choose(Guide& guide, const Layout& src, const Layout& dst, const Peer& peer, const Placement& placement) {
  Choice choice = LACUNA_TRY(guide.choose(src, dst, peer, placement));
  if (options_.learning == Learning::off || placement.objective != Objective::latency) return Chosen{choice};
  ++statistics_.transfers;
  expected_ns_ += choice.plan.latency_ns;
  if (trial_) {
    if (trial_->under_way || !contests_[trial_->contest].of(src, dst, peer, placement)) {
      if (++trial_->passed > kPatience * options_.one_in) trial_.reset();
      return Chosen{choice};
    }
  } else if (--until_ > 0) {
    return Chosen{choice};
  } else {
    rest();
    begin(guide, choice, src, dst, peer, placement);
    if (!trial_) return Chosen{choice};
  }
  const Contest& contest = contests_[trial_->contest];
  trial_->under_way = true;
  if (++numbers_ == 0) ++numbers_;
  trial_->number = numbers_;
  trial_->expected_ns = choice.plan.latency_ns;
  choice.way = trial_->tries_other() ? contest.other : contest.best;
  if (trial_->tries_other()) ++statistics_.tried;
  return Chosen{choice, trial_->number};
}

void Learner::begin(const Guide& guide, const Choice& choice, const Layout& src, const Layout& dst, const Peer& peer,
                    const Placement& placement) {
  auto found = std::ranges::find_if(contests_, [&](const Contest& contest) { return contest.of(src, dst, peer, placement); });
  if (found == contests_.end()) {
    if (contests_.size() == kMostContests) return;
    found = contests_.insert(
        found, {.src = src.digest(), .dst = dst.digest(), .placement = placement, .peer = &peer, .pair = layout::outline(src, dst)});
    found->restart(choice.way);
  }
  if (found->best != choice.way && options_.learning == Learning::on) {
    if (std::ranges::find(found->over, choice.way) == found->over.end()) found->restart(choice.way);
    found->best = choice.way;
  }
  found->rests = std::max(0, found->rests - 1);
  if (found->rests > 0) return;
  const Result<Choice> other = guide.choose_beside(found->over, src, dst, peer, placement);
  if (!other || other->plan.latency_ns > kWorthATry * choice.plan.latency_ns) {
    if (found->over.size() > 1) found->restart(choice.way);
    found->rests = kRests;
    return;
  }
  if (found->samples > 0 && other->way != found->other) {  // what was learned nearby has changed the order
    found->sum = found->squares = 0;
    found->samples = 0;
  }
  const Statistics so_far = statistics();
  const double extra = 2 * std::max(0.0, other->plan.latency_ns - choice.plan.latency_ns) + 4 * kClockNs;
  if (so_far.extra_ns + extra > LearnOptions::kMostOverhead * so_far.all_ns) return;
  found->other = other->way;
  trial_ = Trial{.contest = static_cast<std::size_t>(found - contests_.begin()), .other_first = found->samples % 2 == 0};
}

void Learner::took(Guide& guide, std::uint32_t trial, double ns) {
  if (!trial_ || !trial_->under_way || trial_->number != trial || !(ns > 0)) return;
  trial_->under_way = false;
  trial_->ns[trial_->step++] = ns;
  if (trial_->step < 4) return;
  const Trial done = *trial_;
  trial_.reset();
  judge(guide, done);
}

void Learner::judge(Guide& guide, const Trial& trial) {
  Contest& contest = contests_[trial.contest];
  const double* const other_ns = trial.other_first ? trial.ns : trial.ns + 2;
  const double best_ns = trial.other_first ? trial.ns[3] : trial.ns[1];
  best_took_ns_ += best_ns;
  best_expected_ns_ += trial.expected_ns;
  statistics_.extra_ns += std::max(0.0, other_ns[0] + other_ns[1] - 2 * best_ns) + 4 * kClockNs;
  const double log_ratio = std::clamp(std::log(other_ns[1] / best_ns), -kMostLog, kMostLog);
  contest.sum += log_ratio;
  contest.squares += log_ratio * log_ratio;
  const int n = ++contest.samples;
  const double mean = contest.sum / n;
  const double spread = std::sqrt(std::max(0.0, contest.squares / n - mean * mean)) + kSpread;
  if (n >= kMost || (n >= kLeast && std::abs(mean) > kSure * spread / std::sqrt(n))) settle(guide, contest, mean);
}

void Learner::settle(Guide& guide, Contest& contest, double mean) {
  const double n = contest.samples;
  const double spread = std::sqrt(std::max(0.0, contest.squares / n - mean * mean)) + kSpread;
  const bool better = mean < -std::max(kTie, kSure * spread / std::sqrt(n));
  ++statistics_.settled;
  if (better) ++statistics_.better;
  const Learned found{.pair = contest.pair,
                      .cold = contest.placement.cold,
                      .message_us = contest.peer->message_us(),
                      .first = contest.best,
                      .second = contest.other,
                      // Where it is not sure, the choice shall stay as it is.
                      .log_ratio = better ? mean : std::max(mean, kTie),
                      .samples = contest.samples};
  std::erase_if(learned_, [&](const Learned& old) { return old.same(found); });
  learned_.push_back(found);
  contest.over.push_back(contest.other);
  contest.sum = contest.squares = 0;
  contest.samples = 0;
  if (options_.learning == Learning::on) guide.learn(*contest.peer, found);
}

Learner::Statistics Learner::statistics() const {
  Statistics now = statistics_;
  now.all_ns = expected_ns_ * (best_expected_ns_ > 0 ? best_took_ns_ / best_expected_ns_ : 1.0);
  return now;
}

std::string Learner::Statistics::describe() const {
  return fmt::format(
      "learning: {} of {} transfers went another way, which cost {:.2f}% of the time of all; {} comparisons decided, {} for the other "
      "way\n",
      tried, transfers, all_ns > 0 ? 100 * extra_ns / all_ns : 0.0, settled, better);
}

}  // namespace lacuna::guide
