#include <algorithm>
#include <cmath>
#include <numbers>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

constexpr double kLevel = 0.95;

// P(at most k of n fair coins show heads).
double binomial_below(int n, int k) {
  double sum = 0;
  for (int i = 0; i <= k; ++i) sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) - n * std::numbers::ln2);
  return sum;
}

}  // namespace

Median median_of(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const int n = static_cast<int>(samples.size());
  const auto at = [&](int i) { return samples[static_cast<std::size_t>(i)]; };
  // The interval from the k-th smallest to the k-th largest misses the median if fewer than k samples fell on one side
  // of it. The first cut that is too deep ends the search; k = 1 is the whole range.
  int k = 1;
  while (k + 1 <= n / 2 && 1 - 2 * binomial_below(n, k) >= kLevel) ++k;
  return {(at((n - 1) / 2) + at(n / 2)) / 2, at(k - 1), at(n - k), std::max(0.0, 1 - 2 * binomial_below(n, k - 1))};
}

}  // namespace lacuna::guide
