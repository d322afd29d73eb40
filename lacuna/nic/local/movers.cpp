#include "lacuna/nic/local/movers.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "lacuna/copy/copy.hpp"

namespace lacuna::nic::local {
namespace {

// Stores an aligned word at once and after everything before it, as a device's DMA of up to 8 bytes does: flags rely on
// it.
bool store_word(std::byte* to, const std::byte* from, std::uint64_t bytes) {
  if (bytes != sizeof(std::uint64_t) || reinterpret_cast<std::uintptr_t>(to) % sizeof(std::uint64_t) != 0) return false;
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(to), word, __ATOMIC_RELEASE);
  return true;
}

// Whether this process may read, or write, all pages of its own memory: EFAULT does not say whose pages are not there.
bool reachable(const Extent& extent, bool to_write) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t end = extent.addr + extent.length;
  const std::uint64_t first = extent.addr / page * page;
  if (base::populate(reinterpret_cast<void*>(first), end - first, to_write)) return true;
  if (base::populate(nullptr, 0, to_write)) return false;
  std::array<unsigned char, 1024> resident;  // before Linux 5.14: whether they are mapped
  for (std::uint64_t at = first; at < end; at += page * resident.size()) {
    const std::uint64_t bytes = std::min(end - at, page * resident.size());
    if (mincore(reinterpret_cast<void*>(at), bytes, resident.data()) != 0) return false;
  }
  return true;
}

// A list as the kernel takes it: IOV_MAX entries at a time.
class IovecRange {
 public:
  explicit IovecRange(std::span<const Extent> list) : rest_(list) { refill(); }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] const iovec* data() const { return entries_.data() + first_; }
  [[nodiscard]] std::size_t size() const { return count_; }
  void skip(std::size_t bytes) {
    while (count_ > 0 && bytes >= entries_[first_].iov_len) {
      bytes -= entries_[first_].iov_len;
      ++first_;
      --count_;
    }
    if (count_ == 0) return refill();
    iovec& front = entries_[first_];
    front.iov_base = static_cast<std::byte*>(front.iov_base) + bytes;
    front.iov_len -= bytes;
  }

 private:
  void refill() {
    first_ = 0;
    count_ = std::min<std::size_t>(rest_.size(), entries_.size());
    for (std::size_t i = 0; i < count_; ++i) entries_[i] = {reinterpret_cast<void*>(rest_[i].addr), rest_[i].length};
    rest_ = rest_.subspan(count_);
  }
  std::array<iovec, IOV_MAX> entries_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::span<const Extent> rest_;
};

}  // namespace

std::byte* reach(const PeerMemory& peer, std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) {
  const Sge whole{addr, static_cast<std::uint32_t>(bytes), rkey};
  std::vector<Extent> found;
  if (bytes == 0 || whole.length != bytes || !resolve(peer.keys(), {&whole, 1}, 0, bytes, kRightRemoteWrite | kRightRemoteRead, 2, found))
    return nullptr;
  return found.size() == 1 && in_arena(peer, found[0]) ? peer.arena.data() + found[0].arena_offset : nullptr;
}

Result<void> copy_past_queues(const PeerMemory& peer, bool to_peer, std::span<const Sge> ours, std::span<const Sge> theirs,
                              CopyLists& lists) {
  const auto extents = [](std::span<const Sge> list, std::vector<Extent>& into) {
    into.clear();
    for (const Sge& sge : list) into.push_back({sge.addr, sge.length, kNotShared});
  };
  extents(ours, lists.ours);
  extents(theirs, lists.theirs);
  const Status moved = move_kernel(peer, to_peer ? Direction::to_peer : Direction::from_peer, lists.ours, lists.theirs);
  if (moved == Status::success) return {};
  const bool lost = moved == Status::retry_exc_err;
  return base::fail(lost ? base::Code::peer_lost : base::Code::transfer, fmt::format("a copy past the queues: {}", status_name(moved)));
}

bool in_arena(const PeerMemory& peer, const Extent& extent) {  // kNotShared is beyond every arena
  return extent.arena_offset <= peer.arena.size() && extent.length <= peer.arena.size() - extent.arena_offset;
}

Status move_mapped(const PeerMemory& peer, Direction direction, std::span<const Extent> ours, std::span<const Extent> theirs) {
  copy::Pieces pieces;
  bool first = true;
  std::size_t at = 0;
  std::uint64_t used = 0;  // of theirs[at]
  for (const Extent& extent : ours) {
    for (std::uint64_t done = 0; done < extent.length;) {
      const std::uint64_t bytes = std::min(extent.length - done, theirs[at].length - used);
      std::byte* to = reinterpret_cast<std::byte*>(extent.addr) + done;
      std::byte* from = peer.arena.data() + theirs[at].arena_offset + used;
      if (direction == Direction::to_peer) std::swap(to, from);
      if (!first || !store_word(to, from, bytes)) pieces.add(to, from, static_cast<std::int64_t>(bytes));
      first = false;  // a word that announces something begins a batch
      done += bytes;
      used += bytes;
      if (used == theirs[at].length) ++at, used = 0;
    }
  }
  pieces.move();
  return Status::success;
}

Status move_kernel(const PeerMemory& peer, Direction direction, std::span<const Extent> ours, std::span<const Extent> theirs) {
  const auto call = direction == Direction::to_peer ? &process_vm_writev : &process_vm_readv;
  IovecRange local(ours);
  IovecRange remote(theirs);
  while (!local.empty()) {
    const ssize_t n = call(static_cast<pid_t>(peer.process), local.data(), local.size(), remote.data(), remote.size(), 0);
    if (n < 0 && errno == ESRCH) return Status::retry_exc_err;
    if (n <= 0) {
      const auto good = [&](const Extent& extent) { return reachable(extent, direction == Direction::from_peer); };
      return std::ranges::all_of(ours, good) ? Status::rem_op_err : Status::loc_prot_err;
    }
    local.skip(static_cast<std::size_t>(n));  // a partial return is normal
    remote.skip(static_cast<std::size_t>(n));
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
