// A message that is copied once, from one process's memory into the other's, by both CPUs at once, where the system
// allows it (QueuePair::copy). The sender offers that before it packs anything. If the receiver does not accept soon,
// or cannot, the sender packs after all (out_stream.hpp).
//
//   sender    offer │ ticket │      │ piece 1 │ piece 3 │ ...     the CPU that is free takes the next piece
//   receiver                 │ take │ piece 0 │ piece 2 │ ...
#pragma once

#include <atomic>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::protocol {

/// Where one end's bytes are.
struct DirectEnd {
  std::uint64_t addr = 0;
  layout::Digest digest;
  std::uint32_t wire = 0;  ///< bytes of its layout, in this end's half of the ring
  std::uint32_t unused = 0;
};

/// `taking`: the receiver has it, and writes where its own memory is.
enum class DirectState : std::uint8_t { none, offered, taking, taken, refused };

/// In a ring's head. The peer may write anything there.
struct DirectMemory {
  alignas(64) std::atomic<std::uint64_t> state;  ///< of which message, and a DirectState
  DirectEnd sender;
  alignas(64) DirectEnd receiver;
  alignas(64) std::atomic<std::uint64_t> begun;  ///< pieces that one end has taken,
  std::atomic<std::uint64_t> ended;              ///< those that were copied or could not be,
  std::atomic<std::uint64_t> failed;             ///< and these

  [[nodiscard]] DirectState of(std::uint64_t message) const {
    const std::uint64_t now = state.load(std::memory_order_acquire);
    return now >> kStateBits == message && (now & kStates) <= static_cast<std::uint64_t>(DirectState::refused)
               ? static_cast<DirectState>(now & kStates)
               : DirectState::none;
  }
  void offer(std::uint64_t message, const DirectEnd& from) {
    sender = from;
    for (auto* counter : {&begun, &ended, &failed}) counter->store(0, std::memory_order_relaxed);
    state.store(word(message, DirectState::offered), std::memory_order_release);
  }
  /// What is `from` comes to be `next`; false: it is not.
  bool settle(std::uint64_t message, DirectState next, DirectState from = DirectState::offered) {
    std::uint64_t seen = word(message, from);
    return state.compare_exchange_strong(seen, word(message, next), std::memory_order_acq_rel);
  }

 private:
  static constexpr unsigned kStateBits = 3;
  static constexpr std::uint64_t kStates = (1U << kStateBits) - 1;
  static std::uint64_t word(std::uint64_t message, DirectState state) { return message << kStateBits | static_cast<std::uint64_t>(state); }
};

/// One end's part of one message.
class DirectCopy {
 public:
  /// `sends`: which end this is. `theirs`: from `addr` on in the peer's memory.
  DirectCopy(DirectMemory& shared, nic::QueuePair& qp, bool sends, const layout::Layout& own, const std::byte* base,
             const layout::Layout& theirs, std::uint64_t addr, std::int64_t bytes)
      : shared_(&shared), qp_(&qp), sends_(sends), own_(own), base_(base), theirs_(theirs), addr_(addr), bytes_(bytes) {}
  /// Copies a piece; false: there is none left.
  bool step();
  /// Whether both ends have copied what they took.
  [[nodiscard]] static bool over(const DirectMemory& shared, std::int64_t bytes);
  /// No end begins another piece; either may say so, or both.
  static void stop(DirectMemory& shared);
  /// Whether a piece that was begun has not ended.
  [[nodiscard]] static bool at_work(const DirectMemory& shared, std::int64_t bytes);

 private:
  static void list(layout::Cursor& cursor, std::uint64_t addr, std::int64_t from, std::int64_t bytes, std::vector<nic::Sge>& to);
  DirectMemory* shared_;
  nic::QueuePair* qp_;
  bool sends_;
  layout::Cursor own_;
  const std::byte* base_;
  layout::Cursor theirs_;
  std::uint64_t addr_;
  std::int64_t bytes_;
  std::vector<nic::Sge> here_, there_;
};

}  // namespace lacuna::protocol
