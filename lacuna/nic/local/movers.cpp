#include "lacuna/nic/local/movers.hpp"

#include <fmt/format.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lacuna/nic/local/inbox.hpp"

namespace lacuna::nic::local {
namespace {

// An aligned word is stored at once and after everything before it, as a device's DMA of up to 8 bytes is: flags rely on it.
void store(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (bytes == sizeof(std::uint64_t) && reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) == 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, sizeof word);
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
  } else {
    std::memcpy(to, from, bytes);
  }
}

iovec as_iovec(const Sge& sge) { return {reinterpret_cast<void*>(sge.addr), sge.length}; }

// Drops the first `bytes` of a list of iovecs.
std::span<iovec> skip(std::span<iovec> list, std::size_t bytes) {
  while (!list.empty() && bytes >= list.front().iov_len) {
    bytes -= list.front().iov_len;
    list = list.subspan(1);
  }
  if (!list.empty()) {
    list.front().iov_base = static_cast<std::byte*>(list.front().iov_base) + bytes;
    list.front().iov_len -= bytes;
  }
  return list;
}

}  // namespace

Status move_mapped(const PeerMemory& peer, std::span<const Sge> from, std::span<const Sge> to,
                   std::span<const std::uint64_t> arena_offsets) {
  std::size_t target = 0;
  std::uint32_t used = 0;  // of to[target]
  for (const Sge& sge : from) {
    for (std::uint32_t done = 0; done < sge.length;) {
      while (used == to[target].length) ++target, used = 0;
      if (arena_offsets[target] > peer.arena.size() || to[target].length > peer.arena.size() - arena_offsets[target])
        return Status::rem_access_err;
      const std::uint32_t bytes = std::min(sge.length - done, to[target].length - used);
      store(peer.arena.data() + arena_offsets[target] + used, reinterpret_cast<const std::byte*>(sge.addr) + done, bytes);
      done += bytes;
      used += bytes;
    }
  }
  return Status::success;
}

Status move_kernel(const PeerMemory& peer, std::span<const Sge> from, std::span<const Sge> to,
                   std::span<const std::uint64_t> /*arena_offsets*/) {
  static_assert(kMaxSge <= IOV_MAX);
  std::array<iovec, kMaxSge> from_list;
  std::array<iovec, kMaxSge> to_list;
  std::ranges::transform(from, from_list.begin(), as_iovec);
  std::ranges::transform(to, to_list.begin(), as_iovec);
  std::span<iovec> local(from_list.data(), from.size());
  std::span<iovec> remote(to_list.data(), to.size());
  local = skip(local, 0);
  remote = skip(remote, 0);
  while (!local.empty()) {
    const ssize_t n = process_vm_writev(static_cast<pid_t>(peer.process), local.data(), local.size(), remote.data(), remote.size(), 0);
    if (n <= 0) return errno == ESRCH ? Status::retry_exc_err : Status::rem_op_err;
    local = skip(local, static_cast<std::size_t>(n));  // a partial return is normal
    remote = skip(remote, static_cast<std::size_t>(n));
  }
  return Status::success;
}

Result<void> probe_kernel(std::int64_t process, std::uint64_t word, std::uint64_t value) {
  std::uint64_t got = 0;
  const iovec local{&got, sizeof got};
  const iovec remote{reinterpret_cast<void*>(word), sizeof got};
  const ssize_t n = process_vm_readv(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
  if (n < 0) return std::unexpected(base::system_error(fmt::format("process_vm_readv of process {}", process), errno));
  if (n != sizeof got || got != value)
    return base::fail(base::Code::unsupported, fmt::format("process_vm_readv reached another process than the peer ({})", process));
  return {};
}

}  // namespace lacuna::nic::local
