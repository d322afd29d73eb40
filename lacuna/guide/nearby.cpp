// nearby: what measured pairs say of one that is like them. Beside a pair that was measured, what it took is believed
// more than prices and biases.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 53;  // what a double counts exactly
constexpr float kMostGap = 1.0F;                            // a row that is further off was disturbed
constexpr float kFar = 4.0F;                                // its weight is 0.0003
// Widths of the kernel: a factor of e in sizes; a side that is contiguous is unlike one that is not.
constexpr float kContiguous = 2.0F;
// What a program learned holds for sizes within a factor of 1.3, and there counts as much as so many measured pairs.
constexpr float kNarrower = 16.0F;  // of squared distances
constexpr float kLearnedWeight = 32.0F;

}  // namespace

std::array<double, kPairNumbers> numbers_of(const layout::PairOutline& pair) {
  std::array<double, kPairNumbers> numbers{};
  std::size_t at = 0;
  for (const layout::Outline* side : {&pair.src, &pair.dst}) {
    for (const std::int64_t value : {side->bytes, side->runs, side->span, side->stride}) numbers.at(at++) = static_cast<double>(value);
    numbers.at(at++) = side->listed;
    numbers.at(at++) = side->uneven;
  }
  numbers.at(at++) = pair.pieces;
  numbers.at(at++) = pair.paired;
  return numbers;
}

Result<layout::PairOutline> pair_from_numbers(std::span<const double> numbers) {
  const auto wrong = [](const std::string& what) { return base::fail(base::Code::invalid_argument, "a pair: " + what); };
  if (numbers.size() != kPairNumbers) return wrong(fmt::format("{} numbers, not {}", numbers.size(), kPairNumbers));
  for (const double number : numbers) {
    if (!(std::abs(number) <= static_cast<double>(kMostBytes))) return wrong(fmt::format("{:g} is no count", number));
  }
  layout::PairOutline pair;
  std::size_t at = 0;
  for (layout::Outline* side : {&pair.src, &pair.dst}) {
    for (std::int64_t* value : {&side->bytes, &side->runs, &side->span, &side->stride}) *value = static_cast<std::int64_t>(numbers[at++]);
    side->listed = numbers[at++];
    side->uneven = numbers[at++];
    if (side->bytes < 1 || side->runs < 1 || side->runs > side->bytes || side->span < 1 || side->listed < 0 || side->listed > 1 ||
        side->uneven < 0)
      return wrong(fmt::format("no layout has {} bytes in {} runs within {}", side->bytes, side->runs, side->span));
    side->count_units();
  }
  pair.pieces = numbers[at++];
  pair.paired = numbers[at++];
  if (pair.src.bytes != pair.dst.bytes) return wrong(fmt::format("{} bytes to {}", pair.src.bytes, pair.dst.bytes));
  if (pair.pieces < 1 || pair.paired < 1) return wrong("less than one piece");
  return pair;
}

Nearby::Point Nearby::place_of(const layout::PairOutline& pair) {
  const auto log = [](std::int64_t value) { return static_cast<float>(std::log(static_cast<double>(std::max<std::int64_t>(1, value)))); };
  Point place{};
  std::size_t at = 0;
  place.at(at++) = log(pair.bytes());
  for (const layout::Outline* side : {&pair.src, &pair.dst}) {
    place.at(at++) = log(side->bytes) - log(side->runs);
    place.at(at++) = side->contiguous() ? kContiguous : 0;
    place.at(at++) = static_cast<float>(side->listed);
    place.at(at++) = static_cast<float>(std::min(1.0, side->uneven));
  }
  return place;
}

void Nearby::add(const layout::PairOutline& pair, bool cold, std::span<const float> gaps, bool learned) {
  MeasuredPair seen{.place = place_of(pair), .cold = cold, .learned = learned, .gaps = {}, .known = {}};
  for (const float gap : gaps) {
    const bool known = std::isfinite(gap);
    seen.gaps.push_back(known ? std::clamp(gap, -kMostGap, kMostGap) : 0);
    seen.known.push_back(known ? 1 : 0);
  }
  seen.gaps.resize(ways_);
  seen.known.resize(ways_);
  if (learned) {
    std::erase_if(seen_, [&](const MeasuredPair& old) {
      return old.learned && old.cold == cold && old.place == seen.place && old.known == seen.known;
    });
  }
  const auto after = std::ranges::upper_bound(seen_, seen.place.front(), {}, [](const MeasuredPair& s) { return s.place.front(); });
  seen_.insert(after, std::move(seen));
}

Nearby::Means Nearby::means(const layout::PairOutline& pair, bool cold) const {
  Means means;
  if (seen_.empty()) return means;
  const Point place = place_of(pair);
  const std::size_t ways = std::min(ways_, means.weights.size());
  const auto payload = [](const MeasuredPair& s) { return s.place.front(); };
  for (auto seen = std::ranges::lower_bound(seen_, place.front() - kFar, {}, payload); seen != seen_.end(); ++seen) {
    if (seen->place.front() > place.front() + kFar) break;
    if (seen->cold != cold) continue;
    float apart = 0;
    for (std::size_t i = 0; i < kCoordinates; ++i) apart += (place[i] - seen->place[i]) * (place[i] - seen->place[i]);
    if (apart > kFar * kFar) continue;
    const float weight = seen->learned ? kLearnedWeight * std::exp(-kNarrower * apart / 2) : std::exp(-apart / 2);
    for (std::size_t way = 0; way < ways; ++way) {
      means.gaps[way] += weight * seen->gaps[way];
      means.weights[way] += weight * seen->known[way];
    }
  }
  for (std::size_t way = 0; way < ways; ++way)
    means.gaps[way] = std::clamp(means.gaps[way] / (means.weights[way] + kPriorWeight), -kMost, kMost);
  return means;
}

}  // namespace lacuna::guide
