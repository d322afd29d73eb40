// The rings of memory that streams go through, as both ends see them.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "lacuna/guide/usual_thresholds.hpp"
#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/stream/direct_copy.hpp"

namespace lacuna::protocol {

inline constexpr std::uint32_t kLine = 64;
inline constexpr std::uint32_t kPage = 4096;
inline constexpr std::uint32_t kMostRing = 64 << 20;  ///< bytes

/// What the receiver has to know of a ring; the body of a head.
struct RingDescriptor {
  std::uint64_t addr = 0;
  std::uint64_t first = 0;  ///< `filled` before this message
  std::uint32_t rkey = 0;
  /// Where the first chunk is; a multiple of a chunk. The others follow, and go on at the ring's beginning
  std::uint32_t at = 0;
  std::uint32_t answer = 0;  ///< the number of the answer that the stream follows; 0: none
  std::uint16_t pages = 0;   ///< of the ring, 4096 bytes each
  std::uint16_t lines = 0;   ///< of each chunk except the last, 64 bytes each; a power of two
};

/// How the bytes of a message travel.
enum class Transit : std::uint8_t {
  wide,    ///< packed into several rings in turn, and all of each
  narrow,  ///< packed into a part of one ring
  direct,  ///< copied directly, past the ring
};

/// A ring as it lies in memory: the counters of both ends, and the bytes behind them. The sender writes all except the
/// line of `emptied`, and except the receiver's line of `direct`.
struct alignas(kPage) RingMemory {
  alignas(64) std::atomic<std::uint64_t> filled;
  /// If not 0: the chunk that makes `filled` this has no bytes, and the next one is the first of `rest`
  std::atomic<std::uint64_t> moved;
  RingDescriptor rest;
  alignas(64) std::atomic<std::uint64_t> emptied;
  std::atomic<std::uint64_t> took_of;  ///< `emptied` after the last message that was timed,
  std::atomic<std::uint64_t> took_ns;  ///< and the time of that message
  DirectMemory direct;                 ///< of both ends
  /// When the sender began with a message that is timed, in ns of base::now_ns()
  alignas(64) std::atomic<std::int64_t> began;
  [[nodiscard]] std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
  // Where the ends of a direct copy write their layouts, of a ring of `bytes` bytes: as much as a peer says, if it has
  // that.
  [[nodiscard]] std::span<std::byte> senders_half(std::uint32_t bytes, std::uint32_t said = ~0U) {
    return {data(), std::min(said, bytes / 2)};
  }
  [[nodiscard]] std::span<std::byte> receivers_half(std::uint32_t bytes, std::uint32_t said = ~0U) {
    return {data() + bytes / 2, std::min(said, bytes / 2)};
  }
};

/// One ring, as its sender knows it.
struct StreamRing {
  static constexpr std::uint32_t kNarrowBytes = guide::usual::kNarrowBytes;
  RingMemory* memory = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t part = 0;           ///< of them, from the first on, that the message goes round
  Transit transit = Transit::wide;  ///< of the message that is in it
  std::uint32_t rkey = 0;
  std::uint32_t at = 0;  ///< behind what was packed last
  [[nodiscard]] std::uint32_t ring_bytes() const { return transit == Transit::narrow ? std::min(kNarrowBytes, part) : part; }
  [[nodiscard]] bool empty() const {
    return memory->emptied.load(std::memory_order_acquire) == memory->filled.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool taken() const { return use_.load(std::memory_order_relaxed) == Use::message; }
  [[nodiscard]] bool free() const { return use_.load(std::memory_order_relaxed) == Use::none && empty(); }
  /// For a message; of one that was free. The thread that looks at idle memory has it for a moment at most.
  void take() {
    while (!claim(Use::message)) sched_yield();
  }
  /// For a look at idle memory. False: it is not to be had now.
  [[nodiscard]] bool take_idle() { return claim(Use::look); }
  void give_back() { use_.store(Use::none, std::memory_order_release); }

 private:
  enum class Use : std::uint8_t { none, message, look };
  [[nodiscard]] bool claim(Use by) {
    Use none = Use::none;
    return use_.compare_exchange_strong(none, by, std::memory_order_acquire);
  }
  std::atomic<Use> use_ = Use::none;
};

/// A ring that is taken until it is used, or until the hold ends.
class RingHold {
 public:
  explicit RingHold(StreamRing& ring) : ring_(&ring) {}
  RingHold(RingHold&& other) noexcept : ring_(std::exchange(other.ring_, nullptr)) {}
  RingHold& operator=(RingHold&& other) noexcept {
    std::swap(ring_, other.ring_);
    return *this;
  }
  RingHold(const RingHold&) = delete;
  RingHold& operator=(const RingHold&) = delete;
  ~RingHold() {
    if (ring_ != nullptr) ring_->give_back();
  }
  [[nodiscard]] std::uint32_t room() const { return ring_->ring_bytes(); }
  [[nodiscard]] StreamRing& ring() const { return *ring_; }
  [[nodiscard]] StreamRing& use() { return *std::exchange(ring_, nullptr); }

 private:
  StreamRing* ring_;
};

}  // namespace lacuna::protocol
