#include "tools/bench/copy/measure.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "lacuna/base/base.hpp"

namespace lacuna::bench {
namespace {

constexpr int kMost = 151;
constexpr double kSample = 4000;  // ns that a warm sample lasts at least: the clock's 30 ns are nothing then
constexpr double kLong = 1e6;     // ns from which on a first run, which may be cold, says well enough how often to run

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

// How often each contender runs for one sample.
std::vector<int> times_of(const std::vector<Contender>& contenders, bool cold) {
  std::vector<int> times(contenders.size(), 1);
  if (cold) return times;
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    double once = time_of(contenders[i], 1);
    if (once < kLong) once = std::max(time_of(contenders[i], 1), 1.0);
    times[i] = static_cast<int>(std::clamp(kSample / once, 1.0, 2000.0));
    if (times[i] > 1) times[i] = static_cast<int>(std::clamp(kSample / std::max(time_of(contenders[i], times[i]), 0.1), 1.0, 20000.0));
  }
  return times;
}

// Of the first contender over another one, in the rounds that both have.
nlohmann::json compared(const std::string& name, const std::vector<double>& first, const std::vector<double>& samples) {
  const std::size_t rounds = std::min(first.size(), samples.size());
  std::vector<double> ratios;
  for (std::size_t r = 0; r < rounds; ++r) ratios.push_back(first[r] / samples[r]);
  std::ranges::sort(ratios);
  const double spread = 0.98 * std::sqrt(static_cast<double>(rounds));
  const double middle = static_cast<double>(rounds) / 2;
  const auto at = [&](double rank) { return ratios[static_cast<std::size_t>(std::clamp(rank, 0.0, static_cast<double>(rounds - 1)))]; };
  return {{"name", name},
          {"ns", median(samples)},
          {"ratio", at(middle)},
          {"low", at(std::floor(middle - spread))},
          {"high", at(std::ceil(middle + spread) - 1)}};
}

}  // namespace

nlohmann::json race(const std::vector<Contender>& contenders, const Pace& pace) {
  const std::size_t n = contenders.size();
  const double budget = pace.milliseconds * 1e6;
  const std::vector<int> times = times_of(contenders, pace.cold);
  std::vector<std::vector<double>> samples(n);
  std::vector<double> spent(n, 0.0);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): nobody may always come after the same one
  const std::int64_t start = base::now_ns();
  for (int round = 0; round < kMost; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) {
      if (i != 0 && round >= pace.patience && spent[i] > budget) continue;
      if (pace.cold) pace.evict();
      samples[i].push_back(time_of(contenders[i], times[i]));
      spent[i] += samples[i].back() * times[i];
    }
    const int fewest = spent[0] > budget ? pace.patience : pace.fewest;
    if (round + 1 >= fewest && static_cast<double>(base::now_ns() - start) > budget) break;
  }
  nlohmann::json rows = nlohmann::json::array();
  for (std::size_t i = 0; i < n; ++i) rows.push_back(compared(contenders[i].name, samples[0], samples[i]));
  return {{"rounds", samples[0].size()}, {"contenders", rows}};
}

}  // namespace lacuna::bench
