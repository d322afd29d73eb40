#include "lacuna/protocol/stream/stream_rings.hpp"

#include <algorithm>
#include <bit>

namespace lacuna::protocol {
namespace {

constexpr std::size_t kNarrow = 1;  // the ring of narrow transits
constexpr std::uint32_t kFarTooLong = 4;
constexpr std::size_t kFew = 2;  // rings that a peer uses in turn while memory is scarce

}  // namespace

// Null: it is in use, or there is no memory for it. One from when there were more peers, or far fewer, makes way for
// one that suits.
Result<StreamRing*> StreamRings::take_kept(RingPool& pool, std::size_t index, std::int64_t bytes, std::uint32_t most, bool matched) {
  LentRing* ring = kept_.at(index);
  if (ring != nullptr && !ring->free()) return nullptr;
  if (ring != nullptr && ((ring->bytes < most && std::cmp_less(ring->bytes, bytes)) || ring->bytes >= kFarTooLong * most)) {
    pool.release(*ring);
    ring = nullptr;
  }
  if (ring == nullptr) return pool.lend(*this, most, &kept_.at(index), matched);
  pool.use(*ring);
  return ring;
}

// Longer than a message is good where the next one is packed before this one is read. Where many peers keep rings, that
// takes memory from them: a ring is as long as the message, and one that is kept already serves as well.
Result<StreamRing*> StreamRings::take_long(RingPool& pool, std::int64_t bytes, bool matched) {
  const std::uint32_t most = pool.long_ring();
  if (pool.roomy()) return take_kept(pool, kKept - 1, bytes, most, matched);
  for (std::size_t i = matched ? 0 : 1; i < kKept - 1; ++i) {
    if (kept_.at(i) == nullptr || std::cmp_less(kept_.at(i)->bytes, bytes) || !kept_.at(i)->free()) continue;
    pool.use(*kept_.at(i));
    return kept_.at(i);
  }
  const auto enough = std::bit_ceil(static_cast<std::uint32_t>(std::min<std::int64_t>(bytes, most)));
  return take_kept(pool, kKept - 1, bytes, enough, matched);
}

Result<StreamRing*> StreamRings::take(RingPool& pool, std::int64_t bytes, bool matched, Transit transit) {
  const std::uint32_t usual = pool.usual_ring();
  if (transit != Transit::wide) {  // a direct copy needs no more than its head
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, kNarrow, bytes, usual, matched));
    if (ring != nullptr) {
      ring->transit = transit;
      return ring;
    }
  }
  if (std::cmp_greater(bytes, usual)) {
    StreamRing* const ring = LACUNA_TRY(take_long(pool, bytes, matched));
    if (ring != nullptr) return ring;
  }
  const std::size_t in_turn = pool.roomy() ? kKept - 1 : kFew;
  for (std::size_t k = 1; k <= in_turn; ++k) {
    const std::size_t i = (last_ + k) % in_turn;
    if (i == 0 && !matched) continue;
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, i, bytes, usual, matched));
    if (ring == nullptr) continue;
    last_ = i;
    return ring;
  }
  return nullptr;
}

Result<StreamRing*> StreamRings::take_extra(RingPool& pool, std::int64_t bytes) {
  const auto size = static_cast<std::uint32_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(bytes, RingPool::kLeastRing, kMostRing))));
  return pool.lend(*this, size, nullptr, true);
}

}  // namespace lacuna::protocol
