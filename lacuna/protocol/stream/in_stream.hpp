// The receiver's end of one stream. All that the sender's memory says may be false, and is checked.
#pragma once

#include <unordered_map>

#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/stream/stream_ring.hpp"

namespace lacuna::protocol {

/// The rings of a peer that this end has used before.
class SeenRings {
 public:
  /// Has the pages of a new ring, and those that have come to one, mapped at once.
  void look(const RingMemory& ring, std::uint32_t bytes);

 private:
  static constexpr std::size_t kMost = 1024;  // that are remembered
  std::unordered_map<const RingMemory*, std::uint32_t> seen_;
};

class InStream {
 public:
  /// Errors: malformed (an invalid ring).
  static Result<InStream> open(const Channel& channel, SeenRings& seen, const RingDescriptor& descriptor, std::int64_t bytes);
  /// Unpacks the chunks that have come, as far as the layout goes, and drops the rest. True if a chunk had come.
  /// Errors: malformed.
  Result<bool> step(nic::Context& context, const layout::Layout& layout, std::byte* base);
  [[nodiscard]] bool done() const { return taken_ == bytes_; }

  // Instead of step(), where the sender offers a direct copy.
  [[nodiscard]] bool offers_directly() const { return ring_->direct.of(first_ + 1) == DirectState::offered; }
  [[nodiscard]] DirectMemory& direct_memory() const { return ring_->direct; }
  /// False: the sender offers it no more. Then the receiver's half of the ring is the receiver's, until it says taken.
  bool begin_to_take() { return ring_->direct.settle(first_ + 1, DirectState::taking); }
  bool take_directly(const DirectEnd& own);
  [[nodiscard]] std::span<std::byte> own_wire() { return ring_->receivers_half(ring_bytes_); }
  [[nodiscard]] std::span<const std::byte> other_wire(const DirectEnd& said) const { return ring_->senders_half(ring_bytes_, said.wire); }
  void refuse_directly() { ring_->direct.settle(first_ + 1, DirectState::refused); }
  void refuse_what_was_begun() { ring_->direct.settle(first_ + 1, DirectState::refused, DirectState::taking); }
  void copied();

 private:
  InStream(const Channel& channel, SeenRings& seen, RingMemory& ring, const RingDescriptor& descriptor, std::int64_t bytes)
      : channel_(&channel),
        seen_(&seen),
        ring_(&ring),
        ring_bytes_(descriptor.pages * kPage),
        bytes_(bytes),
        chunk_(descriptor.lines * kLine),
        at_(descriptor.at),
        first_(descriptor.first) {}
  Result<void> follow();
  void begin();
  void tell_time(std::uint64_t last);
  const Channel* channel_;
  SeenRings* seen_;
  RingMemory* ring_;
  std::uint32_t ring_bytes_;
  std::int64_t bytes_;
  std::int64_t taken_ = 0;
  std::uint32_t chunk_;
  std::uint32_t at_;  // where the next chunk is
  std::uint64_t first_;
  std::uint64_t chunks_ = 0;  // taken
  std::uint64_t told_ = 0;    // of them
  std::int64_t began_ = 0;    // ns, if it is timed
};

}  // namespace lacuna::protocol
