// The rings that one peer is sent streams through.
#pragma once

#include <array>

#include "lacuna/protocol/stream/ring_pool.hpp"

namespace lacuna::protocol {

/// Some rings stay a peer's, used in turn, as long as the pool needs them for no other: one for messages that are
/// matched already, one for long messages, and three others. Extra rings are lent for one message.
class StreamRings {
 public:
  static constexpr std::size_t kKept = 5;
  static constexpr std::uint32_t kBytes = 512 << 10;    ///< of a ring, at most
  static constexpr std::uint32_t kLongBytes = 2 << 20;  ///< of that for long messages, at most
  /// Pages come to rings by so many bytes at a time: a multiple of each chunk.
  static constexpr std::int64_t kStep = guide::usual::kMostChunk;

  StreamRings() = default;
  StreamRings(const StreamRings&) = delete;  // the pool knows where it is
  StreamRings& operator=(const StreamRings&) = delete;
  StreamRings(StreamRings&&) = delete;
  StreamRings& operator=(StreamRings&&) = delete;
  ~StreamRings() = default;

  /// Takes an empty ring for a message of so many bytes. `matched`: the message is matched already, or its receiver has
  /// other ways to hear of it. `transit`: the fastest one. `keeps_pace`: its receiver takes it while it is packed, so
  /// it may go round a part of the ring. Null: no ring is free. Errors: as RingPool::lend().
  Result<StreamRing*> take(RingPool& pool, std::int64_t bytes, bool matched, Transit transit, bool keeps_pace = false);
  /// Takes an extra ring with room for so many bytes, or for kMostRing of them. Null: the pool has no room. Errors: as
  /// take().
  Result<StreamRing*> take_extra(RingPool& pool, std::int64_t bytes);
  int kept_rings = 0;  ///< as the pool counts them
  [[nodiscard]] bool keeps_for_matched(const LentRing& ring) const { return kept_.front() == &ring; }

 private:
  struct Message {
    std::int64_t bytes = 0;
    bool matched = false;
    std::int64_t extent = 0;  // bytes of its ring that have to have pages
    std::int64_t step = 0;    // and that get them beyond those it has
    bool pays = false;        // for a step
    [[nodiscard]] std::int64_t extent_of(const LentRing& ring) const {
      const std::int64_t now = ring.extent.load(std::memory_order_relaxed);
      return std::max(extent, pays ? std::min(now + step, bytes) : 0);
    }
  };
  [[nodiscard]] std::int64_t count_pages();
  Result<StreamRing*> take_kept(RingPool& pool, std::size_t index, const Message& message, std::uint32_t most);
  Result<StreamRing*> take_long(RingPool& pool, const Message& message);
  Result<StreamRing*> take_usual(RingPool& pool, const Message& message, std::uint32_t usual, std::int64_t extent);
  Result<void> add_pages(RingPool& pool, Message message, std::uint32_t usual);
  std::array<LentRing*, kKept> kept_{};
  std::int64_t sent_ = 0;  // bytes, since the rings have pages
  std::size_t last_ = 0;   // taken, except for the long one
};

}  // namespace lacuna::protocol
