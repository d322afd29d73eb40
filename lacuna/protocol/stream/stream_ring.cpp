#include "lacuna/protocol/stream/stream_ring.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace lacuna::protocol {
namespace {

constexpr std::size_t kNarrow = 1;  // the ring of narrow transits

// Extra rings.
constexpr std::int64_t kLeastExtra = 8 << 10;
constexpr std::size_t kLeastMemory = 1 << 20;  // bytes of each request to the NIC
constexpr std::size_t kKeptMemory = 16 << 20;  // bytes that stay allocated while empty

bool take_if_free(StreamRing& ring) {
  if (ring.taken || !ring.empty()) return false;
  ring.transit = Transit::wide;
  if (!ring.populated) base::populate(ring.memory, sizeof(RingMemory) + ring.bytes, true);
  ring.populated = ring.taken = true;
  return true;
}

}  // namespace

Result<void> StreamRings::make(nic::Context& context) {
  constexpr std::size_t kShorter = kRings - 1;
  memory_ = LACUNA_TRY(
      nic::RegisteredBuffer::create(context, static_cast<std::int64_t>(kRings * sizeof(RingMemory) + kShorter * kBytes + kLongBytes)));
  std::byte* at = memory_.buffer.data();
  for (std::size_t i = 0; i < kRings; ++i) {
    rings_[i].memory = reinterpret_cast<RingMemory*>(at);
    rings_[i].rkey = memory_.region.rkey();
    rings_[i].bytes = i < kShorter ? kBytes : kLongBytes;
    at += sizeof(RingMemory) + rings_[i].bytes;
  }
  return {};
}

Result<StreamRing*> StreamRings::take(nic::Context& context, std::int64_t bytes, bool answered, Transit transit) {
  if (memory_.buffer.data() == nullptr) LACUNA_TRY(make(context));
  if (transit != Transit::wide && take_if_free(rings_[kNarrow])) {  // a direct copy needs no more than its head
    rings_[kNarrow].transit = transit;
    return &rings_[kNarrow];
  }
  if (std::cmp_greater(bytes, kBytes) && take_if_free(rings_.back())) return &rings_.back();
  for (std::size_t k = 1; k < kRings; ++k) {
    const std::size_t i = (last_ + k) % (kRings - 1);
    if ((i == 0 && !answered) || !take_if_free(rings_[i])) continue;
    last_ = i;
    return &rings_[i];
  }
  return nullptr;
}

// Rings of one size lie in one registered buffer, because each buffer takes a key of the NIC.
Result<StreamRing*> StreamRings::take_extra(nic::Context& context, std::int64_t bytes) {
  const auto size =
      static_cast<std::uint32_t>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(bytes, kLeastExtra, kMostBytes))));
  for (Extra& extra : extras_) {
    if (extra.rings.front().bytes != size) continue;
    const auto free = std::ranges::find_if(extra.rings, &take_if_free);
    if (free != extra.rings.end()) return &*free;
  }
  trim();
  const std::size_t each = sizeof(RingMemory) + size;
  const std::size_t count = std::max<std::size_t>(1, kLeastMemory / each);
  Extra made;
  made.memory = LACUNA_TRY(nic::RegisteredBuffer::create(context, static_cast<std::int64_t>(count * each)));
  for (std::size_t i = 0; i < count; ++i)
    made.rings.push_back(
        {.memory = reinterpret_cast<RingMemory*>(made.memory.buffer.data() + i * each), .bytes = size, .rkey = made.memory.region.rkey()});
  extras_.push_back(std::move(made));
  StreamRing& first = extras_.back().rings.front();
  take_if_free(first);
  return &first;
}

// Frees the buffers whose rings are all empty, except for kKeptMemory bytes of them.
void StreamRings::trim() {
  std::size_t kept = 0;
  std::erase_if(extras_, [&](const Extra& extra) {
    if (!std::ranges::all_of(extra.rings, [](const StreamRing& ring) { return !ring.taken && ring.empty(); })) return false;
    kept += extra.memory.buffer.size();
    return kept > kKeptMemory;
  });
}

std::int64_t StreamRings::extra_bytes() const {
  std::int64_t bytes = 0;
  for (const Extra& extra : extras_) {
    for (const StreamRing& ring : extra.rings) bytes += ring.taken || !ring.empty() ? ring.bytes : 0;
  }
  return bytes;
}

void StreamRings::end(Channel& channel) {
  if (memory_.buffer.size() > 0) channel.keep(std::move(memory_));
  for (Extra& extra : extras_) channel.keep(std::move(extra.memory));
}

bool StreamRings::empty() const {
  return std::ranges::all_of(rings_, &StreamRing::empty) &&
         std::ranges::all_of(extras_, [](const Extra& extra) { return std::ranges::all_of(extra.rings, &StreamRing::empty); });
}

}  // namespace lacuna::protocol
