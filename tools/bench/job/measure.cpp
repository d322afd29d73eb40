#include "tools/bench/job/measure.hpp"

#include <algorithm>
#include <numeric>
#include <random>

#include "tools/measure/measure.hpp"

namespace lacuna::bench {
namespace {

using nlohmann::json;

using Samples = std::vector<std::vector<double>>;  // of each contender, by round

Samples race(Asker& asker, std::size_t contenders, const Effort& effort) {
  Samples samples(contenders);
  std::vector<std::size_t> order(contenders);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): nobody may always come after the same one
  const std::int64_t start = base::now_ns();
  for (int round = 0; round < effort.most; ++round) {
    std::ranges::shuffle(order, random);
    for (const std::size_t i : order) samples[i].push_back(asker.batch(i));
    if (round + 1 >= effort.fewest && static_cast<double>(base::now_ns() - start) > effort.milliseconds * 1e6) break;
  }
  return samples;
}

json halves(const std::vector<double>& times) {
  std::vector<double> of[2];
  for (std::size_t round = 0; round < times.size(); ++round) of[round % 2].push_back(times[round]);
  json found = json::array();
  for (std::vector<double>& half : of) found.push_back(measure::median_of(half.empty() ? times : half).value / 1e3);
  return found;
}

json against(const Messenger& messenger, const std::vector<double>& ours, const std::vector<double>& theirs) {
  std::vector<double> ratios;
  for (std::size_t round = 0; round < ours.size(); ++round) ratios.push_back(ours[round] / theirs[round]);
  const measure::Median time = measure::median_of(theirs);
  const measure::Median ratio = measure::median_of(ratios);
  return {{"name", messenger.name}, {"us", time.value / 1e3}, {"low", time.low / 1e3},    {"high", time.high / 1e3},
          {"ratio", ratio.value},   {"ratio_low", ratio.low}, {"ratio_high", ratio.high}, {"half_us", halves(theirs)}};
}

json lead(Exchange& exchange, const Pair& pair, const Effort& effort) {
  Asker asker(exchange, pair);
  const std::size_t contenders = exchange.messengers().size();
  const Samples samples = asking(asker, [&] {
    for (std::size_t i = 0; i < contenders; ++i) asker.verify(i);
    asker.choose_trips();
    Samples raced = race(asker, contenders, effort);
    for (std::size_t i = 0; i < contenders; ++i) asker.verify(i);
    return raced;
  });
  json rows = json::array();
  for (std::size_t i = 0; i < contenders; ++i) rows.push_back(against(exchange.messengers()[i], samples[0], samples[i]));
  return {{"rounds", samples[0].size()}, {"contenders", rows}, {"refused", exchange.refused()}};
}

}  // namespace

json measure(const MessageCase& what, const Pair& pair, const std::function<void(Exchange&)>& add_contenders, const Effort& effort) {
  const std::unique_ptr<Exchange> exchange = open_exchange(what, pair, add_contenders);
  if (pair.rank() != 0) {
    answer_turns(*exchange, pair);
    return json::object();
  }
  json row = lead(*exchange, pair, effort);
  row.update(
      {{"suite", what.suite}, {"case", what.name}, {"family", what.family}, {"payload_bytes", what.payload}, {"blocks", what.blocks}});
  return row;
}

}  // namespace lacuna::bench
