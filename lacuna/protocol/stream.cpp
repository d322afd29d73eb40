#include "lacuna/protocol/stream.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lacuna::protocol {
namespace {

// Lines that come again soon are in the other CPU's L2 cache still, and slow to write: 256 KiB over and over move 8 GB/s on an EPYC of 2022. In
// 1.5 MiB, half as much again as its L2 cache, they come back from the L3 cache, and move 23 GB/s. More is not better for messages
// that are short themselves: 4 MiB in each direction are more pages than the TLB has, and 96 KiB in blocks take 7.1 us instead
// of 3.9. A message of 1 MiB goes round 2 MiB on its own, with 29 GB/s, and round 512 KiB with 17.
constexpr std::int64_t kLeastChunk = 4 << 10;
constexpr std::int64_t kMostChunk = 64 << 10;
constexpr std::int64_t kShort = 32 << 10;  // a message; chunks of longer ones are twice the least, and so are those that pass caches by
constexpr std::int64_t kChunks = 32;       // of a message, until they become too short or too long: both CPUs shall have something to do

// A message that is in no cache when it is all there. If its receiver passes the caches by, 64 MiB take 5.0 ms instead of 5.7.
constexpr std::int64_t kHuge = 8 << 20;

// How often in a window's round the sender is told what was emptied: a line to take from it each time.
constexpr std::uint64_t kTellings = 4;

}  // namespace

std::uint32_t chunk_of(std::int64_t bytes, copy::Caching caching) {
  const std::int64_t least = (bytes <= kShort ? kLeastChunk : 2 * kLeastChunk) * (caching == copy::Caching::passed ? 2 : 1);
  return static_cast<std::uint32_t>(
      std::clamp(static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes / kChunks))), least, kMostChunk));
}

Result<void> Windows::make(nic::Context& context) {
  constexpr std::size_t kShorter = kWindows - 1;
  memory_ = LACUNA_TRY(
      nic::RegisteredBuffer::create(context, static_cast<std::int64_t>(kWindows * sizeof(WindowMemory) + kShorter * kBytes + kLongBytes)));
  std::byte* at = memory_.buffer.data();
  for (std::size_t i = 0; i < kWindows; ++i) {
    places_[i].memory = reinterpret_cast<WindowMemory*>(at);
    places_[i].bytes = i < kShorter ? kBytes : kLongBytes;
    at += sizeof(WindowMemory) + places_[i].bytes;
  }
  return {};
}

Result<Windows::Place*> Windows::take(nic::Context& context, std::int64_t bytes, bool answered) {
  if (memory_.buffer.data() == nullptr) LACUNA_TRY(make(context));
  const auto taken = [&](Place& place) {
    if (place.taken || place.memory->emptied.load(std::memory_order_acquire) != place.memory->filled.load(std::memory_order_relaxed))
      return false;
    if (!place.populated) base::populate(place.memory, sizeof(WindowMemory) + place.bytes, true);
    place.populated = place.taken = true;
    return true;
  };
  if (std::cmp_greater(bytes, kBytes) && taken(places_.back())) return &places_.back();
  for (std::size_t k = 1; k < kWindows; ++k) {
    const std::size_t i = (last_ + k) % (kWindows - 1);
    if ((i == 0 && !answered) || !taken(places_[i])) continue;
    last_ = i;
    return &places_[i];
  }
  return nullptr;
}

bool Windows::empty() const {
  return std::ranges::all_of(places_, [](const Place& place) {
    return place.memory == nullptr ||
           place.memory->emptied.load(std::memory_order_acquire) == place.memory->filled.load(std::memory_order_relaxed);
  });
}

OutStream::OutStream(const Windows& windows, Windows::Place& place, const Stores& stores, std::int64_t bytes)
    : place_(&place),
      rkey_(windows.rkey()),
      bytes_(bytes),
      chunk_(chunk_of(bytes, stores.caching())),
      at_((place.at + chunk_ - 1) / chunk_ * chunk_ % place.bytes),
      next_(at_),
      first_(place.memory->filled.load(std::memory_order_relaxed)),
      emptied_(first_) {}

Result<bool> OutStream::step(nic::Context& context, Stores& stores, const layout::Layout& layout, const std::byte* base) {
  bool moved = false;
  WindowMemory& window = *place_->memory;
  const std::uint64_t places = place_->bytes / chunk_;
  for (std::uint64_t filled = window.filled.load(std::memory_order_relaxed); packed_ < bytes_; ++filled) {
    if (filled - emptied_ >= places) {
      emptied_ = window.emptied.load(std::memory_order_acquire);
      if (emptied_ > filled) return base::fail(base::Code::malformed, "the peer emptied more of a window than was filled");
      if (filled - emptied_ >= places) break;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - packed_);
    stores.pack(context, layout, base, packed_, bytes, window.data() + next_);
    window.filled.store(filled + 1, std::memory_order_release);
    next_ = (next_ + chunk_) % place_->bytes;
    packed_ += bytes;
    moved = true;
  }
  return moved;
}

void Seen::look(const WindowMemory& window, std::uint32_t bytes) {
  if (std::ranges::find(seen_, &window) != seen_.end()) return;
  base::populate(&window, sizeof window + bytes, false);
  seen_.at(next_++ % seen_.size()) = &window;
}

Result<InStream> InStream::open(const Channel& channel, Seen& seen, const Window& window, std::int64_t bytes) {
  const std::uint32_t chunk = window.lines * kLine;
  const std::uint32_t size = window.pages * kPage;
  std::byte* memory = size <= Windows::kLongBytes ? channel.rkey_ptr(window.addr, window.rkey, sizeof(WindowMemory) + size) : nullptr;
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignof(WindowMemory) != 0 || bytes <= 0 ||
      !std::has_single_bit(window.lines) || chunk > size || size % chunk != 0 || window.at >= size || window.at % chunk != 0)
    return base::fail(base::Code::malformed, "the peer's window is none");
  WindowMemory& there = *reinterpret_cast<WindowMemory*>(memory);
  seen.look(there, size);
  return InStream(there, window, bytes);
}

Result<bool> InStream::step(nic::Context& context, const layout::Layout& layout, std::byte* base) {
  const std::uint64_t filled = window_->filled.load(std::memory_order_acquire) - first_;
  if (filled == chunks_) return false;
  const std::uint64_t places = window_bytes_ / chunk_;
  if (filled - chunks_ > places) return base::fail(base::Code::malformed, "the peer filled more of a window than it has");
  const copy::Caching caching = bytes_ >= kHuge ? copy::Caching::passed : copy::Caching::kept;
  for (; chunks_ < filled && taken_ < bytes_; ++chunks_) {
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - taken_);
    const std::int64_t wanted = std::clamp<std::int64_t>(layout.size() - taken_, 0, bytes);
    if (wanted > 0) context.unpack(layout, base, taken_, wanted, window_->data() + at_, caching);
    at_ = (at_ + chunk_) % window_bytes_;
    taken_ += bytes;
    if (taken_ < bytes_ && chunks_ + 1 - told_ < places / kTellings) continue;
    told_ = chunks_ + 1;
    window_->emptied.store(first_ + told_, std::memory_order_release);
  }
  return true;
}

}  // namespace lacuna::protocol
