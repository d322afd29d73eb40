// The tests' own random numbers: the same on every platform and standard library, so that a seed in a failure message
// is enough to see the failure again.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace lacuna::support {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// splitmix64 (Steele, Lea and Flood 2014).
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, n), n > 0. The modulo's bias is far below what a test could notice.
  std::int64_t below(std::int64_t n) { return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(n)); }
  /// Uniform in [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) { return low + below(high - low + 1); }
  bool one_in(std::int64_t n) { return below(n) == 0; }

  /// In [0, high], every order of magnitude equally likely: most values are small, some are near the limit.
  std::int64_t scaled(std::int64_t high) {
    int bits = 0;
    while ((high >> bits) != 0) ++bits;
    const std::int64_t limit = std::int64_t{1} << below(bits + 1);
    return below(limit < high + 1 ? limit : high + 1);
  }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<std::int64_t>(from.size())))];
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t i = items.size(); i > 1; --i)
      std::swap(items[i - 1], items[static_cast<std::size_t>(below(static_cast<std::int64_t>(i)))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace lacuna::support
