#include "lacuna/protocol/rings.hpp"

#include <cmath>
#include <utility>

namespace lacuna::protocol {

namespace {

constexpr std::int64_t kMiddle = 256 << 10, kLong = 4 << 20;  // bytes: where classes begin
constexpr int kPairs = 4;
constexpr int kBetweenTrials = 256;  // messages
constexpr int kUntilAgain = 4;       // after two messages that were not alike
constexpr double kMostLog = 0.7;     // of one pair: somebody else had the CPU
constexpr double kNoise = 0.03;      // of the mean of a trial's pairs

}  // namespace

Ring Rings::choose(std::int64_t bytes, const layout::Digest& digest) {
  settle();
  if (bytes < WindowMemory::kTimed) return Ring::wide;
  Class& of = classes_[bytes < kMiddle ? 0 : bytes < kLong ? 1 : 2];
  if (of.has_first && (of.bytes != bytes || of.digest != digest)) {
    of.has_first = false;
    of.until_trial = kUntilAgain;
  }
  if (!of.has_first && --of.until_trial > 0) return of.ring;
  of.bytes = bytes;
  of.digest = digest;
  trial_ = {.of = &of, .ring = of.has_first == of.narrow_first ? Ring::wide : Ring::narrow};
  return trial_.ring;
}

void Rings::sent(const Windows::Place& place, const OutStream& stream) {
  if (trial_.of == nullptr || trial_.window != nullptr || place.ring != trial_.ring) return;
  trial_.window = place.memory;
  trial_.last = stream.last();
}

void Rings::settle() {
  if (trial_.of == nullptr) return;
  const Trial trial = std::exchange(trial_, {});
  if (trial.window == nullptr || trial.window->took_of.load(std::memory_order_acquire) != trial.last) {
    trial.of->has_first = false;
    trial.of->until_trial = kUntilAgain;
    return;
  }
  judge(*trial.of, static_cast<double>(std::max<std::uint64_t>(trial.window->took_ns.load(std::memory_order_relaxed), 1)));
}

void Rings::judge(Class& of, double ns) {
  of.has_first = !of.has_first;
  if (of.has_first) {
    of.first_ns = ns;
    return;
  }
  of.log_ratios += std::clamp(std::log(of.narrow_first ? of.first_ns / ns : ns / of.first_ns), -kMostLog, kMostLog);
  of.narrow_first = !of.narrow_first;
  of.until_trial = 1;
  if (++of.pairs < kPairs) return;
  if (std::abs(of.log_ratios) > kNoise * kPairs) of.ring = of.log_ratios < 0 ? Ring::narrow : Ring::wide;
  of.pairs = 0;
  of.log_ratios = 0;
  of.until_trial = kBetweenTrials;
}

}  // namespace lacuna::protocol
