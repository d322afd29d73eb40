// ring_pool: the memory of this rank that its peers read streams from. One bound holds for all peers together, so that
// a node of many ranks has as much as a node of few; a ring is lent to whichever peer is being sent to.
//
//   rings of a peer ── lend() ──▶ an idle ring │ new memory │ another peer's empty ring │ nothing: the pool is full
//                   ◀── the ring, until another peer needs it, or until it has been idle for long
//
// A thread gives back the pages of idle rings while the program makes no call. There is one as long as there is more
// memory than stays. It has a ring for a moment only, as a message would, and never moves or ends one.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/stream/idle_thread.hpp"
#include "lacuna/protocol/stream/stream_ring.hpp"

namespace lacuna::protocol {

class StreamRings;

/// A ring, and who has it.
struct LentRing : StreamRing {
  StreamRings* owner = nullptr;           ///< the peer's, as of the last message
  LentRing** kept_at = nullptr;           ///< where the owner keeps it for its next message; null: nowhere
  std::uint64_t used = 0;                 ///< when it was taken last, counted in rings that were taken
  std::uint64_t used_then = 0;            ///< `used` at the thread's last look
  std::atomic<std::uint32_t> extent = 0;  ///< its bytes that have pages, from the first on
};

class RingPool {
 public:
  static constexpr std::int64_t kLeastBytes = 1 << 20;  ///< of a pool
  static constexpr std::uint32_t kLeastRing = 8 << 10;

  /// `bound`: bytes of all rings together. `idle_thread`: pages go back without a call.
  RingPool(nic::Context& context, std::int64_t bound, bool idle_thread = false);

  /// Bytes of a ring that a peer is to keep now, and of the one that long messages get: fewer as more peers keep rings,
  /// and as the pool fills.
  [[nodiscard]] std::uint32_t usual_ring() const;
  [[nodiscard]] std::uint32_t long_ring() const;
  /// Whether few peers keep rings, and most of the pool is free.
  [[nodiscard]] bool roomy() const;

  /// Takes an empty ring of so many bytes, a power of two. `kept_at`: where the peer keeps it afterwards; null:
  /// nowhere. `matched`: its message is sure to be received, so it may have the memory that is held back for such
  /// messages. `extent`: as of use(). Null: there is no room. Errors: those of Context::allocate and register_memory.
  Result<StreamRing*> lend(StreamRings& to, std::uint32_t bytes, LentRing** kept_at, bool matched, std::int64_t extent);
  /// Takes one that its owner has kept. So many of its bytes get pages, if it has fewer: each page takes 2 us, as long
  /// as sending what 8 pages hold.
  void use(LentRing& ring, std::int64_t extent);
  /// Its owner keeps it no longer.
  void release(LentRing& ring) { take_from_owner(ring); }
  /// Gives back memory that no peer has used for a second or two. `now`: ns.
  void tidy(std::int64_t now);
  /// Gives back the pages of rings that were not used since the last look, but for some that stay. Any thread may call
  /// it. False: no more than what stays is there.
  bool look_at_idle();
  /// Bytes of rings that have pages.
  [[nodiscard]] std::int64_t resident() const { return resident_.load(std::memory_order_relaxed); }
  /// Whether all of a peer's rings are empty.
  [[nodiscard]] bool empty(const StreamRings& of) const;
  /// The memory that a peer may reach until it is gone.
  [[nodiscard]] std::vector<nic::SharedBuffer> memory(const StreamRings& of) const;

  struct Count {
    std::int64_t bytes = 0;  ///< of all rings now,
    std::int64_t most = 0;   ///< and at most so far
  };
  [[nodiscard]] const Count& count() const { return count_; }
  [[nodiscard]] std::int64_t bound() const { return bound_; }

 private:
  // Rings of one size in one registered buffer, because each buffer takes a key of the NIC.
  struct Slab {
    nic::SharedBuffer memory;
    std::vector<LentRing> rings;
    [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(memory->buffer.size()); }
  };
  using Slabs = std::list<Slab>;

  [[nodiscard]] std::int64_t slab_bytes(std::uint32_t ring) const;
  [[nodiscard]] LentRing* idle(std::uint32_t bytes);
  [[nodiscard]] LentRing* oldest(const StreamRings& but, std::uint32_t bytes, bool matched);
  [[nodiscard]] bool make_room(const StreamRings& whom, std::int64_t bytes, std::int64_t bound, bool matched);
  Result<LentRing*> make(std::uint32_t bytes);
  Slabs::iterator give_back(Slabs::iterator slab);
  void take_from_owner(LentRing& ring);

  nic::Context& context_;
  std::int64_t bound_;
  std::int64_t owners_ = 0;  // peers that keep rings
  std::int64_t held_back_;   // bytes for messages that are matched
  Slabs slabs_;
  std::map<std::uint32_t, std::deque<LentRing*>> unkept_;  // by size; those at the front were taken longest ago
  Count count_;
  std::uint64_t taken_ = 0;       // rings so far,
  std::uint64_t taken_then_ = 0;  // and at the last look
  std::int64_t looked_ns_ = 0;
  std::mutex slabs_mutex_;  // for changes of `slabs_`, and of the thread for looks at it
  std::atomic<std::int64_t> resident_ = 0;
  std::unique_ptr<IdleThread> idle_thread_;  // last: it ends before the rest does
};

}  // namespace lacuna::protocol
