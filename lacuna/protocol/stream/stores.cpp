#include "lacuna/protocol/stream/stores.hpp"

#include <algorithm>
#include <atomic>

namespace lacuna::protocol {

using copy::Caching;

namespace {

constexpr std::int64_t kLeastTimed = 2048;  // bytes: less is gone before a clock sees it, and the reader waits for the first line anyway
constexpr std::int64_t kLineBytes = 64;     // bytes
constexpr double kReadersShare = 3;         // ns for each line, what the reader loses by lines that are in memory only
constexpr double kLeastGain = 0.25;         // of what a piece takes
constexpr int kPiecesBetweenTrials = 128;   // pieces: a trial costs one of them up to ten times its time
constexpr int kPiecesUntilAgain = 16;       // after a trial of two pieces that were not alike
constexpr int kVotes = 3;

}  // namespace

void Stores::pack(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position, std::int64_t bytes,
                  std::byte* to) {
  if (bytes < kLeastTimed) return context.pack(layout, base, position, bytes, to, Caching::kept);
  if (--until_trial_ > 0) return context.pack(layout, base, position, bytes, to, caching_);
  // Two pieces alike, one after another: of one message, or two that are a piece each. Which of the two ways comes first is in turn, for the
  // first piece of a message has more to wait for.
  const bool whole = position == 0 && bytes == layout.size();
  const bool second = first_ns_ >= 0;
  const Caching caching = second == passed_first_ ? Caching::kept : Caching::passed;
  const std::int64_t ns = timed(context, layout, base, position, bytes, to, caching);
  if (!second) {
    first_ns_ = ns;
    first_bytes_ = bytes;
    first_layout_ = &layout;
    return;
  }
  if (first_layout_ == &layout && first_bytes_ == bytes && (position > 0 || whole)) {
    judge(static_cast<double>(passed_first_ ? ns : first_ns_), static_cast<double>(passed_first_ ? first_ns_ : ns), bytes);
    passed_first_ = !passed_first_;
  } else {
    until_trial_ = kPiecesUntilAgain;
  }
  first_ns_ = -1;
}

// Until the stores are through, not until they are given.
std::int64_t Stores::timed(nic::Context& context, const layout::Layout& layout, const std::byte* base, std::int64_t position,
                           std::int64_t bytes, std::byte* to, Caching caching) {
  const std::int64_t start = base::now_ns();
  context.pack(layout, base, position, bytes, to, caching);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return base::now_ns() - start;
}

void Stores::judge(double kept_ns, double passed_ns, std::int64_t bytes) {
  const double lines = static_cast<double>(bytes) / kLineBytes;
  const Caching better = kept_ns - passed_ns > std::max(kReadersShare * lines, kLeastGain * passed_ns) ? Caching::passed : Caching::kept;
  votes_ = better == caching_ ? 0 : votes_ + 1;
  until_trial_ = better == caching_ ? kPiecesBetweenTrials : 1;
  if (votes_ < kVotes) return;
  caching_ = better;
  votes_ = 0;
  until_trial_ = kPiecesBetweenTrials;
}

}  // namespace lacuna::protocol
