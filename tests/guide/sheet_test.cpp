// Sheets against a naive reading of them: cells are what was measured, and what lies between is linear in the number of
// runs, then in the logarithm of the bytes.
#include "lacuna/guide/sheet.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/support/random.hpp"

namespace lacuna::test {
namespace LACUNA_TEST_FILE {

using guide::Axes;
using guide::Piece;
using guide::Sheet;
using guide::SheetPlace;
using support::Random;

struct Drawn {
  std::vector<std::int64_t> bytes, runs;
  std::int64_t fewest_runs = 1;
  std::vector<double> ns;
  [[nodiscard]] Axes axes() const { return {.bytes = bytes, .runs = runs, .fewest_runs = fewest_runs}; }
};

std::vector<std::int64_t> axis(Random& random, std::size_t count, std::int64_t from, std::int64_t most_times) {
  std::vector<std::int64_t> made;
  for (std::int64_t value = from + random.below(8); made.size() < count; value = value * random.between(2, most_times) + random.below(7))
    made.push_back(value);
  return made;
}

Drawn drawn(Random& random) {
  Drawn made{.fewest_runs = random.between(1, 2)};
  made.runs = axis(random, static_cast<std::size_t>(random.between(2, 5)), 1, 8);
  made.bytes = axis(random, static_cast<std::size_t>(random.between(2, 10)), made.fewest_runs * (made.runs.front() + 1), 6);
  for (std::size_t i = 0; i < made.axes().size(); ++i)
    made.ns.push_back(made.axes().has_cell(i) ? static_cast<double>(static_cast<float>(random.between(50, 1'000'000))) : 0);
  return made;
}

// The cell of a size and a run length, or of the longest run that has one.
double cell(const Drawn& sheet, std::size_t bytes, std::size_t run) {
  const double found = sheet.ns[bytes * sheet.runs.size() + run];
  return found > 0 || run == 0 ? found : cell(sheet, bytes, run - 1);
}

// Piecewise linear between powers of two, as the sheet has it.
double log2_of(double value) {
  const double whole = std::floor(std::log2(value));
  return whole + value / std::exp2(whole) - 1;
}

double naive_row(const Drawn& sheet, std::size_t row, double run) {
  run = std::clamp(run, static_cast<double>(sheet.runs.front()), static_cast<double>(sheet.runs.back()));
  for (std::size_t i = 0; i + 1 < sheet.runs.size(); ++i) {
    const auto low = static_cast<double>(sheet.runs[i]), high = static_cast<double>(sheet.runs[i + 1]);
    if (run < low || run > high) continue;
    const double slope = (cell(sheet, row, i) - cell(sheet, row, i + 1)) / (1 / low - 1 / high);  // for each run
    return cell(sheet, row, i + 1) + slope * (1 / run - 1 / high);
  }
  return 0;
}

double naive(const Drawn& sheet, const Piece& piece) {
  const auto run = static_cast<double>(piece.run);
  if (piece.bytes <= sheet.bytes.front()) return naive_row(sheet, 0, run);
  const double log = log2_of(static_cast<double>(piece.bytes));
  for (std::size_t i = 0; i + 1 < sheet.bytes.size(); ++i) {
    if (piece.bytes > sheet.bytes[i + 1]) continue;
    const double low = log2_of(static_cast<double>(sheet.bytes[i])), high = log2_of(static_cast<double>(sheet.bytes[i + 1]));
    return std::pow(naive_row(sheet, i, run), (high - log) / (high - low)) *
           std::pow(naive_row(sheet, i + 1, run), (log - low) / (high - low));
  }
  return naive_row(sheet, sheet.bytes.size() - 1, run) * std::exp2(log - log2_of(static_cast<double>(sheet.bytes.back())));
}

TEST(Sheets, SayWhatANaiveReadingSays) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const Drawn made = drawn(random);
    const Sheet sheet(made.ns);
    ASSERT_TRUE(sheet.measured());
    for (int k = 0; k < 40; ++k) {
      const Piece piece{.bytes = 1 + random.scaled(4 * made.bytes.back()), .run = 1 + random.scaled(4 * made.runs.back())};
      const double expected = naive(made, piece);
      EXPECT_NEAR(std::exp2(sheet.log_ns(SheetPlace(made.axes(), piece))) / expected, 1, 1e-4)
          << "round " << round << ": " << piece.bytes << " bytes in runs of " << piece.run;
    }
  }
}

TEST(Sheets, HaveTheirCells) {
  Random random(6);
  for (int round = 0; round < 100; ++round) {
    const Drawn made = drawn(random);
    const Sheet sheet(made.ns);
    for (std::size_t i = 0; i < made.ns.size(); ++i) {
      if (made.ns[i] == 0) continue;
      const Piece piece{.bytes = made.bytes[i / made.runs.size()], .run = made.runs[i % made.runs.size()]};
      EXPECT_NEAR(std::exp2(sheet.log_ns(SheetPlace(made.axes(), piece))) / made.ns[i], 1, 1e-4);
    }
  }
}

// What an MPI's short messages take, and the first long ones. On which side a size between them is, is not known.
TEST(Sheets, TakeAStepToBeAtTheLargerOfTwoSizesThatAreClose) {
  const std::vector<std::int64_t> bytes{1024, 3072, 4096, 16384}, runs{64, 512};
  const std::vector<double> ns{400, 300, 700, 500, 3000, 1000, 9000, 5000};
  const Sheet sheet(ns);
  const auto of = [&](std::int64_t size, std::int64_t run) {
    return std::exp2(sheet.log_ns(SheetPlace({.bytes = bytes, .runs = runs}, {.bytes = size, .run = run})));
  };
  EXPECT_NEAR(of(3072, 64), 700, 0.1);
  EXPECT_NEAR(of(3944, 64), 700 * 3944.0 / 3072, 50);  // logarithms are piecewise linear
  EXPECT_NEAR(of(4095, 512), 500 * 4095.0 / 3072, 50);
  EXPECT_NEAR(of(4096, 64), 3000, 1);
  EXPECT_NEAR(of(8192, 64), std::sqrt(3000.0 * 9000), 5);  // sizes that are further apart enclose none
}

TEST(Sheets, AreNotMeasuredUntilTheyHaveTimes) { EXPECT_FALSE(Sheet().measured()); }

}  // namespace LACUNA_TEST_FILE
}  // namespace lacuna::test
