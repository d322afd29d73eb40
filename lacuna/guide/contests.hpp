// contests: which of several ways is faster, found out two at a time while a program runs. For guide.
//
//   transfers   c c c c c c c ... c | o o c c | c c c ...      c: the way that is chosen, o: the best beside it
//                                     └──┴──┴──── each twice, the second one is timed; either is first, in turn
//
// One contest is some such pairs (trial.hpp) of one subject, until one way is faster beyond doubt, or so many pairs
// have not shown it. Then the next best way is tried. A subject with nothing left to try is passed over for a while.
//
// guide::Learner has pairs of layouts as subjects, and methods as ways; guide::MpiLearner the data of an MPI's calls,
// and the ways of a preloaded program. It hides which subject is tried when, and what trials have cost.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/guide/trial.hpp"

namespace lacuna::guide {

/// Subjects and ways can be compared. Belongs to one thread at a time.
template <class Subject, class Way>
class Contests {
 public:
  /// `one_in`: of so many transfers one goes another way. `corrects`: what is found out changes what is chosen.
  Contests(int one_in, bool corrects) : one_in_(std::max(1, one_in)), corrects_(corrects) { rest(); }

  /// A transfer. True: it goes as chosen, as most do. Else next() says how it goes.
  bool rests() {
    if (running_ || until_ <= 1) return false;
    --until_;
    ++transfers_;
    return true;
  }
  struct Beside {
    Way way;
    double ns = 0;  ///< expected
  };
  struct Trial {
    std::size_t at = 0;  ///< of the subject among those that were ever tried
    Way way;
    std::uint32_t number = 0;  ///< for took()
  };
  /// How a transfer goes; nothing: as chosen. `best`: that way, expected to take `best_ns`. `all_ns`: the time of all
  /// transfers. `beside(ways)`: the best but for these, if there is one.
  template <class BestBeside>
  std::optional<Trial> next(const Subject& subject, const Way& best, double best_ns, double all_ns, const BestBeside& beside) {
    ++transfers_;
    if (running_) {
      if (running_->under_way || !(contests_[running_->at].subject == subject)) {
        if (++running_->passed > kPatience * one_in_) give_up(0);
        return std::nullopt;
      }
    } else {
      if (--until_ > 0) return std::nullopt;
      rest();
      begin(subject, best, best_ns, all_ns, beside);
      if (!running_) return std::nullopt;
    }
    Contest& contest = contests_[running_->at];
    running_->under_way = true;
    if (++numbers_ == 0) ++numbers_;
    running_->number = numbers_;
    running_->expected_ns = best_ns;
    const bool tries_other = contest.pairs.tries_other();
    if (tries_other) ++tried_;
    if (tries_other) ++running_->others;
    running_->counts = contest.pairs.go(kWarm);
    return Trial{.at = running_->at, .way = tries_other ? contest.other : contest.best, .number = numbers_};
  }
  [[nodiscard]] bool running() const { return running_.has_value(); }

  struct Decided {
    std::size_t at = 0;
    Way best, other;
    double log_ratio = 0;  ///< of the other's time over the best one's; below 0: the other one is better, surely
    int samples = 0;       ///< pairs
  };
  /// What the transfer of a trial took, in the same way for all. Something: its contest is decided.
  std::optional<Decided> took(std::uint32_t number, double ns) {
    if (!running_ || !running_->under_way || running_->number != number || !(ns > 0)) return std::nullopt;
    running_->under_way = false;
    PairedTrial& pairs = contests_[running_->at].pairs;
    if (pairs.tries_other()) running_->other_ns += ns;
    if (!running_->counts) return std::nullopt;
    const std::optional<PairedTrial::Pair> pair = pairs.took(ns);
    if (!pair) return std::nullopt;
    const Running done = *running_;
    running_.reset();
    return judge(done, *pair);
  }
  /// The pair under way will not be told of. What went another way for it has cost what was expected. The subject is
  /// passed over so many times.
  void give_up(int rests) {
    if (!running_) return;
    Contest& tried = contests_[running_->at];
    tried.pairs.break_off();
    tried.rests = std::max(tried.rests, rests);
    budget_.spend(running_->others * running_->extra_ns);
    running_.reset();
  }

  [[nodiscard]] std::size_t size() const { return contests_.size(); }
  [[nodiscard]] const Subject& subject(std::size_t at) const { return contests_[at].subject; }
  [[nodiscard]] std::int64_t transfers() const { return transfers_; }
  [[nodiscard]] std::int64_t tried() const { return tried_; }      ///< that went another way
  [[nodiscard]] std::int64_t settled() const { return settled_; }  ///< contests,
  [[nodiscard]] std::int64_t better() const { return better_; }    ///< in favour of the other way
  [[nodiscard]] double extra_ns() const { return budget_.spent(); }
  /// What the best ways of trials took, over what was expected.
  [[nodiscard]] double slowness() const { return best_expected_ns_ > 0 ? best_took_ns_ / best_expected_ns_ : 1; }
  static constexpr int kRests = 64;  ///< times that a subject with nothing left to try is passed over

 private:
  static constexpr std::size_t kMost = 1024;
  static constexpr int kLeastPairs = 4, kMostPairs = 16;
  static constexpr double kSure = 2.5;        // standard errors
  static constexpr double kSpread = 0.02;     // pairs that agree by chance are not surer than this
  static constexpr int kWarm = 1;             // transfers of each half of a pair that do not count
  static constexpr double kTie = 0.01;        // a way that is better by less is none
  static constexpr double kWorthATry = 1.5;   // times what the best is expected to take
  static constexpr int kPatience = 64;        // transfers of other subjects, times one_in
  static constexpr double kClockNs = 100;     // to time one of a trial's transfers
  static constexpr int kEachWay = kWarm + 1;  // transfers of a pair

  struct Contest {
    Subject subject;
    Way best{}, other{};
    std::vector<Way> over{};  // with these it is decided
    PairedTrial pairs{true};
    LogRatios ratios{};
    int rests = 0;
    void restart(const Way& now_best) {
      best = now_best;
      over = {now_best};
      rests = 0;
      forget_pairs();
    }
    void forget_pairs() {
      pairs = PairedTrial(true);
      ratios.clear();
    }
  };
  // The pair of transfers that is under way.
  struct Running {
    std::size_t at = 0;
    double extra_ns = 0;  // of each that goes the other way, as expected
    std::uint32_t number = 0;
    bool under_way = false;
    bool counts = false;     // the transfer that is under way
    int passed = 0;          // transfers of other subjects meanwhile
    int others = 0;          // that went the other way,
    double other_ns = 0;     // and what they took
    double expected_ns = 0;  // of the best way
  };

  // xorshift64*. The time to the next trial varies, so that a program that repeats itself has all its subjects tried.
  std::uint64_t random() {
    random_ ^= random_ >> 12;
    random_ ^= random_ << 25;
    random_ ^= random_ >> 27;
    return random_ * 0x2545f4914f6cdd1d;
  }
  // Two transfers of a trial go another way.
  void rest() {
    const auto one_in = static_cast<std::uint64_t>(one_in_);
    until_ = static_cast<std::int64_t>(one_in * 3 / 2 + random() % (one_in + 1));
  }

  template <class BestBeside>
  void begin(const Subject& subject, const Way& best, double best_ns, double all_ns, const BestBeside& beside) {
    auto found = std::ranges::find(contests_, subject, &Contest::subject);
    if (found == contests_.end()) {
      if (contests_.size() == kMost) return;
      found = contests_.insert(found, {.subject = subject});
      found->restart(best);
    }
    if (!(found->best == best) && corrects_) {
      if (std::ranges::find(found->over, best) == found->over.end()) found->restart(best);
      found->best = best;
    }
    found->rests = std::max(0, found->rests - 1);
    if (found->rests > 0) return;
    const std::optional<Beside> other = beside(found->over);
    if (!other || other->ns > kWorthATry * best_ns) {
      if (found->over.size() > 1) found->restart(best);
      found->rests = kRests;
      return;
    }
    if (!(other->way == found->other)) found->forget_pairs();  // what was learned nearby may have changed the order
    const double extra = std::max(0.0, other->ns - best_ns);
    if (!budget_.allows(kEachWay * (extra + 2 * kClockNs), all_ns)) return;
    found->other = other->way;
    running_ = Running{.at = static_cast<std::size_t>(found - contests_.begin()), .extra_ns = extra};
  }

  std::optional<Decided> judge(const Running& done, const PairedTrial::Pair& pair) {
    Contest& contest = contests_[done.at];
    best_took_ns_ += pair.used_ns;
    best_expected_ns_ += done.expected_ns;
    budget_.spend(std::max(0.0, done.other_ns - kEachWay * pair.used_ns) + 2 * kEachWay * kClockNs);
    LogRatios& ratios = contest.ratios;
    ratios.add(pair.log_ratio());
    const int n = ratios.count();
    const double doubt = kSure * (ratios.spread() + kSpread) / std::sqrt(n), mean = ratios.mean();
    if (n < kMostPairs && (n < kLeastPairs || std::abs(mean) <= doubt)) return std::nullopt;
    const bool better = mean < -std::max(kTie, doubt);
    ++settled_;
    if (better) ++better_;
    // Where it is not sure, the choice shall stay as it is.
    const Decided decided{
        .at = done.at, .best = contest.best, .other = contest.other, .log_ratio = better ? mean : std::max(mean, kTie), .samples = n};
    contest.over.push_back(contest.other);
    contest.forget_pairs();
    return decided;
  }

  int one_in_;
  bool corrects_;
  std::uint64_t random_ = 1;
  std::int64_t until_ = 0;  // transfers
  std::uint32_t numbers_ = 0;
  std::vector<Contest> contests_;
  std::optional<Running> running_;
  TrialBudget budget_;  // ns
  std::int64_t transfers_ = 0, tried_ = 0, settled_ = 0, better_ = 0;
  double best_expected_ns_ = 0, best_took_ns_ = 0;
};

}  // namespace lacuna::guide
