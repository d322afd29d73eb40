// One row: contenders for the same bytes, verified, then timed in turn.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace lacuna::bench {

struct Contender {
  std::string name;
  std::function<void()> run;
};

struct Pace {
  bool cold = false;
  std::function<void()> evict;  ///< before each cold sample
  double milliseconds = 50;
  int fewest = 15;  ///< rounds
  /// Samples of a contender that alone has taken all the time. Where that is the first one, as many rounds are enough.
  int patience = 15;
};

/// Times all contenders, one sample of each in every round, in a random order, until the time is over. The first one is
/// what the others are compared with. {"rounds": n, "contenders": [{"name", "ns", "ratio", "low", "high"}, ...]}:
/// medians of the samples, of the ratios first / this one within rounds, and the ends of a 95 % interval of that median
/// (order statistics).
nlohmann::json race(const std::vector<Contender>& contenders, const Pace& pace);

}  // namespace lacuna::bench
