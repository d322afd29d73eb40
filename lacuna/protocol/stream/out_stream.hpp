// The sender's end of one stream.
//
// An offer (Communicator::offer) that has to be left behind at once moves to an extra ring with room for all the rest;
// the last chunk of the old ring says where the new one is. An offer may stand for a direct copy at first
// (direct_copy.hpp); then nothing is packed until the receiver refuses.
#pragma once

#include <algorithm>

#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/stream/stores.hpp"
#include "lacuna/protocol/stream/stream_ring.hpp"

namespace lacuna::protocol {

/// Bytes of the chunks of a message.
[[nodiscard]] std::uint32_t chunk_of(std::int64_t bytes, copy::Caching caching);

class OutStream {
 public:
  OutStream(StreamRing& ring, const Stores& stores, std::int64_t bytes);
  [[nodiscard]] RingDescriptor describe(std::uint32_t answer) const {
    return {.addr = reinterpret_cast<std::uint64_t>(ring_->memory),
            .first = first_,
            .rkey = ring_->rkey,
            .at = at_,
            .answer = answer,
            .pages = static_cast<std::uint16_t>(ring_->ring_bytes() / kPage),
            .lines = static_cast<std::uint16_t>(chunk_ / kLine)};
  }
  /// Packs as much as the ring has room for; true if that was something. Errors: malformed (the peer counts what was
  /// not sent).
  Result<bool> step(nic::Context& context, Stores& stores, const layout::Layout& layout, const std::byte* base);
  [[nodiscard]] bool done() const { return packed_ == bytes_; }
  /// `emptied` once all was received.
  [[nodiscard]] std::uint64_t last() const {
    return first_ + (ring_->transit == Transit::direct ? 1 : static_cast<std::uint64_t>((bytes_ + chunk_ - 1) / chunk_));
  }
  /// Bytes that are not packed yet.
  [[nodiscard]] std::int64_t left() const { return bytes_ - packed_; }
  /// Bytes that its ring has room for.
  [[nodiscard]] std::int64_t room() const { return ring_->ring_bytes(); }
  /// Bytes that a ring needs to take so many of the message.
  [[nodiscard]] std::int64_t ring_bytes_for(std::int64_t bytes) const { return std::max<std::int64_t>(chunk_, bytes); }
  /// The rest goes to another ring, which has to be empty.
  void move_to(StreamRing& ring);
  /// Offers a direct copy; nothing is packed yet. `patient`: the offer stands until it is withdrawn.
  void offer_directly(const DirectEnd& own, bool patient);
  [[nodiscard]] std::span<std::byte> own_wire() { return ring_->memory->senders_half(ring_->part); }
  [[nodiscard]] std::span<const std::byte> other_wire(const DirectEnd& said) const {
    return ring_->memory->receivers_half(ring_->part, said.wire);
  }
  /// Whether the offer stands, or was taken.
  [[nodiscard]] bool direct() const { return ring_->transit == Transit::direct; }
  [[nodiscard]] DirectMemory& direct_memory() const { return ring_->memory->direct; }
  [[nodiscard]] DirectState direct_state() const { return ring_->memory->direct.of(first_ + 1); }
  /// Whether the offer has stood as long as packing would take: so a message takes at most twice that.
  [[nodiscard]] bool waited_for_long() const { return base::now_ns() > patient_until_; }
  /// False: the offer is taken.
  bool withdraw();
  /// It will be packed.
  void pack_after_all() { ring_->transit = Transit::wide; }
  /// It was copied.
  void copied();
  /// The receiver knows nothing of it, and never will: its chunks count as read. Not after move_to().
  void take_back() {
    if (direct()) withdraw();
    ring_->memory->emptied.store(ring_->memory->filled.load(std::memory_order_relaxed), std::memory_order_relaxed);
    give_back();
  }
  /// The ring is free for the next message, once this one is done.
  void give_back() {
    ring_->at = next_;
    ring_->give_back();
  }

 private:
  void begin(StreamRing& ring);
  StreamRing* ring_;
  std::int64_t bytes_;
  std::int64_t packed_ = 0;
  std::uint32_t chunk_;
  std::uint32_t at_;       // where the first chunk is,
  std::uint32_t next_;     // and the next one
  std::uint64_t first_;    // `filled` before this message
  std::uint64_t emptied_;  // as it was read last
  std::int64_t patient_until_ = 0;
};

}  // namespace lacuna::protocol
