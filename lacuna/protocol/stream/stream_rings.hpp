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

  StreamRings() = default;
  StreamRings(const StreamRings&) = delete;  // the pool knows where it is
  StreamRings& operator=(const StreamRings&) = delete;
  StreamRings(StreamRings&&) = delete;
  StreamRings& operator=(StreamRings&&) = delete;
  ~StreamRings() = default;

  /// Takes an empty ring for a message of so many bytes. `matched`: the message is matched already, or its receiver has
  /// other ways to hear of it. `transit`: the fastest one. Null: no ring is free. Errors: as RingPool::lend().
  Result<StreamRing*> take(RingPool& pool, std::int64_t bytes, bool matched, Transit transit);
  /// Takes an extra ring with room for so many bytes, or for kMostRing of them. Null: the pool has no room. Errors: as
  /// take().
  Result<StreamRing*> take_extra(RingPool& pool, std::int64_t bytes);
  int kept_rings = 0;  ///< as the pool counts them
  [[nodiscard]] bool keeps_for_matched(const LentRing& ring) const { return kept_.front() == &ring; }

 private:
  Result<StreamRing*> take_kept(RingPool& pool, std::size_t index, std::int64_t bytes, std::uint32_t most, bool matched);
  Result<StreamRing*> take_long(RingPool& pool, std::int64_t bytes, bool matched);
  std::array<LentRing*, kKept> kept_{};
  std::size_t last_ = 0;  // taken, except for the long one
};

}  // namespace lacuna::protocol
