#include "tools/bench/copy/measure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lacuna/base/base.hpp"

namespace lacuna::bench {
namespace {

constexpr int kFewest = 15;
constexpr int kMost = 151;
constexpr double kSample = 4000;  // ns that a warm sample lasts at least: the clock's 30 ns are nothing then

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

double time_of(const Contender& contender, int times) {
  const std::int64_t start = base::now_ns();
  for (int i = 0; i < times; ++i) contender.run();
  return static_cast<double>(base::now_ns() - start) / times;
}

}  // namespace

nlohmann::json race(const std::vector<Contender>& contenders, const Pace& pace) {
  const std::size_t n = contenders.size();
  std::vector<int> times(n, 1);
  if (!pace.cold) {
    for (std::size_t i = 0; i < n; ++i) {
      contenders[i].run();
      const double once = std::max(time_of(contenders[i], 1), 1.0);
      times[i] = static_cast<int>(std::clamp(kSample / once, 1.0, 2000.0));
      if (times[i] > 1) times[i] = static_cast<int>(std::clamp(kSample / std::max(time_of(contenders[i], times[i]), 0.1), 1.0, 20000.0));
    }
  }
  std::vector<std::vector<double>> samples(n);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): nobody may always come after the same one
  const std::int64_t start = base::now_ns();
  for (int round = 0; round < kMost; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) {
      if (pace.cold) pace.evict();
      samples[i].push_back(time_of(contenders[i], times[i]));
    }
    if (round + 1 >= kFewest && static_cast<double>(base::now_ns() - start) > pace.milliseconds * 1e6) break;
  }
  nlohmann::json rows = nlohmann::json::array();
  const std::size_t rounds = samples[0].size();
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> ratios;
    for (std::size_t r = 0; r < rounds; ++r) ratios.push_back(samples[0][r] / samples[i][r]);
    std::ranges::sort(ratios);
    const double spread = 0.98 * std::sqrt(static_cast<double>(rounds));
    const double middle = static_cast<double>(rounds) / 2;
    const auto at = [&](double rank) { return ratios[static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(rounds - 1)))]; };
    rows.push_back({{"name", contenders[i].name},
                    {"ns", median(samples[i])},
                    {"ratio", at(middle)},
                    {"low", at(std::floor(middle - spread))},
                    {"high", at(std::ceil(middle + spread) - 1)}});
  }
  return {{"rounds", rounds}, {"contenders", rows}};
}

}  // namespace lacuna::bench
