// The checks of examples/fft2d find what is wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

#include "examples/fft2d/check.hpp"
#include "examples/fft2d/transpose.hpp"

using namespace examples::fft2d;

namespace LACUNA_TEST_FILE {

constexpr int kN = 12;
constexpr std::size_t kFive = std::size_t{5} * kN;  // rows
constexpr std::uint64_t kSeed = 3;

std::vector<Complex> matrix(int n) {
  std::vector<Complex> all;
  for (int r = 0; r < n; ++r)
    for (int c = 0; c < n; ++c) all.push_back(input(kSeed, n, r, c));
  return all;
}

std::vector<Complex> transposed(const std::vector<Complex>& of, int n) {
  std::vector<Complex> all(of.size());
  for (std::size_t i = 0; i < of.size(); ++i)
    all[i % static_cast<std::size_t>(n) * static_cast<std::size_t>(n) + i / static_cast<std::size_t>(n)] = of[i];
  return all;
}

std::uint64_t sum(std::span<const Complex> block, int first, Order order) { return fingerprint(block, first, kN, order); }

TEST(Fingerprint, IsTheSameOfAMatrixAndOfItsTranspose) {
  const std::vector<Complex> all = matrix(kN);
  EXPECT_EQ(sum(all, 0, Order::rows), sum(transposed(all, kN), 0, Order::transposed));
}

TEST(Fingerprint, IsASumOverBlocks) {
  const std::vector<Complex> all = matrix(kN);
  const std::span<const Complex> span(all);
  EXPECT_EQ(sum(span, 0, Order::rows), sum(span.first(kFive), 0, Order::rows) + sum(span.subspan(kFive), 5, Order::rows));
}

TEST(Fingerprint, FindsEverySwapOfNeighbours) {
  const std::vector<Complex> right = matrix(kN);
  for (std::size_t i = 1; i < right.size(); ++i) {
    std::vector<Complex> wrong = right;
    std::swap(wrong[i - 1], wrong[i]);
    ASSERT_NE(sum(right, 0, Order::rows), sum(wrong, 0, Order::rows)) << i;
  }
}

TEST(Fingerprint, FindsAChangeOfOneBitAndAnElementThatWasNotWritten) {
  const std::vector<Complex> right = matrix(kN);
  for (const Complex spoiled : {Complex(right[7].real(), std::nextafter(right[7].imag(), 1.0)), Complex(right[7].imag(), right[7].real()),
                                Complex(std::numeric_limits<double>::quiet_NaN(), 0)}) {
    std::vector<Complex> wrong = right;
    wrong[7] = spoiled;
    EXPECT_NE(sum(right, 0, Order::rows), sum(wrong, 0, Order::rows));
  }
}

TEST(Fingerprint, FindsAMatrixThatWasNotTransposed) {
  const std::vector<Complex> all = matrix(kN);
  EXPECT_NE(sum(all, 0, Order::rows), sum(all, 0, Order::transposed));
}

TEST(TransformedRow, IsTheDefinitionsSum) {
  for (const int u : {0, 1, 5}) {
    const std::vector<Complex> row = transformed_row(kSeed, kN, u);
    for (int v = 0; v < kN; ++v) {
      Complex wanted;
      for (int r = 0; r < kN; ++r)
        for (int c = 0; c < kN; ++c) wanted += input(kSeed, kN, r, c) * std::polar(1.0, -2 * std::numbers::pi * (u * r + v * c) / kN);
      EXPECT_LT(std::abs(row[static_cast<std::size_t>(v)] - wanted), 1e-12) << u << " " << v;
    }
  }
}

TEST(RelativeError, OfOneElementThatIsWrongIsFarBeyondWhatIsAllowed) {
  const std::vector<Complex> right = transformed_row(kSeed, 200, 17);
  std::vector<Complex> wrong = right;
  EXPECT_LE(relative_error(wrong, right), kMostError);
  std::swap(wrong[3], wrong[4]);
  EXPECT_GT(relative_error(wrong, right), 1e6 * kMostError);
  wrong[3] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(relative_error(wrong, right) <= kMostError);
}

TEST(Loops, TransposeAnySizeAndLeaveTheRestAlone) {
  for (const int rows : {1, 47, 48, 49, 110})
    for (const int columns : {1, 48, 65}) {
      const std::size_t from_pitch = static_cast<std::size_t>(columns) + 3;
      const std::size_t to_pitch = static_cast<std::size_t>(rows) + 2;
      std::vector<Complex> from(static_cast<std::size_t>(rows) * from_pitch);
      for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
      std::vector<Complex> to(static_cast<std::size_t>(columns) * to_pitch, -1);
      transpose(from.data(), from_pitch, rows, columns, to.data(), to_pitch);
      for (std::size_t i = 0; i < to.size(); ++i) {
        const std::size_t r = i % to_pitch;
        ASSERT_EQ(to[i], std::cmp_less(r, rows) ? from[r * from_pitch + i / to_pitch] : Complex(-1)) << rows << " " << columns;
      }
    }
}

TEST(Loops, PackRowsOneBehindTheOther) {
  std::vector<Complex> from(20);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<double>(i);
  std::vector<Complex> out(6);
  pack(from.data() + 1, 8, 3, 2, out.data());
  EXPECT_EQ(out, (std::vector<Complex>{1, 2, 9, 10, 17, 18}));
}

}  // namespace LACUNA_TEST_FILE
