#include "lacuna/protocol/stream/transits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/protocol/stream/stream_rings.hpp"

namespace lacuna::protocol {

namespace {

Transit other_ring(Transit ring) { return ring == Transit::wide ? Transit::narrow : Transit::wide; }

using guide::usual::kLongMessage;
using guide::usual::kLongRun;
using guide::usual::kMiddleMessage;
constexpr int kPairs = 4;
// Messages of each half of a pair that do not count: each way leaves the caches in another state. A long message brings
// them into its own.
constexpr int kWarm = 2;
// Wide windows that were not in use lie in memory. They are in the caches once a sender has been round them.
constexpr std::int64_t kWideRound = 3 * std::int64_t{StreamRings::kBytes};
// Messages, at least; and before the first trial of other windows, as the sheets say which are best, and new ones are
// slow. Of long messages a program may send no more than some ten, and a direct copy has no window.
constexpr int kBetweenTrials = 512;
// Messages after a pair that was broken off; twice as many after the next one, and so on,
constexpr int kUntilAgain = 4;
constexpr int kLongestPause = 8192;  // until a pair costs nothing, though its time is not known
constexpr int kMostInVain = 3;
constexpr double kMostDoubted = 2.1;  // of a pair's cost, a logarithm: eight times; a peer may write any time
constexpr double kNoise = 0.03;       // of the mean of a trial's pairs
// Of all pairs so far, one that takes nearly twice the time, or two that take 1.4 times, or as much less: to go on
// costs more than it may show.
constexpr double kHopeless = 0.6;
constexpr int kFewestPairs = 2;  // to change for what seems so much better

}  // namespace

// Each in turn.
void Transits::Class::next_other() {
  constexpr std::array kAll{Transit::wide, Transit::narrow, Transit::direct};
  const std::size_t count = advice == Advice::impossible ? 2 : 3;
  auto at = static_cast<std::size_t>(other);
  do {
    at = (at + 1) % count;
  } while (kAll.at(at) == best);
  other = kAll.at(at);
}

// The two CPUs decide which rings are better, so classes of one length begin with what another class has found.
Transit Transits::best_ring(std::size_t length, Transit expected) const {
  for (const auto& of_advice : *classes_) {
    for (const Class& of : of_advice.at(length))
      if (of.trials > 0 && of.best != Transit::direct) return of.best;
  }
  return expected;
}

int Transits::Class::before_trial(int soon) const { return other == Transit::direct || bytes >= kLongMessage ? soon : kBetweenTrials; }

// Messages of this half that do not count.
int Transits::Class::warming() const {
  if (bytes >= kLongMessage) return 0;
  const bool begins_wide = best != Transit::wide && other == Transit::wide && pairs.tries_other() && ratios.count() == 0;
  return begins_wide ? std::max(kWarm, static_cast<int>(kWideRound / bytes)) : kWarm;
}

Transit Transits::choose(std::int64_t bytes, const layout::Digest& digest, Advice advice, std::int64_t run, Transit ring) {
  settle();
  if (bytes < guide::usual::kTimedMessage) return ring;
  const std::size_t length = bytes < kMiddleMessage ? 0 : bytes < kLongMessage ? 1 : 2;
  if (classes_ == nullptr) classes_ = std::make_unique<Classes>();
  Class& of = classes_->at(static_cast<std::size_t>(advice)).at(length).at(run < kLongRun ? 0 : 1);
  last_ = &of;
  if (!std::exchange(of.begun, true)) {
    const Transit better = best_ring(length, ring);
    of.advice = advice;
    of.bytes = bytes;
    of.best = advice == Advice::one_copy ? Transit::direct : better;
    of.other = advice == Advice::two_copies ? Transit::direct : advice == Advice::one_copy ? better : other_ring(better);
    of.until_trial = of.before_trial(of.until_trial);
  }
  const bool in_pair = of.pairs.under_way();
  if (in_pair && (of.bytes != bytes || of.digest != digest)) {
    of.break_off();
  } else if (in_pair || --of.until_trial <= 0) {
    of.bytes = bytes;
    of.digest = digest;
    const bool tries_other = of.pairs.tries_other();
    const Transit transit = tries_other ? of.other : of.best;
    if (tries_other) ++of.others;
    if (of.pairs.go(of.warming())) timed_ = {.of = &of, .transit = transit};
    return transit;
  }
  return of.best;
}

void Transits::sent(const StreamRing& ring, const OutStream& stream) {
  if (timed_.of == nullptr || timed_.ring != nullptr || ring.transit != timed_.transit) return;
  timed_.ring = ring.memory;
  timed_.last = stream.last();
}

// What the message would have taken is not known, but waiting for a receiver that comes late costs the sender as much
// as packing (OutStream::waited_for_long).
void Transits::offered(bool taken) {
  if (last_ == nullptr) return;
  Class& of = *last_;
  of.in_vain = taken ? 0 : of.in_vain + 1;
  if (taken) return;
  timed_ = {};
  of.break_off();
  if (of.in_vain < kMostInVain) return;
  of.in_vain = 0;
  if (of.best == Transit::direct) {
    of.best = Transit::wide;
    of.other = Transit::direct;
  }
  of.end(true);
}

void Transits::settle() {
  if (timed_.of == nullptr) return;
  const Timed timed = std::exchange(timed_, {});
  if (timed.ring == nullptr || timed.ring->took_of.load(std::memory_order_acquire) != timed.last) {
    timed.of->break_off();
    return;
  }
  timed.of->time(static_cast<double>(std::max<std::uint64_t>(timed.ring->took_ns.load(std::memory_order_relaxed), 1)));
}

void Transits::Class::time(double ns) {
  if (const auto pair = pairs.took(ns)) judge(pair->log_ratio());
}

void Transits::Class::judge(double log_ratio) {
  ratios.add(log_ratio);
  excess = std::max(0.0, std::exp(std::min(log_ratio, kMostDoubted)) - 1);
  budget.spend(std::exchange(others, 0) * excess);
  until_trial = 1;
  broken = 0;
  const bool gains = ratios.agree_on_other();
  const bool clear = ratios.sum() >= kHopeless || (gains && ratios.count() >= kFewestPairs && ratios.sum() <= -kHopeless);
  if (ratios.count() < kPairs && !clear) return;
  if (ratios.sum() < -kNoise * kPairs && gains) std::swap(best, other);
  // At first one trial follows the other: what is best may be the last that is tried.
  end(++trials >= (advice == Advice::impossible ? 1 : 2));
}

void Transits::Class::end(bool pause) {
  next_other();
  ratios.clear();
  until_trial = pause ? std::max(kBetweenTrials, static_cast<int>(budget.pause())) : before_trial(1);
}

void Transits::Class::break_off() {
  pairs.break_off();
  budget.spend(std::exchange(others, 0) * excess);  // as in the pair before
  until_trial = kUntilAgain << broken;
  if (until_trial < kLongestPause) ++broken;
}

}  // namespace lacuna::protocol
