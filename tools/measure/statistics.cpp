#include "tools/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <ranges>
#include <utility>

namespace lacuna::measure {
namespace {

constexpr double kTail = 0.025;

// P(at least k of n throws succeed), each with probability p.
double binomial_at_least(int n, int k, double p) {
  if (p >= 1) return 1;
  double sum = 0;
  for (int i = k; i <= n; ++i)
    sum += std::exp(std::lgamma(n + 1) - std::lgamma(i + 1) - std::lgamma(n - i + 1) + i * std::log(p) + (n - i) * std::log1p(-p));
  return sum;
}

}  // namespace

Median median_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const int n = static_cast<int>(values.size());
  const auto at = [&](int i) { return values[static_cast<std::size_t>(i)]; };
  const double median = (at((n - 1) / 2) + at(n / 2)) / 2;
  // All n on one side of the true median: one chance in 2^n for either side. Wider than all of them no interval can be.
  if (std::cmp_less(n, kFewestVisits)) return {median, at(0), at(n - 1), 1 - std::exp2(1 - n)};
  // A value drawn at random is one of the k smallest with probability k/n. The lower median of a resample is among them
  // if so are n/2 draws or more (half of n, rounded up). The first k for which that is no longer rare begins the
  // interval; by symmetry it ends there too.
  const auto ranks = std::views::iota(1, (n + 1) / 2 + 1);  // the last of them is the median itself
  const int k = *std::ranges::partition_point(
      ranks, [&](int rank) { return binomial_at_least(n, (n + 1) / 2, static_cast<double>(rank) / n) <= kTail; });
  return {median, at(k - 1), at(n - k), 1 - 2 * kTail};
}

}  // namespace lacuna::measure
