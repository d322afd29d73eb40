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
constexpr int kLeast = 4, kMost = 16;  // pairs of a comparison
constexpr double kSure = 2.5;          // standard errors
constexpr double kSpread = 0.02;       // pairs that agree by chance are not surer than this
constexpr int kWarm = 1;               // transfers of each half of a pair that do not count
constexpr double kTie = 0.01;          // a way that is better by less is none
constexpr double kWorthATry = 1.5;     // times what the best is expected to take
constexpr int kPatience = 64;          // transfers of other pairs, times one_in
constexpr int kRests = 64;             // times that a pair with nothing left to try is passed over
constexpr double kClockNs = 100;       // to time one of a trial's transfers

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

bool Learner::Contest::of(const Layout& from, const Layout& to, const PeerClass& whose, const Placement& where) const {
  return src == from.digest() && dst == to.digest() && peer == &whose && placement == where;
}

void Learner::Contest::restart(const Way& now_best) {
  best = now_best;
  over = {now_best};
  rests = 0;
  forget_pairs();
}

void Learner::Contest::forget_pairs() {
  pairs = PairedTrial(true);
  ratios.clear();
}

// xorshift64*. The time to the next trial varies, so that a program that repeats itself has all its pairs tried.
std::uint64_t Learner::random() {
  random_ ^= random_ >> 12;
  random_ ^= random_ << 25;
  random_ ^= random_ >> 27;
  return random_ * 0x2545f4914f6cdd1d;
}

void Learner::rest() {
  // Two transfers of a trial go another way
  const auto one_in = static_cast<std::uint64_t>(std::max(1, options_.one_in));
  until_ = static_cast<std::int64_t>(one_in * 3 / 2 + random() % (one_in + 1));
}

Result<Learner::Chosen> Learner::choose(Guide& guide, const Layout& src, const Layout& dst, const PeerClass& peer,
                                        const Placement& placement) {
  Choice choice = LACUNA_TRY(guide.choose(src, dst, peer, placement));
  if (options_.learning == Learning::off || placement.objective != Objective::latency) return Chosen{choice};
  ++statistics_.transfers;
  expected_ns_ += choice.plan.latency_ns;
  if (running_) {
    Contest& tried = contests_[running_->contest];
    if (running_->under_way || !tried.of(src, dst, peer, placement)) {
      if (++running_->passed > kPatience * options_.one_in) {
        tried.pairs.break_off();
        running_.reset();
      }
      return Chosen{choice};
    }
  } else if (--until_ > 0) {
    return Chosen{choice};
  } else {
    rest();
    begin(guide, choice, src, dst, peer, placement);
    if (!running_) return Chosen{choice};
  }
  Contest& contest = contests_[running_->contest];
  running_->under_way = true;
  if (++numbers_ == 0) ++numbers_;
  running_->number = numbers_;
  running_->expected_ns = choice.plan.latency_ns;
  choice.way = contest.pairs.tries_other() ? contest.other : contest.best;
  if (contest.pairs.tries_other()) ++statistics_.tried;
  running_->counts = contest.pairs.go(kWarm);
  return Chosen{choice, running_->number};
}

void Learner::begin(const Guide& guide, const Choice& choice, const Layout& src, const Layout& dst, const PeerClass& peer,
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
  if (other->way != found->other) found->forget_pairs();  // what was learned nearby may have changed the order
  const double extra = 2 * std::max(0.0, other->plan.latency_ns - choice.plan.latency_ns) + 4 * kClockNs;
  if (!budget_.allows(extra, statistics().all_ns)) return;
  found->other = other->way;
  running_ = Running{.contest = static_cast<std::size_t>(found - contests_.begin())};
}

void Learner::took(Guide& guide, std::uint32_t trial, double ns) {
  if (!running_ || !running_->under_way || running_->number != trial || !(ns > 0)) return;
  running_->under_way = false;
  PairedTrial& pairs = contests_[running_->contest].pairs;
  if (pairs.tries_other()) running_->other_ns += ns;
  if (!running_->counts) return;
  const std::optional<PairedTrial::Pair> pair = pairs.took(ns);
  if (!pair) return;
  const Running done = *running_;
  running_.reset();
  judge(guide, done, *pair);
}

void Learner::judge(Guide& guide, const Running& done, const PairedTrial::Pair& pair) {
  Contest& contest = contests_[done.contest];
  best_took_ns_ += pair.used_ns;
  best_expected_ns_ += done.expected_ns;
  constexpr int kEachWay = kWarm + 1;
  budget_.spend(std::max(0.0, done.other_ns - kEachWay * pair.used_ns) + 2 * kEachWay * kClockNs);
  LogRatios& ratios = contest.ratios;
  ratios.add(pair.log_ratio());
  const int n = ratios.count();
  const double spread = ratios.spread() + kSpread;
  if (n >= kMost || (n >= kLeast && std::abs(ratios.mean()) > kSure * spread / std::sqrt(n))) settle(guide, contest, ratios.mean());
}

void Learner::settle(Guide& guide, Contest& contest, double mean) {
  const int n = contest.ratios.count();
  const double spread = contest.ratios.spread() + kSpread;
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
                      .samples = n};
  std::erase_if(learned_, [&](const Learned& old) { return old.same(found); });
  learned_.push_back(found);
  contest.over.push_back(contest.other);
  contest.forget_pairs();
  if (options_.learning == Learning::on) guide.learn(*contest.peer, found);
}

Learner::Statistics Learner::statistics() const {
  Statistics now = statistics_;
  now.extra_ns = budget_.spent();
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
