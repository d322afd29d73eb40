// Two ways for one process to move bytes into another's memory by itself.
#pragma once

#include "lacuna/nic/local/context.hpp"

namespace lacuna::nic::local {

/// Moves as many bytes as `from` lists into `to`, the peer's memory, which has at least as much room and was checked against the peer's
/// keys; `arena_offsets` says where each entry of `to` lies in the peer's arena. Returns success, or rem_access_err / rem_op_err.
using Mover = Status (*)(const PeerMemory& peer, std::span<const Sge> from, std::span<const Sge> to,
                         std::span<const std::uint64_t> arena_offsets);

Status move_mapped(const PeerMemory& peer, std::span<const Sge> from, std::span<const Sge> to,
                   std::span<const std::uint64_t> arena_offsets);
Status move_kernel(const PeerMemory& peer, std::span<const Sge> from, std::span<const Sge> to,
                   std::span<const std::uint64_t> arena_offsets);

/// Whether the kernel lets this process read `word` of another, and it holds `value`. Errors: permission, unsupported, io.
Result<void> probe_kernel(std::int64_t process, std::uint64_t word, std::uint64_t value);

}  // namespace lacuna::nic::local
