// Two ways for one process to move bytes between its memory and another's by itself.
#pragma once

#include "lacuna/nic/local/context.hpp"

namespace lacuna::nic::local {

enum class Direction { to_peer, from_peer };

/// Moves all bytes of one list of checked memory to the other, which has as many. `theirs` is the peer's. Returns
/// success, loc_prot_err (our memory is not there), rem_op_err (theirs is not), retry_exc_err.
using Mover = Status (*)(const PeerMemory& peer, Direction direction, std::span<const Extent> ours, std::span<const Extent> theirs);

/// Whether the memory is shared, so that move_mapped() may be called; a peer may have written anything into its key
/// table.
[[nodiscard]] bool in_arena(const PeerMemory& peer, const Extent& extent);
Status move_mapped(const PeerMemory& peer, Direction direction, std::span<const Extent> ours, std::span<const Extent> theirs);
Status move_kernel(const PeerMemory& peer, Direction direction, std::span<const Extent> ours, std::span<const Extent> theirs);

/// As QueuePair::rkey_ptr().
[[nodiscard]] std::byte* reach(const PeerMemory& peer, std::uint64_t addr, std::uint32_t rkey, std::size_t bytes);

/// What copy_past_queues() uses again.
struct CopyLists {
  std::vector<Extent> ours, theirs;
};
/// As QueuePair::copy(), through the kernel.
Result<void> copy_past_queues(const PeerMemory& peer, bool to_peer, std::span<const Sge> ours, std::span<const Sge> theirs,
                              CopyLists& lists);

/// Whether the kernel lets this process read `word` of another, and it holds `value`. Errors: permission, unsupported,
/// io.
Result<void> probe_kernel(std::int64_t process, std::uint64_t word, std::uint64_t value);

}  // namespace lacuna::nic::local
