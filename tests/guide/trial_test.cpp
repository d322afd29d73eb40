// What all that try another way now and then have in common: whose turn it is, what pairs say together, and what trials
// may cost.
#include "lacuna/guide/trial.hpp"

#include <gtest/gtest.h>

#include <string>

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::LogRatios;
using guide::PairedTrial;
using guide::TrialBudget;

// The ways of some pairs, by letters, in capitals where the transfer counts; "|" after each pair. The way in use takes
// 100 ns, the other one 150.
std::string turns(PairedTrial& trial, int pairs, int warm) {
  std::string said;
  while (pairs > 0) {
    const bool other = trial.tries_other();
    const bool counts = trial.go(warm);
    said += counts ? (other ? 'O' : 'U') : (other ? 'o' : 'u');
    EXPECT_TRUE(trial.under_way() || counts);
    if (!counts) continue;
    const auto pair = trial.took(other ? 150 : 100);
    if (!pair) continue;
    EXPECT_EQ(pair->used_ns, 100);
    EXPECT_EQ(pair->other_ns, 150);
    EXPECT_FALSE(trial.under_way());
    said += '|';
    --pairs;
  }
  return said;
}

TEST(PairedTrial, TakesTurns) {
  PairedTrial used_first(false), other_first(true);
  EXPECT_EQ(turns(used_first, 3, 0), "UO|OU|UO|");
  EXPECT_EQ(turns(other_first, 2, 1), "oOuU|uUoO|");
  EXPECT_EQ(turns(used_first, 1, 2), "ooOuuU|");
}

TEST(PairedTrial, BeginsAgainWithTheSameHalf) {
  for (const int transfers : {1, 2, 3, 4, 5}) {  // of a pair of six
    PairedTrial trial(true);
    for (int i = 0; i < transfers; ++i) {
      if (!trial.go(2)) continue;
      EXPECT_FALSE(trial.took(1));
    }
    EXPECT_TRUE(trial.under_way());
    trial.break_off();
    EXPECT_FALSE(trial.under_way());
    EXPECT_EQ(turns(trial, 1, 0), "OU|") << transfers;
  }
}

TEST(LogRatios, TellTheMeanAndHowFarPairsAreApart) {
  LogRatios ratios;
  for (const double one : {0.1, 0.3, -0.1, 0.1}) ratios.add(one);
  EXPECT_EQ(ratios.count(), 4);
  EXPECT_DOUBLE_EQ(ratios.sum(), 0.4);
  EXPECT_DOUBLE_EQ(ratios.mean(), 0.1);
  EXPECT_NEAR(ratios.spread(), std::sqrt(0.02), 1e-12);
  ratios.clear();
  EXPECT_EQ(ratios.count(), 0);
  for (const double one : {-40.0, 40.0, 0.7}) ratios.add(one);  // one pair says no more than a factor of two
  EXPECT_DOUBLE_EQ(ratios.sum(), LogRatios::kMost);
  EXPECT_DOUBLE_EQ((PairedTrial::Pair{.used_ns = 200, .other_ns = 100}.log_ratio()), -std::log(2));
}

// Whatever the other way takes, trials cost no more than their share: by pauses that pay for them, and by waiting until
// the share allows one.
TEST(TrialBudget, IsHalfAPercent) {
  EXPECT_EQ(TrialBudget::kShare, 0.005);
  for (const double excess : {0.01, 0.3, 1.0, 50.0}) {
    TrialBudget pays, waits;
    double extra = 0, next = 0;
    constexpr int kTransfers = 1'000'000;
    for (int i = 0; i < kTransfers; ++i) {
      if (i >= next) {
        pays.spend(excess);
        extra += excess;
        next = i + pays.pause();
      }
      if (waits.allows(excess, i)) waits.spend(excess);
    }
    EXPECT_LE(extra, TrialBudget::kShare * kTransfers + excess) << excess;
    EXPECT_GE(extra, 0.9 * TrialBudget::kShare * kTransfers) << excess;
    EXPECT_LE(waits.spent(), TrialBudget::kShare * kTransfers) << excess;
    EXPECT_GE(waits.spent(), 0.9 * TrialBudget::kShare * kTransfers) << excess;
    EXPECT_EQ(pays.spent(), 0);
  }
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
