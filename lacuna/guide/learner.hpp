// learner: what a running program does to correct its choices of methods. For protocol.
//
//   choose ── Guide: a choice ── Contests: now and then another way ──▶ transfer ──▶ took ── decided ──▶ Guide::learn
//
// contests.hpp says what is tried when.
#pragma once

#include <string>
#include <vector>

#include "lacuna/guide/contests.hpp"
#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

/// Chooses by a Guide, but lets one transfer in so many go the best way beside the chosen one, times it and one that
/// goes the chosen way, and tells the Guide. What a trial costs is kept within bounds by adding it up. Belongs to one
/// thread at a time.
class Learner {
 public:
  explicit Learner(LearnOptions options) : options_(options), contests_(options.one_in, options.learning == Learning::on) {}

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
  // What is compared of: a pair of layouts, where it goes.
  struct Subject {
    layout::Digest src, dst;
    Placement placement;
    const PeerClass* peer = nullptr;
    bool operator==(const Subject&) const = default;
  };

  LearnOptions options_;
  Contests<Subject, Way> contests_;
  std::vector<layout::PairOutline> pairs_;  // of the contests' subjects
  std::int64_t transfers_ = 0;
  double expected_ns_ = 0;
  std::vector<Learned> learned_;
};

}  // namespace lacuna::guide
