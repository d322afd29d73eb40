// Medians, and how sure they are.
#pragma once

#include <cstddef>
#include <vector>

namespace lacuna::measure {

/// A median and its bootstrap interval: between the 2.5 % and the 97.5 % point of the medians of all resamples. These
/// are known exactly (the k-th smallest value is at least the median of a resample with a binomial probability), so
/// nothing is drawn and the same data give the same interval. Nothing is assumed about the shape of the noise. Values
/// must be independent: a visit's median, not each of its samples. Below six values the interval is the whole range,
/// and `level` says how little that means.
struct Median {
  double value = 0;
  double low = 0;
  double high = 0;
  double level = 0;
};
inline constexpr std::size_t kFewestVisits = 6;  ///< that an interval of 95 % needs
[[nodiscard]] Median median_of(std::vector<double> values);

}  // namespace lacuna::measure
