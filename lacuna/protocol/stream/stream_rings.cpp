#include "lacuna/protocol/stream/stream_rings.hpp"

#include <algorithm>
#include <bit>

namespace lacuna::protocol {
namespace {

constexpr std::size_t kNarrow = 1;  // the ring of narrow transits
constexpr std::uint32_t kFarTooLong = 4;
constexpr std::size_t kFew = 2;                  // rings that a peer uses in turn while memory is scarce
constexpr std::int64_t kForLayouts = 128 << 10;  // bytes of a ring, for the layouts of both ends of a direct copy
// Pages of new memory take 0.65 ns for each byte, at both ends. A message that goes round a part of a ring takes up to
// 0.16 ns more for each byte than round all of it; round one ring instead of several in turn 0.01 to 0.07. So many
// bytes are sent before each byte that gets a page costs less than it saves, and pages for other rings make no message
// much slower than an MPI's own way: 16 bytes sent for each cost 90 KiB another 4 us, beside 4.
constexpr std::int64_t kSentForPart = 4, kSentForPages = 128;
constexpr std::int64_t kStepOfMessage = 4;  // bytes that get pages with a message: a part of its own

// Bytes that have pages.
std::int64_t extent_of(const LentRing* ring) { return ring != nullptr ? ring->extent.load(std::memory_order_relaxed) : 0; }

std::size_t rings_in_turn(const RingPool& pool) { return pool.roomy() ? StreamRings::kKept - 1 : kFew; }

}  // namespace

// Of a peer that nothing was sent to for long the pages are gone.
std::int64_t StreamRings::count_pages() {
  std::int64_t all = 0;
  for (const LentRing* ring : kept_) all += extent_of(ring);
  if (all == 0) sent_ = 0;
  return all;
}

// Null: it is in use, or there is no memory for it. One from when there were more peers, or far fewer, makes way for
// one that suits.
Result<StreamRing*> StreamRings::take_kept(RingPool& pool, std::size_t index, const Message& message, std::uint32_t most) {
  LentRing* ring = kept_.at(index);
  if (ring != nullptr && !ring->free()) return nullptr;
  if (ring != nullptr && ((ring->bytes < most && std::cmp_less(ring->bytes, message.bytes)) || ring->bytes >= kFarTooLong * most)) {
    pool.release(*ring);
    ring = nullptr;
  }
  if (ring == nullptr) return pool.lend(*this, most, &kept_.at(index), message.matched, message.extent);
  pool.use(*ring, message.extent_of(*ring));
  return ring;
}

// Longer than a message is good where the next one is packed before this one is read. Where many peers keep rings, that
// takes memory from them: a ring is as long as the message, and one that is kept already serves as well.
Result<StreamRing*> StreamRings::take_long(RingPool& pool, const Message& message) {
  const std::uint32_t most = pool.long_ring();
  if (pool.roomy()) return take_kept(pool, kKept - 1, message, most);
  for (std::size_t i = message.matched ? 0 : 1; i < kKept - 1; ++i) {
    if (kept_.at(i) == nullptr || std::cmp_less(kept_.at(i)->bytes, message.bytes) || !kept_.at(i)->free()) continue;
    pool.use(*kept_.at(i), message.extent_of(*kept_.at(i)));
    return kept_.at(i);
  }
  const auto enough = std::bit_ceil(static_cast<std::uint32_t>(std::min<std::int64_t>(message.bytes, most)));
  return take_kept(pool, kKept - 1, message, enough);
}

// Of those in turn, one that has pages for so many bytes.
Result<StreamRing*> StreamRings::take_usual(RingPool& pool, const Message& message, std::uint32_t usual, std::int64_t extent) {
  const std::size_t in_turn = rings_in_turn(pool);
  for (std::size_t k = 1; k <= in_turn; ++k) {
    const std::size_t i = (last_ + k) % in_turn;
    if (i == 0 && !message.matched) continue;
    if (extent > extent_of(kept_.at(i))) continue;
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, i, message, usual));
    if (ring == nullptr) continue;
    last_ = i;
    return ring;
  }
  return nullptr;
}

// Some more for one of those in turn, whichever ring this message takes.
Result<void> StreamRings::add_pages(RingPool& pool, Message message, std::uint32_t usual) {
  for (std::size_t i = message.matched ? 0 : 1; i < rings_in_turn(pool); ++i) {
    const std::int64_t extent = extent_of(kept_.at(i));
    if (std::cmp_greater_equal(extent, usual)) continue;
    message.extent = extent + message.step;
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, i, message, usual));
    if (ring == nullptr) continue;
    ring->give_back();
    break;
  }
  return {};
}

Result<StreamRing*> StreamRings::take(RingPool& pool, std::int64_t bytes, bool matched, Transit transit, bool keeps_pace) {
  const std::uint32_t usual = pool.usual_ring();
  const std::int64_t pages = count_pages();
  Message message{.bytes = bytes, .matched = matched, .extent = keeps_pace ? std::min(bytes, kStep) : bytes};
  message.step = std::clamp<std::int64_t>(bytes / kStepOfMessage, kStep, kBytes);
  message.pays = keeps_pace && sent_ >= kSentForPart * pages;
  // Where memory is scarce it would be another peer's.
  const bool pays_for_others = pages > 0 && sent_ >= kSentForPages * pages && pool.roomy();
  sent_ += bytes;
  if (transit == Transit::direct) message.extent = std::max(bytes, kForLayouts);  // it may be packed at once
  if (transit != Transit::wide) {
    StreamRing* const ring = LACUNA_TRY(take_kept(pool, kNarrow, message, usual));
    if (ring != nullptr) {
      ring->transit = transit;
      return ring;
    }
  }
  if (std::cmp_greater(bytes, usual)) {
    StreamRing* const ring = LACUNA_TRY(take_long(pool, message));
    if (ring != nullptr) return ring;
  }
  if (pays_for_others) LACUNA_TRY(add_pages(pool, message, usual));
  for (const std::int64_t extent : {std::min<std::int64_t>(bytes, usual), std::min<std::int64_t>(message.extent, usual), std::int64_t{0}}) {
    StreamRing* const ring = LACUNA_TRY(take_usual(pool, message, usual, extent));
    if (ring != nullptr) return ring;
  }
  return nullptr;
}

Result<StreamRing*> StreamRings::take_extra(RingPool& pool, std::int64_t bytes) {
  const auto size = static_cast<std::uint32_t>(
      std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(bytes, RingPool::kLeastRing, kMostRing))));
  return pool.lend(*this, size, nullptr, true, std::min<std::int64_t>(bytes, size));
}

}  // namespace lacuna::protocol
