// The rings of memory that streams go through, and which ring a message gets.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <list>
#include <utility>

#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/stream/direct_copy.hpp"

namespace lacuna::protocol {

inline constexpr std::uint32_t kLine = 64;
inline constexpr std::uint32_t kPage = 4096;

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
  static constexpr std::int64_t kTimed = 32 << 10;  ///< bytes of a message, at least, that is timed
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
};

/// One ring, as its sender knows it.
struct StreamRing {
  static constexpr std::uint32_t kNarrowBytes = 128 << 10;  ///< of the part that a narrow transit uses
  RingMemory* memory = nullptr;
  std::uint32_t bytes = 0;
  Transit transit = Transit::wide;  ///< of the message that is in it
  std::uint32_t rkey = 0;
  std::uint32_t at = 0;  ///< behind what was packed last
  bool taken = false;
  bool populated = false;
  [[nodiscard]] std::uint32_t ring_bytes() const { return transit == Transit::narrow ? kNarrowBytes : bytes; }
  [[nodiscard]] bool empty() const {
    return memory == nullptr || memory->emptied.load(std::memory_order_acquire) == memory->filled.load(std::memory_order_relaxed);
  }
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
    if (ring_ != nullptr) ring_->taken = false;
  }
  [[nodiscard]] std::uint32_t bytes() const { return ring_->bytes; }
  [[nodiscard]] StreamRing& ring() const { return *ring_; }
  [[nodiscard]] StreamRing& use() { return *std::exchange(ring_, nullptr); }

 private:
  StreamRing* ring_;
};

/// The rings of this end's memory for one peer, used in turn. One is kept for messages that are matched already, and
/// one for long messages. Extra rings are made as they are asked for.
class StreamRings {
 public:
  static constexpr std::size_t kRings = 5;
  static constexpr std::uint32_t kBytes = 512 << 10;
  static constexpr std::uint32_t kLongBytes = 2 << 20;
  static constexpr std::uint32_t kMostBytes = 64 << 20;  ///< of an extra ring

  /// Takes an empty ring for a message of so many bytes. `answered`: the message is matched already. `transit`: the
  /// fastest one. Null: no ring is free. Errors: those of Context::allocate and register_memory.
  Result<StreamRing*> take(nic::Context& context, std::int64_t bytes, bool answered, Transit transit);
  /// Takes an extra ring with room for so many bytes, or for kMostBytes of them. Errors: as take().
  Result<StreamRing*> take_extra(nic::Context& context, std::int64_t bytes);
  /// Whether all that was packed was unpacked.
  [[nodiscard]] bool empty() const;
  /// Ends them. The memory that the peer may still reach stays until the peer cannot (QueuePair::keep).
  void end(Channel& channel);
  /// Of the extra rings that are taken or not yet empty.
  [[nodiscard]] std::int64_t extra_bytes() const;

 private:
  struct Extra {
    nic::RegisteredBuffer memory;
    std::deque<StreamRing> rings;  // of one size
  };
  Result<void> make(nic::Context& context);
  void trim();
  nic::RegisteredBuffer memory_;
  std::array<StreamRing, kRings> rings_{};
  std::size_t last_ = 0;  // taken, except for the long one
  std::list<Extra> extras_;
};

}  // namespace lacuna::protocol
