#include "lacuna/protocol/stream/out_stream.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::protocol {

namespace {

using guide::usual::kChunks;
using guide::usual::kFewestChunks;
using guide::usual::kLeastChunk;
using guide::usual::kLeastPatience;
using guide::usual::kMostChunk;
using guide::usual::kPackedBytesPerNs;
using guide::usual::kShortMessage;

}  // namespace
std::uint32_t chunk_of(std::int64_t bytes, copy::Caching caching) {
  const std::int64_t least = (bytes <= kShortMessage ? kLeastChunk : 2 * kLeastChunk) * (caching == copy::Caching::passed ? 2 : 1);
  return static_cast<std::uint32_t>(
      std::clamp(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes / kChunks))), least, kMostChunk));
}

OutStream::OutStream(StreamRing& ring, const Stores& stores, std::int64_t bytes)
    : ring_(&ring), bytes_(bytes), chunk_(chunk_of(bytes, stores.caching())) {
  // Both ends shall have chunks to work at.
  const bool narrow = ring.transit == Transit::narrow;
  if (narrow || std::cmp_greater(bytes, ring.ring_bytes()))
    chunk_ = std::min<std::uint32_t>(chunk_, std::max<std::uint32_t>(std::bit_floor(ring.ring_bytes() / kFewestChunks), kLeastChunk));
  begin(ring);
}

void OutStream::begin(StreamRing& ring) {
  ring_ = &ring;
  ring.memory->moved.store(0, std::memory_order_relaxed);
  next_ = at_ = (ring.at + chunk_ - 1) / chunk_ * chunk_ % ring.ring_bytes();
  first_ = emptied_ = ring.memory->filled.load(std::memory_order_relaxed);
  if (bytes_ >= guide::usual::kTimedMessage) ring.memory->began.store(base::now_ns(), std::memory_order_relaxed);
}

void OutStream::offer_directly(const DirectEnd& own, bool patient) {
  patient_until_ = patient ? INT64_MAX : base::now_ns() + bytes_ / kPackedBytesPerNs + kLeastPatience;
  ring_->memory->direct.offer(first_ + 1, own);
}

bool OutStream::withdraw() {
  if (direct_memory().settle(first_ + 1, DirectState::refused) || direct_state() == DirectState::refused) {
    pack_after_all();
    return true;
  }
  return false;
}

void OutStream::copied() {
  packed_ = bytes_;
  ring_->memory->filled.store(first_ + 1, std::memory_order_relaxed);
}

void OutStream::move_to(StreamRing& ring) {
  StreamRing& old = *ring_;
  give_back();
  begin(ring);
  old.memory->rest = describe(0);
  const std::uint64_t last = old.memory->filled.load(std::memory_order_relaxed) + 1;
  old.memory->moved.store(last, std::memory_order_relaxed);
  old.memory->filled.store(last, std::memory_order_release);
}

Result<bool> OutStream::step(nic::Context& context, Stores& stores, const layout::Layout& layout, const std::byte* base) {
  bool moved = false;
  RingMemory& memory = *ring_->memory;
  const std::uint64_t chunks = ring_->ring_bytes() / chunk_;
  for (std::uint64_t filled = memory.filled.load(std::memory_order_relaxed); packed_ < bytes_; ++filled) {
    if (filled - emptied_ >= chunks) {
      emptied_ = memory.emptied.load(std::memory_order_acquire);
      if (emptied_ > filled) return base::fail(base::Code::malformed, "the peer emptied more of a ring than was filled");
      if (filled - emptied_ >= chunks) break;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - packed_);
    stores.pack(context, layout, base, packed_, bytes, memory.data() + next_);
    memory.filled.store(filled + 1, std::memory_order_release);
    next_ = (next_ + chunk_) % ring_->ring_bytes();
    packed_ += bytes;
    moved = true;
  }
  return moved;
}

}  // namespace lacuna::protocol
