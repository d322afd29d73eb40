#include "lacuna/protocol/stream/ring_pool.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "lacuna/protocol/stream/stream_rings.hpp"

namespace lacuna::protocol {
namespace {

constexpr std::int64_t kLeastUsual = 32 << 10;  // bytes of a ring: eight of the shortest chunks
constexpr std::int64_t kFewPeers = 8;           // that each have as much as is best for two ranks alone
constexpr std::int64_t kSlab = 1 << 20;         // bytes of each request to the NIC,
constexpr std::int64_t kSlabs = 32;             // or a part of the pool
constexpr std::int64_t kFloor = 4 << 20;        // bytes that stay while idle
constexpr std::int64_t kIdle = 1'000'000'000;   // ns, or up to twice as long, after which others go back
constexpr std::int64_t kLeastStep = 16 << 10;   // bytes that get pages at once, of short messages: their longest chunk
constexpr std::size_t kLooks = 16;              // at rings whose receivers may not have emptied them yet

std::int64_t size_of(std::int64_t bytes) { return static_cast<std::int64_t>(sizeof(RingMemory)) + bytes; }

// A part of what is left, in powers of two.
std::uint32_t part_of(std::int64_t left, std::int64_t least, std::int64_t most) {
  const auto rounded = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(left, 1))));
  return static_cast<std::uint32_t>(std::clamp(rounded, least, most));
}

}  // namespace

RingPool::RingPool(nic::Context& context, std::int64_t bound, bool idle_thread)
    : context_(context), bound_(std::max(bound, kLeastBytes)), held_back_(2 * slab_bytes(kLeastUsual)) {
  if (idle_thread) idle_thread_ = std::make_unique<IdleThread>([this] { return look_at_idle(); }, kIdle);
}

std::uint32_t RingPool::usual_ring() const {
  const std::int64_t left = bound_ - count_.bytes;
  return part_of(std::min(left / 32, kFewPeers * StreamRings::kBytes / std::max(owners_, kFewPeers)), kLeastUsual, StreamRings::kBytes);
}

std::uint32_t RingPool::long_ring() const {
  const std::int64_t left = bound_ - count_.bytes;
  return part_of(std::min(left / 8, kFewPeers * StreamRings::kLongBytes / std::max(owners_, kFewPeers)), usual_ring(),
                 StreamRings::kLongBytes);
}

bool RingPool::roomy() const { return owners_ <= kFewPeers && count_.bytes <= bound_ / 2; }

std::int64_t RingPool::slab_bytes(std::uint32_t ring) const {
  return size_of(ring) * std::max<std::int64_t>(1, std::min(kSlab, bound_ / kSlabs) / size_of(ring));
}

// --- a ring ----------------------------------------------------------------------------------------------------------

void RingPool::take_from_owner(LentRing& ring) {
  if (ring.kept_at != nullptr) {
    *std::exchange(ring.kept_at, nullptr) = nullptr;
    if (--ring.owner->kept_rings == 0) --owners_;
    unkept_[ring.bytes].push_back(&ring);
  }
  ring.owner = nullptr;
}

void RingPool::use(LentRing& ring, std::int64_t extent) {
  ring.take();
  const std::int64_t before = ring.extent.load(std::memory_order_relaxed);
  const std::int64_t step = extent < StreamRings::kStep ? kLeastStep : StreamRings::kStep;
  const std::int64_t now = std::clamp<std::int64_t>((extent + step - 1) / step * step, before, ring.bytes);
  if (now > before) {
    const std::size_t at = before > 0 ? sizeof(RingMemory) + static_cast<std::size_t>(before) : 0;
    base::populate(reinterpret_cast<std::byte*>(ring.memory) + at, static_cast<std::size_t>(size_of(now)) - at, true);
    ring.extent.store(static_cast<std::uint32_t>(now), std::memory_order_relaxed);
    const std::int64_t resident = resident_.fetch_add(now - before) + now - before;
    if (resident > kFloor && idle_thread_ != nullptr) idle_thread_->wake();
  }
  ring.part = static_cast<std::uint32_t>(now);
  ring.transit = Transit::wide;
  ring.used = ++taken_;
}

// Kept by no peer, and empty.
LentRing* RingPool::idle(std::uint32_t bytes) {
  std::deque<LentRing*>& rings = unkept_[bytes];
  for (std::size_t looks = std::min(kLooks, rings.size()); looks > 0; --looks) {
    LentRing* const ring = rings.front();
    rings.pop_front();
    rings.push_back(ring);
    if (ring->free()) return ring;
  }
  return nullptr;
}

// The empty ring of another peer that was taken longest ago. What is kept for matched messages is for those only.
LentRing* RingPool::oldest(const StreamRings& but, std::uint32_t bytes, bool matched) {
  LentRing* found = nullptr;
  for (Slab& slab : slabs_) {
    if (slab.rings.front().bytes != bytes) continue;
    for (LentRing& ring : slab.rings) {
      if (ring.owner == &but || (found != nullptr && found->used <= ring.used) || !ring.free()) continue;
      if (matched || ring.owner == nullptr || !ring.owner->keeps_for_matched(ring)) found = &ring;
    }
  }
  return found;
}

Result<StreamRing*> RingPool::lend(StreamRings& to, std::uint32_t bytes, LentRing** kept_at, bool matched, std::int64_t extent) {
  const std::int64_t bound = bound_ - (matched ? 0 : held_back_);
  const std::int64_t more = slab_bytes(bytes);
  const bool within = count_.bytes <= bound;  // else of what is held back: that does not become idle for all
  LentRing* ring = within ? idle(bytes) : nullptr;
  if (ring == nullptr && count_.bytes + more <= bound) ring = LACUNA_TRY(make(bytes));
  if (ring == nullptr && within) ring = oldest(to, bytes, matched);
  if (ring == nullptr && make_room(to, more, bound, matched)) ring = LACUNA_TRY(make(bytes));
  if (ring == nullptr) return nullptr;
  take_from_owner(*ring);
  ring->owner = &to;
  if (kept_at != nullptr) {
    std::erase(unkept_[bytes], ring);
    *kept_at = ring;
    if (++to.kept_rings == 1) ++owners_;
    ring->kept_at = kept_at;
  }
  use(*ring, extent);
  return ring;
}

// --- memory ----------------------------------------------------------------------------------------------------------

Result<LentRing*> RingPool::make(std::uint32_t bytes) {
  const auto each = static_cast<std::size_t>(size_of(bytes));
  const std::scoped_lock lock(slabs_mutex_);
  Slab made;
  made.memory = std::make_shared<nic::RegisteredBuffer>(LACUNA_TRY(nic::RegisteredBuffer::create(context_, slab_bytes(bytes))));
  made.rings = std::vector<LentRing>(made.memory->buffer.size() / each);
  std::byte* at = made.memory->buffer.data();
  for (LentRing& ring : made.rings) {
    ring.memory = reinterpret_cast<RingMemory*>(at);
    ring.rkey = made.memory->region.rkey();
    ring.bytes = bytes;
    at += each;
  }
  count_.bytes += made.bytes();
  count_.most = std::max(count_.most, count_.bytes);
  slabs_.push_back(std::move(made));
  for (LentRing& ring : slabs_.back().rings) unkept_[bytes].push_back(&ring);
  return &slabs_.back().rings.front();
}

RingPool::Slabs::iterator RingPool::give_back(Slabs::iterator slab) {
  const std::scoped_lock lock(slabs_mutex_);
  for (LentRing& ring : slab->rings) {
    take_from_owner(ring);
    resident_.fetch_sub(ring.extent.load(std::memory_order_relaxed));
  }
  std::erase_if(unkept_[slab->rings.front().bytes],
                [&](const LentRing* ring) { return ring >= slab->rings.data() && ring <= &slab->rings.back(); });
  count_.bytes -= slab->bytes();
  return slabs_.erase(slab);
}

// Gives back slabs that nothing is in, those first that were used longest ago.
bool RingPool::make_room(const StreamRings& whom, std::int64_t bytes, std::int64_t bound, bool matched) {
  const auto may_go = [&](const LentRing& ring) {
    const bool kept = ring.kept_at != nullptr && (ring.owner == &whom || (!matched && ring.owner->keeps_for_matched(ring)));
    return !kept && ring.free();
  };
  const auto used = [](const Slab& slab) { return std::ranges::max_element(slab.rings, {}, &LentRing::used)->used; };
  while (count_.bytes + bytes > bound) {
    if (bytes > bound) return false;
    auto found = slabs_.end();
    for (auto slab = slabs_.begin(); slab != slabs_.end(); ++slab) {
      if ((found == slabs_.end() || used(*slab) < used(*found)) && std::ranges::all_of(slab->rings, may_go)) found = slab;
    }
    if (found == slabs_.end()) return false;
    give_back(found);
  }
  return true;
}

void RingPool::tidy(std::int64_t now) {
  if (count_.bytes <= kFloor || now - looked_ns_ < kIdle) return;
  looked_ns_ = now;
  const std::uint64_t then = std::exchange(taken_then_, taken_);
  for (auto slab = slabs_.begin(); slab != slabs_.end() && count_.bytes > kFloor;) {
    const bool unused = std::ranges::all_of(slab->rings, [&](const LentRing& ring) { return ring.used <= then && ring.free(); });
    slab = unused ? give_back(slab) : std::next(slab);
  }
}

// A ring's head stays: its counters go on, and both ends know them.
bool RingPool::look_at_idle() {
  const std::scoped_lock lock(slabs_mutex_);
  for (Slab& slab : slabs_) {
    for (LentRing& ring : slab.rings) {
      if (!ring.take_idle()) continue;
      const std::uint32_t extent = ring.extent.load(std::memory_order_relaxed);
      const bool idle = std::exchange(ring.used_then, ring.used) == ring.used && extent > 0 && ring.empty();
      if (idle && resident() > kFloor && base::discard(ring.memory->data(), ring.bytes)) {
        ring.extent.store(0, std::memory_order_relaxed);
        resident_.fetch_sub(extent);
      }
      ring.give_back();
    }
  }
  return resident_.load() > kFloor;
}

bool RingPool::empty(const StreamRings& of) const {
  return std::ranges::all_of(slabs_, [&](const Slab& slab) {
    return std::ranges::all_of(slab.rings, [&](const LentRing& ring) { return ring.owner != &of || ring.empty(); });
  });
}

std::vector<nic::SharedBuffer> RingPool::memory(const StreamRings& of) const {
  std::vector<nic::SharedBuffer> all;
  for (const Slab& slab : slabs_) {
    if (std::ranges::any_of(slab.rings, [&](const LentRing& ring) { return ring.owner == &of; })) all.push_back(slab.memory);
  }
  return all;
}

}  // namespace lacuna::protocol
