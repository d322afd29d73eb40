// trial: whether another way is faster than the way in use, found out by going both, now and then, for a bounded price.
// For guide and protocol.
//
//   transfers   u u u ... u │ o o │ u u │ u u u ... u │ u u │ o o │ u u u ...       u: the way in use, o: the other one
//                           └── pair ───┘             └── pair ───┘
//
// Each half of a pair is some transfers of one kind, one after the other: all but the last only bring the caches into
// the state that this way leaves them in, the last one is timed. Which half comes first changes with each pair, because
// the first one may have more to wait for.
//
// Who tries decides when a pair begins, which transfers are alike, and what the times say: PairedTrial, LogRatios and
// TrialBudget are what all have in common. They are used by guide::Contests (ways of a rendezvous, and those of a
// preloaded program), protocol::Transits (rings and direct copies of a stream) and protocol::Stores (stores of a
// chunk). protocol::Reuse is none of them: it times nothing, and adds up what is expected.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace lacuna::guide {

/// One pair after the other. It hides whose turn it is.
class PairedTrial {
 public:
  explicit PairedTrial(bool other_first) : other_first_(other_first) {}

  /// Whether a pair is begun.
  [[nodiscard]] bool under_way() const { return has_first_ || warm_ > 0; }
  /// Whether the next transfer of the pair goes the other way.
  [[nodiscard]] bool tries_other() const { return has_first_ != other_first_; }
  /// The next transfer of the pair goes. `warm`: how many of each half do not count. True: it counts, and took() is to
  /// be told its time.
  bool go(int warm) {
    if (++warm_ <= warm) return false;
    warm_ = 0;
    return true;
  }

  struct Pair {
    double used_ns = 0;  ///< of the way in use
    double other_ns = 0;
    /// Below 0: the other way is faster.
    [[nodiscard]] double log_ratio() const { return std::log(other_ns / used_ns); }
  };
  /// The time of a transfer that counts; the pair, once both halves are there.
  std::optional<Pair> took(double ns) {
    has_first_ = !has_first_;
    if (has_first_) {
      first_ns_ = ns;
      return std::nullopt;
    }
    const Pair pair = other_first_ ? Pair{.used_ns = ns, .other_ns = first_ns_} : Pair{.used_ns = first_ns_, .other_ns = ns};
    other_first_ = !other_first_;
    return pair;
  }
  /// The pair will not be completed. The next one begins with the same half.
  void break_off() {
    has_first_ = false;
    warm_ = 0;
  }

 private:
  bool other_first_;
  bool has_first_ = false;
  int warm_ = 0;  // transfers of this half that did not count
  double first_ns_ = 0;
};

/// What some pairs say together.
class LogRatios {
 public:
  static constexpr double kMost = 0.7;  ///< of one pair: in a pair that says more, another program had the CPU
  void add(double log_ratio) {
    const double bounded = std::clamp(log_ratio, -kMost, kMost);
    sum_ += bounded;
    below_ += bounded < 0 ? 1 : 0;
    squares_ += bounded * bounded;
    ++count_;
  }
  void clear() { *this = {}; }
  [[nodiscard]] int count() const { return count_; }
  [[nodiscard]] double sum() const { return sum_; }
  /// Of four pairs at least three say that the other way is faster: one in which a rank came late decides nothing.
  [[nodiscard]] bool agree_on_other() const { return 4 * below_ >= 3 * count_; }
  [[nodiscard]] double mean() const { return sum_ / count_; }
  /// Standard deviation.
  [[nodiscard]] double spread() const { return std::sqrt(std::max(0.0, squares_ / count_ - mean() * mean())); }

 private:
  double sum_ = 0, squares_ = 0;
  int count_ = 0, below_ = 0;
};

/// What trials may cost: half a percent of all transfers. Costs are in one unit: ns, or transfers of one kind.
class TrialBudget {
 public:
  static constexpr double kShare = 0.005;
  /// A trial took so much more than the same transfers the way in use would have taken.
  void spend(double extra) { spent_ += extra; }
  [[nodiscard]] double spent() const { return spent_; }
  /// Whether a trial that is expected to cost so much stays within the share of `all`.
  [[nodiscard]] bool allows(double extra, double all) const { return spent_ + extra <= kShare * all; }
  /// How much goes the way in use before the trials so far are paid for. They are forgotten then.
  double pause() { return std::exchange(spent_, 0) / kShare; }

 private:
  double spent_ = 0;
};

}  // namespace lacuna::guide
