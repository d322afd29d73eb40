// Medians and their bootstrap intervals.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/tier.hpp"
#include "tools/measure/measure.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

LACUNA_LEFT_OUT(thread, "MedianOf.*");
LACUNA_TIER(gate, "MedianOf.HasTheIntervalOfManyResamples");

using measure::Median;

TEST(MedianOf, IsTheMiddle) {
  EXPECT_DOUBLE_EQ(measure::median_of({4, 2}).value, 3);
  EXPECT_DOUBLE_EQ(measure::median_of({9, 1, 5}).value, 5);
  EXPECT_DOUBLE_EQ(measure::median_of({7}).level, 0);
  EXPECT_DOUBLE_EQ(measure::median_of({}).value, 0);
}

TEST(MedianOf, SaysHowLittleFewValuesMean) {
  EXPECT_DOUBLE_EQ(measure::median_of({1, 2, 3, 4, 5}).level, 1 - 2 / 32.0);
  EXPECT_DOUBLE_EQ(measure::median_of({1, 2, 3, 4, 5}).low, 1);
  EXPECT_DOUBLE_EQ(measure::median_of({1, 2, 3, 4, 5, 6}).level, 0.95);
}

// Against what it stands for: the 2.5 % and 97.5 % points of the medians of many resamples.
TEST(MedianOf, HasTheIntervalOfManyResamples) {
  std::mt19937_64 random(7);
  for (const int n : {6, 7, 10, 25, 101}) {
    std::vector<double> values;
    std::lognormal_distribution<double> noise(0, 0.3);
    for (int i = 0; i < n; ++i) values.push_back(noise(random));
    std::vector<double> medians;
    std::uniform_int_distribution<std::size_t> pick(0, values.size() - 1);
    for (int resample = 0; resample < 20000; ++resample) {
      std::vector<double> drawn;
      for (int i = 0; i < n; ++i) drawn.push_back(values[pick(random)]);
      std::ranges::sort(drawn);
      medians.push_back(drawn[drawn.size() / 2]);  // the upper one of an even number
    }
    std::ranges::sort(medians);
    std::ranges::sort(values);
    const auto rank = [&](double x) { return std::ranges::lower_bound(values, x) - values.begin(); };
    const Median median = measure::median_of(values);
    EXPECT_LE(std::abs(rank(median.low) - rank(medians[500])), 1) << n;
    EXPECT_LE(std::abs(rank(median.high) - rank(medians[19500])), 1) << n;
  }
}

// What the level promises, for noise that is skewed, has a heavy tail, and jumps between two states.
TEST(MedianOf, CoversTheTrueMedian) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> skewed(0, 1);
  std::cauchy_distribution<double> heavy(1, 0.2);
  std::uniform_real_distribution<double> even(0, 1);
  for (const int n : {6, 9, 20, 60}) {
    for (int kind = 0; kind < 2; ++kind) {
      int covered = 0;
      constexpr int kTrials = 3000;
      for (int trial = 0; trial < kTrials; ++trial) {
        std::vector<double> values;
        for (int i = 0; i < n; ++i) values.push_back(kind == 0 ? skewed(random) : heavy(random));
        const Median median = measure::median_of(std::move(values));
        covered += median.low <= 1 && 1 <= median.high ? 1 : 0;  // both have their median at 1
      }
      EXPECT_GT(covered, kTrials * 92 / 100) << n << " " << kind;
    }
  }
}

TEST(Fault, IsReadOrRefused) {
  EXPECT_EQ(measure::fault_from_text("slow:sgrs:2.5")->slower, 2.5);
  EXPECT_EQ(measure::fault_from_text("corrupt:by_hand_memcpy:7")->corrupt_from, 7);
  EXPECT_EQ(measure::fault_from_text("corrupt:pack")->corrupt_from, 0);
  EXPECT_TRUE(measure::fault_from_text("")->method.empty());
  for (const char* wrong :
       {"slow", "slow:", "slow:sgrs", "slow:sgrs:0.5", "slow:sgrs:x", "slow:nobody:2", "corrupt:sgrs:-1", "corrupt:sgrs:1x", "x:sgrs:1"})
    EXPECT_EQ(measure::fault_from_text(wrong).error().code, base::Code::invalid_argument) << wrong;
}

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
