#include "lacuna/protocol/stream/in_stream.hpp"

#include <algorithm>
#include <bit>

#include "lacuna/guide/usual_thresholds.hpp"

namespace lacuna::protocol {
namespace {

// A receiver that begins this much later than its sender was not waiting for the message.
constexpr std::int64_t kLate = 20'000;  // ns

// Times in one round of a ring that the sender is told what was emptied. Each takes a cache line from the sender's CPU.
constexpr std::uint64_t kTellings = 4;

}  // namespace

void SeenRings::look(const RingMemory& ring, std::uint32_t bytes) {
  const auto seen = seen_.find(&ring);
  const std::size_t before = seen != seen_.end() ? sizeof ring + seen->second : 0;
  const std::size_t now = sizeof ring + bytes;
  if (before >= now) return;
  base::populate(reinterpret_cast<const std::byte*>(&ring) + before, now - before, false);
  if (seen_.size() >= kMost) seen_.clear();
  seen_[&ring] = bytes;
}

Result<InStream> InStream::open(const Channel& channel, SeenRings& seen, const RingDescriptor& descriptor, std::int64_t bytes) {
  const std::uint32_t chunk = descriptor.lines * kLine;
  const std::uint32_t size = descriptor.pages * kPage;
  std::byte* memory = size <= kMostRing ? channel.rkey_ptr(descriptor.addr, descriptor.rkey, sizeof(RingMemory) + size) : nullptr;
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignof(RingMemory) != 0 || bytes <= 0 ||
      !std::has_single_bit(descriptor.lines) || chunk > size || size % chunk != 0 || descriptor.at >= size || descriptor.at % chunk != 0)
    return base::fail(base::Code::malformed, "the peer's ring is invalid");
  RingMemory& there = *reinterpret_cast<RingMemory*>(memory);
  seen.look(there, size);
  return InStream(channel, seen, there, descriptor, bytes);
}

// Goes on in the ring that has the rest. Once the sender is told, it may use the old ring for another message.
Result<void> InStream::follow() {
  if (chunks_ == 0) return base::fail(base::Code::malformed, "the peer moved a message of which nothing was there");
  InStream rest = LACUNA_TRY(open(*channel_, *seen_, base::read_once(ring_->rest), bytes_));
  ring_->emptied.store(first_ + chunks_ + 1, std::memory_order_release);
  rest.taken_ = taken_;
  *this = rest;
  return {};
}

// The time of a receiver that was waiting begins with the sender; the time of one that comes late begins with the
// receiver.
void InStream::begin() {
  if (bytes_ < guide::usual::kTimedMessage) return;
  const std::int64_t now = base::now_ns();
  const std::int64_t offered = ring_->began.load(std::memory_order_relaxed);
  began_ = now > offered && now - offered < kLate ? offered : now;
}

void InStream::tell_time(std::uint64_t last) {
  if (began_ == 0) return;
  ring_->took_ns.store(static_cast<std::uint64_t>(base::now_ns() - began_), std::memory_order_relaxed);
  ring_->took_of.store(last, std::memory_order_release);
}

bool InStream::take_directly(const DirectEnd& own) {
  begin();
  ring_->direct.receiver = own;
  return ring_->direct.settle(first_ + 1, DirectState::taken, DirectState::taking);
}

void InStream::copied() {
  taken_ = bytes_;
  tell_time(first_ + 1);
  ring_->emptied.store(first_ + 1, std::memory_order_release);
}

Result<bool> InStream::step(nic::Context& context, const layout::Layout& layout, std::byte* base) {
  const std::uint64_t filled = ring_->filled.load(std::memory_order_acquire) - first_;
  if (filled == chunks_) return false;
  if (taken_ == 0) begin();
  const std::uint64_t chunks = ring_bytes_ / chunk_;
  const std::uint64_t moved = ring_->moved.load(std::memory_order_relaxed);
  if (filled - chunks_ > chunks + (moved != 0 ? 1 : 0))
    return base::fail(base::Code::malformed, "the peer filled more of a ring than it has");
  const copy::Caching caching = bytes_ >= guide::usual::kHugeMessage ? copy::Caching::passed : copy::Caching::kept;
  for (; chunks_ < filled && taken_ < bytes_; ++chunks_) {
    if (moved != 0 && moved == first_ + chunks_ + 1) {
      LACUNA_TRY(follow());
      return true;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - taken_);
    const std::int64_t wanted = std::clamp<std::int64_t>(layout.size() - taken_, 0, bytes);
    if (wanted > 0) context.unpack(layout, base, taken_, wanted, ring_->data() + at_, caching);
    at_ = (at_ + chunk_) % ring_bytes_;
    taken_ += bytes;
    if (taken_ < bytes_ && chunks_ + 1 - told_ < chunks / kTellings) continue;
    told_ = chunks_ + 1;
    if (taken_ >= bytes_) tell_time(first_ + told_);
    ring_->emptied.store(first_ + told_, std::memory_order_release);
  }
  return true;
}

}  // namespace lacuna::protocol
