#include "lacuna/protocol/stream/stream.hpp"

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

// A receiver that begins so long after its sender was not there.
constexpr std::int64_t kLate = 20'000;  // ns

// What packing would take, about.
constexpr std::int64_t kBytesPerNs = 8;
constexpr std::int64_t kLeastPatience = 5'000;  // ns: a descriptor's way through a host's MPI, and back

// How often in a window's round the sender is told what was emptied: a line to take from it each time.
constexpr std::uint64_t kTellings = 4;

// Extra places.
constexpr std::size_t kNarrow = 1;  // the window of narrow transits
constexpr std::uint32_t kNarrowChunks = 8;
constexpr std::int64_t kLeastExtra = 8 << 10;
constexpr std::size_t kLeastMemory = 1 << 20;  // that is asked of the NIC at once
constexpr std::size_t kKeptMemory = 16 << 20;  // though nothing is in it

bool taken(Windows::Place& place) {
  if (place.taken || !place.empty()) return false;
  place.transit = Transit::wide;
  if (!place.populated) base::populate(place.memory, sizeof(WindowMemory) + place.bytes, true);
  place.populated = place.taken = true;
  return true;
}

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
    places_[i].rkey = memory_.region.rkey();
    places_[i].bytes = i < kShorter ? kBytes : kLongBytes;
    at += sizeof(WindowMemory) + places_[i].bytes;
  }
  return {};
}

Result<Windows::Place*> Windows::take(nic::Context& context, std::int64_t bytes, bool answered, Transit transit) {
  if (memory_.buffer.data() == nullptr) LACUNA_TRY(make(context));
  if (transit != Transit::wide && taken(places_[kNarrow])) {  // a direct copy needs no more than its head
    places_[kNarrow].transit = transit;
    return &places_[kNarrow];
  }
  if (std::cmp_greater(bytes, kBytes) && taken(places_.back())) return &places_.back();
  for (std::size_t k = 1; k < kWindows; ++k) {
    const std::size_t i = (last_ + k) % (kWindows - 1);
    if ((i == 0 && !answered) || !taken(places_[i])) continue;
    last_ = i;
    return &places_[i];
  }
  return nullptr;
}

// Places of one size lie together, for each piece of memory takes a key of the NIC.
Result<Windows::Place*> Windows::take_extra(nic::Context& context, std::int64_t bytes) {
  const auto size =
      static_cast<std::uint32_t>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(bytes, kLeastExtra, kMostBytes))));
  for (Extra& extra : extras_) {
    if (extra.places.front().bytes != size) continue;
    const auto free = std::ranges::find_if(extra.places, &taken);
    if (free != extra.places.end()) return &*free;
  }
  trim();
  const std::size_t each = sizeof(WindowMemory) + size;
  const std::size_t count = std::max<std::size_t>(1, kLeastMemory / each);
  Extra made;
  made.memory = LACUNA_TRY(nic::RegisteredBuffer::create(context, static_cast<std::int64_t>(count * each)));
  for (std::size_t i = 0; i < count; ++i)
    made.places.push_back({.memory = reinterpret_cast<WindowMemory*>(made.memory.buffer.data() + i * each),
                           .bytes = size,
                           .rkey = made.memory.region.rkey()});
  extras_.push_back(std::move(made));
  Place& first = extras_.back().places.front();
  taken(first);
  return &first;
}

// Gives the memory back that nothing is in, all but some that comes in handy.
void Windows::trim() {
  std::size_t kept = 0;
  std::erase_if(extras_, [&](const Extra& extra) {
    if (!std::ranges::all_of(extra.places, [](const Place& place) { return !place.taken && place.empty(); })) return false;
    kept += extra.memory.buffer.size();
    return kept > kKeptMemory;
  });
}

std::int64_t Windows::extra_bytes() const {
  std::int64_t bytes = 0;
  for (const Extra& extra : extras_) {
    for (const Place& place : extra.places) bytes += place.taken || !place.empty() ? place.bytes : 0;
  }
  return bytes;
}

void Windows::end(Channel& channel) {
  if (memory_.buffer.size() > 0) channel.keep(std::move(memory_));
  for (Extra& extra : extras_) channel.keep(std::move(extra.memory));
}

bool Windows::empty() const {
  return std::ranges::all_of(places_, &Place::empty) &&
         std::ranges::all_of(extras_, [](const Extra& extra) { return std::ranges::all_of(extra.places, &Place::empty); });
}

OutStream::OutStream(Windows::Place& place, const Stores& stores, std::int64_t bytes)
    : place_(&place), bytes_(bytes), chunk_(chunk_of(bytes, stores.caching())) {
  if (place.transit == Transit::narrow) chunk_ = std::min(chunk_, Windows::kNarrowBytes / kNarrowChunks);
  begin(place);
}

void OutStream::begin(Windows::Place& place) {
  place_ = &place;
  place.memory->moved.store(0, std::memory_order_relaxed);
  next_ = at_ = (place.at + chunk_ - 1) / chunk_ * chunk_ % place.ring_bytes();
  first_ = emptied_ = place.memory->filled.load(std::memory_order_relaxed);
  if (bytes_ >= WindowMemory::kTimed) place.memory->began.store(base::now_ns(), std::memory_order_relaxed);
}

void OutStream::offer_directly(const DirectEnd& own, bool patient) {
  patient_until_ = patient ? INT64_MAX : base::now_ns() + bytes_ / kBytesPerNs + kLeastPatience;
  place_->memory->direct.offer(first_ + 1, own);
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
  place_->memory->filled.store(first_ + 1, std::memory_order_relaxed);
}

void OutStream::move_to(Windows::Place& place) {
  Windows::Place& old = *place_;
  give_back();
  begin(place);
  old.memory->rest = describe(0);
  const std::uint64_t last = old.memory->filled.load(std::memory_order_relaxed) + 1;
  old.memory->moved.store(last, std::memory_order_relaxed);
  old.memory->filled.store(last, std::memory_order_release);
}

Result<bool> OutStream::step(nic::Context& context, Stores& stores, const layout::Layout& layout, const std::byte* base) {
  bool moved = false;
  WindowMemory& window = *place_->memory;
  const std::uint64_t places = place_->ring_bytes() / chunk_;
  for (std::uint64_t filled = window.filled.load(std::memory_order_relaxed); packed_ < bytes_; ++filled) {
    if (filled - emptied_ >= places) {
      emptied_ = window.emptied.load(std::memory_order_acquire);
      if (emptied_ > filled) return base::fail(base::Code::malformed, "the peer emptied more of a window than was filled");
      if (filled - emptied_ >= places) break;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - packed_);
    stores.pack(context, layout, base, packed_, bytes, window.data() + next_);
    window.filled.store(filled + 1, std::memory_order_release);
    next_ = (next_ + chunk_) % place_->ring_bytes();
    packed_ += bytes;
    moved = true;
  }
  return moved;
}

void Seen::look(const WindowMemory& window, std::uint32_t bytes) {
  const auto seen = seen_.find(&window);
  if (seen != seen_.end() && seen->second >= bytes) return;
  base::populate(&window, sizeof window + bytes, false);
  if (seen_.size() >= kMost) seen_.clear();
  seen_[&window] = bytes;
}

Result<InStream> InStream::open(const Channel& channel, Seen& seen, const Window& window, std::int64_t bytes) {
  const std::uint32_t chunk = window.lines * kLine;
  const std::uint32_t size = window.pages * kPage;
  std::byte* memory = size <= Windows::kMostBytes ? channel.rkey_ptr(window.addr, window.rkey, sizeof(WindowMemory) + size) : nullptr;
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignof(WindowMemory) != 0 || bytes <= 0 ||
      !std::has_single_bit(window.lines) || chunk > size || size % chunk != 0 || window.at >= size || window.at % chunk != 0)
    return base::fail(base::Code::malformed, "the peer's window is none");
  WindowMemory& there = *reinterpret_cast<WindowMemory*>(memory);
  seen.look(there, size);
  return InStream(channel, seen, there, window, bytes);
}

// To where the rest is. The window that it leaves may be used for something else once that is said.
Result<void> InStream::follow() {
  if (chunks_ == 0) return base::fail(base::Code::malformed, "the peer moved a message of which nothing was there");
  InStream rest = LACUNA_TRY(open(*channel_, *seen_, base::read_once(window_->rest), bytes_));
  window_->emptied.store(first_ + chunks_ + 1, std::memory_order_release);
  rest.taken_ = taken_;
  *this = rest;
  return {};
}

// A receiver that was there already has waited for the first bytes, whoever brings them; for one that comes late the time begins with it.
void InStream::begin() {
  if (bytes_ < WindowMemory::kTimed) return;
  const std::int64_t now = base::now_ns();
  const std::int64_t offered = window_->began.load(std::memory_order_relaxed);
  began_ = now > offered && now - offered < kLate ? offered : now;
}

void InStream::tell_time(std::uint64_t last) {
  if (began_ == 0) return;
  window_->took_ns.store(static_cast<std::uint64_t>(base::now_ns() - began_), std::memory_order_relaxed);
  window_->took_of.store(last, std::memory_order_release);
}

bool InStream::take_directly(const DirectEnd& own) {
  begin();
  window_->direct.receiver = own;
  return window_->direct.settle(first_ + 1, DirectState::taken);
}

void InStream::copied() {
  taken_ = bytes_;
  tell_time(first_ + 1);
  window_->emptied.store(first_ + 1, std::memory_order_release);
}

Result<bool> InStream::step(nic::Context& context, const layout::Layout& layout, std::byte* base) {
  const std::uint64_t filled = window_->filled.load(std::memory_order_acquire) - first_;
  if (filled == chunks_) return false;
  if (taken_ == 0) begin();
  const std::uint64_t places = window_bytes_ / chunk_;
  const std::uint64_t moved = window_->moved.load(std::memory_order_relaxed);
  if (filled - chunks_ > places + (moved != 0 ? 1 : 0))
    return base::fail(base::Code::malformed, "the peer filled more of a window than it has");
  const copy::Caching caching = bytes_ >= kHuge ? copy::Caching::passed : copy::Caching::kept;
  for (; chunks_ < filled && taken_ < bytes_; ++chunks_) {
    if (moved != 0 && moved == first_ + chunks_ + 1) {
      LACUNA_TRY(follow());
      return true;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - taken_);
    const std::int64_t wanted = std::clamp<std::int64_t>(layout.size() - taken_, 0, bytes);
    if (wanted > 0) context.unpack(layout, base, taken_, wanted, window_->data() + at_, caching);
    at_ = (at_ + chunk_) % window_bytes_;
    taken_ += bytes;
    if (taken_ < bytes_ && chunks_ + 1 - told_ < places / kTellings) continue;
    told_ = chunks_ + 1;
    if (taken_ >= bytes_) tell_time(first_ + told_);
    window_->emptied.store(first_ + told_, std::memory_order_release);
  }
  return true;
}

}  // namespace lacuna::protocol
