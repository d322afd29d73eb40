#include "lacuna/protocol/stream/out_stream.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lacuna::protocol {
namespace {

// Lines that come again soon are in the other CPU's L2 cache still, and slow to write: 256 KiB over and over move 8
// GB/s on an EPYC of 2022. In 1.5 MiB, half as much again as its L2 cache, they come back from the L3 cache, and move
// 23 GB/s. More is not better for messages that are short themselves: 4 MiB in each direction are more pages than the
// TLB has, and 96 KiB in blocks take 7.1 us instead of 3.9. A message of 1 MiB goes round 2 MiB on its own, with 29
// GB/s, and round 512 KiB with 17.
constexpr std::int64_t kLeastChunk = 4 << 10;
constexpr std::int64_t kMostChunk = 64 << 10;
// A message; chunks of longer ones are twice the least, and so are those that pass caches by
constexpr std::int64_t kShort = 32 << 10;
// Of a message, until they become too short or too long: both CPUs shall have something to do
constexpr std::int64_t kChunks = 32;

// About what packing would take.
constexpr std::int64_t kBytesPerNs = 8;
constexpr std::int64_t kLeastPatience = 5'000;  // ns: the round trip of a descriptor through a host's MPI

constexpr std::uint32_t kFewestChunks = 8;  // of a ring that a message goes round

}  // namespace

std::uint32_t chunk_of(std::int64_t bytes, copy::Caching caching) {
  const std::int64_t least = (bytes <= kShort ? kLeastChunk : 2 * kLeastChunk) * (caching == copy::Caching::passed ? 2 : 1);
  return static_cast<std::uint32_t>(
      std::clamp(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes / kChunks))), least, kMostChunk));
}

OutStream::OutStream(StreamRing& ring, const Stores& stores, std::int64_t bytes)
    : ring_(&ring), bytes_(bytes), chunk_(chunk_of(bytes, stores.caching())) {
  // Both ends shall have chunks to work at.
  const bool narrow = ring.transit == Transit::narrow;
  if (narrow || std::cmp_greater(bytes, ring.bytes))
    chunk_ = std::min<std::uint32_t>(chunk_, std::max<std::uint32_t>(ring.ring_bytes() / kFewestChunks, kLeastChunk));
  begin(ring);
}

void OutStream::begin(StreamRing& ring) {
  ring_ = &ring;
  ring.memory->moved.store(0, std::memory_order_relaxed);
  next_ = at_ = (ring.at + chunk_ - 1) / chunk_ * chunk_ % ring.ring_bytes();
  first_ = emptied_ = ring.memory->filled.load(std::memory_order_relaxed);
  if (bytes_ >= RingMemory::kTimed) ring.memory->began.store(base::now_ns(), std::memory_order_relaxed);
}

void OutStream::offer_directly(const DirectEnd& own, bool patient) {
  patient_until_ = patient ? INT64_MAX : base::now_ns() + bytes_ / kBytesPerNs + kLeastPatience;
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
