// Memory of a NIC: what a Context allocates and registers, and the keys by which requests name it. Each object gives
// back what it names when it is destroyed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "lacuna/base/base.hpp"

namespace lacuna::nic {

using base::Result;

class Context;

enum class MemoryKind { host, device };

/// Rights of a region; local read is always granted (ibv_access_flags).
struct Rights {
  bool local_write = true;
  bool remote_write = true;
  bool remote_read = true;
  /// Bytes may land in any order, where the device can do that (IBV_ACCESS_RELAXED_ORDERING). For data of which a
  /// completion or a flag in another region tells; never for memory with a flag in it.
  bool relaxed = false;
};

/// One entry of a scatter/gather list (ibv_sge): `length` bytes at virtual address `addr` in the region of `lkey`.
struct Sge {
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t lkey;
};

/// Memory that a Context allocated; zero-filled, page aligned, freed on destruction. On some NICs it alone can be
/// reached by some paths.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Context& context, std::span<std::byte> bytes) : context_(&context), bytes_(bytes) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer();
  [[nodiscard]] std::byte* data() const { return bytes_.data(); }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
  }
  Context* context_ = nullptr;
  std::span<std::byte> bytes_;
};

/// A registered stretch of memory (ibv_mr); deregistered on destruction, after which no peer touches it any more (a
/// peer that is stopped in the middle of an access is waited for, a minute at most, then the log says so).
class Region {
 public:
  Region() = default;
  Region(Context& context, std::span<std::byte> bytes, std::uint32_t lkey, std::uint32_t rkey, MemoryKind kind, bool shared)
      : context_(&context), bytes_(bytes), lkey_(lkey), rkey_(rkey), kind_(kind), shared_(shared) {}
  Region(Region&& other) noexcept { swap(other); }
  Region& operator=(Region&& other) noexcept {
    swap(other);
    return *this;
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region();
  [[nodiscard]] std::uint64_t addr() const { return reinterpret_cast<std::uint64_t>(bytes_.data()); }
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t lkey() const { return lkey_; }
  [[nodiscard]] std::uint32_t rkey() const { return rkey_; }
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  [[nodiscard]] bool shared() const { return shared_; }  ///< reachable by paths that are shared_only
  /// Peers begin no access from now on. Whether none is in the middle of one, of any memory of this process; waits so
  /// long for those. What follows is destruction, which looks once more, and waits a minute; a NIC whose devices do the
  /// work may leave all to it.
  bool revoke(std::int64_t wait_ns);

 private:
  void swap(Region& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(bytes_, other.bytes_);
    std::swap(lkey_, other.lkey_);
    std::swap(rkey_, other.rkey_);
    std::swap(kind_, other.kind_);
    std::swap(shared_, other.shared_);
  }
  Context* context_ = nullptr;
  std::span<std::byte> bytes_;
  std::uint32_t lkey_ = 0;
  std::uint32_t rkey_ = 0;
  MemoryKind kind_ = MemoryKind::host;
  bool shared_ = false;
};

/// A buffer, of one byte at least, and the region over all of it.
struct RegisteredBuffer {
  Buffer buffer;
  Region region;

  /// Errors: those of Context::allocate and register_memory.
  static Result<RegisteredBuffer> create(Context& context, std::int64_t bytes, Rights rights = {});
  [[nodiscard]] Sge sge(std::int64_t offset, std::int64_t length) const {
    return {region.addr() + static_cast<std::uint64_t>(offset), static_cast<std::uint32_t>(length), region.lkey()};
  }
};

/// Of several holders: it goes with the last one.
using SharedBuffer = std::shared_ptr<RegisteredBuffer>;

/// One key for many pieces of memory, as if they lay end to end (a UMR; mlx5dv_mkey). It is zero-based: an address
/// given with it is an offset into the pieces. Creating one is expensive, binding is not free (paper, figure 20), so
/// keys are bound again and again. A bind request of any queue pair of the Context gives it its pieces, in the order of
/// that queue: what is posted behind it there may use the key at once, everybody else after its completion. Bind it
/// anew, or invalidate it, once the sends and writes that name it are complete: until then a device may fetch their
/// bytes once more. Until it is bound, and after an invalidate request, every use of it is an access error.
class IndirectKey {
 public:
  IndirectKey() = default;
  IndirectKey(Context& context, std::uint32_t key, int entries) : context_(&context), key_(key), entries_(entries) {}
  IndirectKey(IndirectKey&& other) noexcept { swap(other); }
  IndirectKey& operator=(IndirectKey&& other) noexcept {
    swap(other);
    return *this;
  }
  IndirectKey(const IndirectKey&) = delete;
  IndirectKey& operator=(const IndirectKey&) = delete;
  ~IndirectKey();
  [[nodiscard]] std::uint32_t lkey() const { return key_; }
  [[nodiscard]] std::uint32_t rkey() const { return key_; }
  [[nodiscard]] int entries() const { return entries_; }  ///< that a binding may have

 private:
  void swap(IndirectKey& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(key_, other.key_);
    std::swap(entries_, other.entries_);
  }
  Context* context_ = nullptr;
  std::uint32_t key_ = 0;
  int entries_ = 0;
};

/// A right of one queue pair's peer to a stretch of a region, which ends with the window (a memory window of type 2;
/// ibv_alloc_mw(3)). Binding and invalidating one is a work request of that queue pair, cheaper than a registration. A
/// bind request's binding has a list of one entry, whose address is the memory's own, not an offset. The region need
/// not grant the peer anything itself; one that is written into has to grant local writes. A bound window is
/// invalidated before it is bound again. Local requests cannot use it. Destroy it before its region.
class MemoryWindow {
 public:
  MemoryWindow() = default;
  MemoryWindow(Context& context, std::uint32_t key) : context_(&context), key_(key) {}
  MemoryWindow(MemoryWindow&& other) noexcept { swap(other); }
  MemoryWindow& operator=(MemoryWindow&& other) noexcept {
    swap(other);
    return *this;
  }
  MemoryWindow(const MemoryWindow&) = delete;
  MemoryWindow& operator=(const MemoryWindow&) = delete;
  ~MemoryWindow();
  /// For the next binding: another one each time, so that an old one never fits a new binding. With it the peer reaches
  /// the memory once the bind request is complete, and until the request that invalidates it is.
  std::uint32_t next_key();

 private:
  void swap(MemoryWindow& other) noexcept {
    std::swap(context_, other.context_);
    std::swap(key_, other.key_);
  }
  Context* context_ = nullptr;
  std::uint32_t key_ = 0;
};

}  // namespace lacuna::nic
