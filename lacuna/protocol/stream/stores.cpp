#include "lacuna/protocol/stream/stores.hpp"

#include <algorithm>
#include <atomic>

#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::protocol {

using copy::Caching;

namespace {

constexpr std::int64_t kLineBytes = 64;
constexpr int kPiecesBetween = 128;    // two trials: a trial costs one of them up to ten times its time
constexpr int kPiecesUntilAgain = 16;  // after a pair whose pieces were not alike
constexpr int kVotes = 3;

}  // namespace

void Stores::pack(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t bytes,
                  std::byte* to) {
  if (held_) return context.pack(layout, base, position, bytes, to, caching_);
  if (bytes < guide::usual::kTimedPiece) return context.pack(layout, base, position, bytes, to, Caching::kept);
  if (--until_trial_ > 0) return context.pack(layout, base, position, bytes, to, caching_);
  // Two pieces alike, one after another: of one message, or two messages that are a piece each. The first piece of a
  // message has more to wait for.
  const bool whole = position == 0 && bytes == layout.size();
  const bool second = pairs_.under_way();
  const auto ns =
      static_cast<double>(timed(context, layout, base, position, bytes, to, pairs_.tries_other() ? Caching::passed : Caching::kept));
  if (!second) {
    pairs_.took(ns);
    first_bytes_ = bytes;
    first_layout_ = &layout;
  } else if (first_layout_ == &layout && first_bytes_ == bytes && (position > 0 || whole)) {
    if (const auto pair = pairs_.took(ns)) judge(pair->used_ns, pair->other_ns, bytes);
  } else {
    until_trial_ = kPiecesUntilAgain;
    pairs_.break_off();
  }
}

// Until the stores are through, not until they are given.
std::int64_t Stores::timed(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position,
                           std::int64_t bytes, std::byte* to, Caching caching) {
  const std::int64_t start = base::now_ns();
  context.pack(layout, base, position, bytes, to, caching);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return base::now_ns() - start;
}

bool Stores::passing_pays(double kept_ns, double passed_ns, std::int64_t bytes) {
  const double lines = static_cast<double>(bytes) / kLineBytes;
  constexpr double line = guide::usual::kReadersLine + guide::usual::kTriedLine;
  return kept_ns - passed_ns > std::max(line * lines, guide::usual::kLeastGain * passed_ns);
}

void Stores::judge(double kept_ns, double passed_ns, std::int64_t bytes) {
  const Caching better = passing_pays(kept_ns, passed_ns, bytes) ? Caching::passed : Caching::kept;
  judged_ = true;
  votes_ = better == caching_ ? 0 : votes_ + 1;
  until_trial_ = better == caching_ ? kPiecesBetween : 1;
  if (votes_ < kVotes) return;
  caching_ = better;
  votes_ = 0;
  until_trial_ = kPiecesBetween;
}

}  // namespace lacuna::protocol
