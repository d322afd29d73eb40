#include "lacuna/protocol/stream.hpp"

#include <algorithm>

namespace lacuna::protocol {
namespace {

constexpr std::int64_t kLeastChunk = 4 << 10;
constexpr std::int64_t kMostChunk = 32 << 10;
constexpr std::int64_t kChunks = 8;  // of a message, until they become too short or too long

std::uint64_t places(std::uint32_t chunk) { return static_cast<std::uint64_t>(Windows::kWindowBytes) / chunk; }

}  // namespace

std::uint32_t chunk_of(std::int64_t bytes) {
  const std::int64_t chunk = std::clamp(bytes / kChunks, kLeastChunk, kMostChunk);
  return static_cast<std::uint32_t>((chunk + 63) / 64 * 64);
}

Result<Windows::Memory*> Windows::take(nic::Context& context, bool answered) {
  if (memory_.buffer.data() == nullptr)
    memory_ = LACUNA_TRY(nic::RegisteredBuffer::create(context, static_cast<std::int64_t>(kWindows * sizeof(Memory))));
  for (std::size_t i = answered ? 0 : 1; i < kWindows; ++i) {
    Memory& window = windows()[i];
    if (used_[i] || window.emptied.load(std::memory_order_acquire) != window.filled.load(std::memory_order_relaxed)) continue;
    used_[i] = true;
    return &window;
  }
  return nullptr;
}

bool Windows::empty() const {
  if (memory_.buffer.data() == nullptr) return true;
  for (std::size_t i = 0; i < kWindows; ++i) {
    const Memory& window = windows()[i];
    if (window.emptied.load(std::memory_order_acquire) != window.filled.load(std::memory_order_relaxed)) return false;
  }
  return true;
}

Window Windows::describe(const Memory& window, std::uint32_t chunk, std::uint32_t answer) const {
  return {.addr = reinterpret_cast<std::uint64_t>(&window),
          .first = window.filled.load(std::memory_order_relaxed),
          .rkey = memory_.region.rkey(),
          .chunk = chunk,
          .answer = answer};
}

Result<bool> OutStream::step(nic::Context& context, const layout::Layout& layout, const std::byte* base) {
  bool moved = false;
  for (std::uint64_t filled = window_->filled.load(std::memory_order_relaxed); packed_ < bytes_; ++filled) {
    if (filled - emptied_ >= places(chunk_)) {
      emptied_ = window_->emptied.load(std::memory_order_acquire);
      if (emptied_ > filled) return base::fail(base::Code::malformed, "the peer emptied more of a window than was filled");
      if (filled - emptied_ >= places(chunk_)) break;
    }
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - packed_);
    context.pack(layout, base, packed_, bytes, window_->bytes.data() + filled % places(chunk_) * chunk_);
    window_->filled.store(filled + 1, std::memory_order_release);
    packed_ += bytes;
    moved = true;
  }
  return moved;
}

Result<InStream> InStream::open(const Channel& channel, const Window& window, std::int64_t bytes) {
  std::byte* memory = channel.rkey_ptr(window.addr, window.rkey, sizeof(Windows::Memory));
  if (memory == nullptr || reinterpret_cast<std::uintptr_t>(memory) % alignof(Windows::Memory) != 0 || bytes <= 0 || window.chunk < 64 ||
      window.chunk > Windows::kWindowBytes)
    return base::fail(base::Code::malformed, "the peer's window is none");
  return InStream(*reinterpret_cast<Windows::Memory*>(memory), window, bytes);
}

Result<bool> InStream::step(nic::Context& context, const layout::Layout& layout, std::byte* base) {
  const std::uint64_t filled = window_->filled.load(std::memory_order_acquire) - first_;
  if (filled == chunks_) return false;
  if (filled - chunks_ > places(chunk_)) return base::fail(base::Code::malformed, "the peer filled more of a window than it has");
  for (; chunks_ < filled && taken_ < bytes_; ++chunks_) {
    const std::int64_t bytes = std::min<std::int64_t>(chunk_, bytes_ - taken_);
    const std::int64_t wanted = std::clamp<std::int64_t>(layout.size() - taken_, 0, bytes);
    const std::byte* from = window_->bytes.data() + (first_ + chunks_) % places(chunk_) * chunk_;
    if (wanted > 0) context.unpack(layout, base, taken_, wanted, from);
    taken_ += bytes;
    window_->emptied.store(first_ + chunks_ + 1, std::memory_order_release);
  }
  return true;
}

}  // namespace lacuna::protocol
