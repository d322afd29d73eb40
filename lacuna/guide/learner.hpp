// learner: what a running program does to correct its choices. For guide and protocol.
//
//   transfers   c c c c c c c ... c | o o c c | c c c ...      c: the way that the guide chooses, o: the best beside it
//                                     └──┴──┴──── each twice, the second one is timed; either is first, in turn
//
// One comparison is some such trials of one pair of layouts, until one way is faster beyond doubt, or so many trials
// have not shown it. Then the guide is told (Guide::learn), and the next best way is tried. A pair with nothing left to
// try is passed over for a while.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/guide/trial.hpp"

namespace lacuna::guide {

/// Chooses by a Guide, but lets one transfer in so many go the best way beside the chosen one, times it and one that
/// goes the chosen way, and tells the Guide. What a trial costs is kept within bounds by adding it up. Belongs to one
/// thread at a time.
class Learner {
 public:
  explicit Learner(LearnOptions options) : options_(options) { rest(); }

  struct Chosen {
    Choice choice;
    std::uint32_t trial = 0;  ///< not 0: took() is to be told what it took
  };
  /// Errors: as Guide::choose().
  Result<Chosen> choose(Guide& guide, const Layout& src, const Layout& dst, const PeerClass& peer, const Placement& placement);
  /// What the transfer of a trial took, in the same way for all. One that is never told of is given up after a while.
  void took(Guide& guide, std::uint32_t trial, double ns);

  struct Statistics {
    std::int64_t transfers = 0, tried = 0;  ///< tried: those that went another way for it
    /// Of all transfers, as expected, and scaled by how long trials' best ways really took
    double all_ns = 0;
    double extra_ns = 0;       ///< that those tried took more than the best ways
    std::int64_t settled = 0;  ///< comparisons of two ways that are decided,
    std::int64_t better = 0;   ///< in favour of the other one
    [[nodiscard]] std::string describe() const;
  };
  [[nodiscard]] Statistics statistics() const;
  /// What was found out: the comparisons that are decided.
  [[nodiscard]] std::span<const Learned> learned() const { return learned_; }

 private:
  // A comparison of two ways for one pair.
  struct Contest {
    layout::Digest src, dst;
    Placement placement;
    const PeerClass* peer = nullptr;
    layout::PairOutline pair;
    Way best, other;
    std::vector<Way> over;  // with these it is decided
    PairedTrial pairs{true};
    LogRatios ratios;
    int rests = 0;  // times that it is passed over: nothing is left to be found out
    [[nodiscard]] bool of(const Layout& from, const Layout& to, const PeerClass& whose, const Placement& where) const;
    void restart(const Way& now_best);
    void forget_pairs();
  };
  // The pair of transfers that is under way.
  struct Running {
    std::size_t contest = 0;
    std::uint32_t number = 0;
    bool under_way = false;
    bool counts = false;     // the transfer that is under way
    int passed = 0;          // transfers of other pairs of layouts meanwhile
    double other_ns = 0;     // of all that went the other way
    double expected_ns = 0;  // of the best way
  };
  void rest();
  std::uint64_t random();
  void begin(const Guide& guide, const Choice& choice, const Layout& src, const Layout& dst, const PeerClass& peer,
             const Placement& placement);
  void judge(Guide& guide, const Running& done, const PairedTrial::Pair& pair);
  void settle(Guide& guide, Contest& contest, double mean);

  LearnOptions options_;
  std::uint64_t random_ = 1;
  std::int64_t until_ = 0;  // transfers
  std::uint32_t numbers_ = 0;
  std::vector<Contest> contests_;
  std::optional<Running> running_;
  TrialBudget budget_;  // ns
  Statistics statistics_;
  double expected_ns_ = 0, best_expected_ns_ = 0, best_took_ns_ = 0;
  std::vector<Learned> learned_;
};

}  // namespace lacuna::guide
