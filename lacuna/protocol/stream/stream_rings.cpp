#include "lacuna/protocol/stream/stream_rings.hpp"

#include <algorithm>
#include <bit>

namespace lacuna::protocol {
namespace {

constexpr std::size_t kNarrow = 1;  // the ring of narrow transits

}  // namespace

// Null: it is in use, or there is no memory for it.
Result<StreamRing*> StreamRings::take_kept(RingPool& pool, std::size_t index, std::uint32_t bytes, bool matched) {
  LentRing* const ring = kept_.at(index);
  if (ring == nullptr) return pool.lend(*this, bytes, &kept_.at(index), matched);
  if (!ring->free()) return nullptr;
  pool.use(*ring);
  return ring;
}

Result<StreamRing*> StreamRings::take(RingPool& pool, std::int64_t bytes, bool matched, Transit transit) {
  if (transit != Transit::wide) {  // a direct copy needs no more than its head
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, kNarrow, pool.usual_ring(), matched));
    if (ring != nullptr) {
      ring->transit = transit;
      return ring;
    }
  }
  if (std::cmp_greater(bytes, pool.usual_ring())) {
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, kKept - 1, pool.long_ring(), matched));
    if (ring != nullptr) return ring;
  }
  for (std::size_t k = 1; k < kKept; ++k) {
    const std::size_t i = (last_ + k) % (kKept - 1);
    if (i == 0 && !matched) continue;
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, i, pool.usual_ring(), matched));
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
