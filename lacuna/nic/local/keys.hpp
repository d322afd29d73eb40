// The key table: which stretches of memory a process has registered. Its owner writes it; its peers read it before each access.
//
// A key is an index and a generation, so that a stale key is not mistaken for its successor. A peer brackets check and copy by an
// epoch (inbox.hpp); deregistration clears the key, then waits until no peer is inside an epoch that began before.
#pragma once

#include <atomic>
#include <deque>

#include "lacuna/nic/local/shared_memory.hpp"

namespace lacuna::nic::local {

struct KeyEntry {
  std::atomic<std::uint32_t> key;  // 0: free
  std::uint32_t rights;            // bits of kRight*
  std::uint64_t addr;
  std::uint64_t length;
  std::uint64_t arena_offset;  // kNotShared if the region is not in the arena
};

inline constexpr std::uint32_t kRightLocalWrite = 1;
inline constexpr std::uint32_t kRightRemoteWrite = 2;
inline constexpr std::uint32_t kRightRemoteRead = 4;
inline constexpr std::uint64_t kNotShared = ~std::uint64_t{0};
inline constexpr std::uint32_t kMaxRegions = 1 << 16;
inline constexpr std::size_t kKeyTableBytes = kMaxRegions * sizeof(KeyEntry);

/// A checked access: where in the arena it lies, if it does.
struct Grant {
  std::uint64_t arena_offset;
};

/// Checks that `key` covers [addr, addr + length) and grants all of `rights`.
std::optional<Grant> check(const SharedMemory& table, std::uint32_t key, std::uint64_t addr, std::uint64_t length, std::uint32_t rights);

class KeyTable {
 public:
  static Result<KeyTable> create();
  Result<std::uint32_t> add(std::span<std::byte> bytes, Rights rights, std::optional<std::uint64_t> arena_offset);
  /// Clears the key; the entry may be used again only after release().
  void revoke(std::uint32_t key);
  void release(std::uint32_t key);
  [[nodiscard]] const SharedMemory& memory() const { return memory_; }

 private:
  explicit KeyTable(SharedMemory memory) : memory_(std::move(memory)) {}
  [[nodiscard]] KeyEntry& entry(std::uint32_t index) const { return reinterpret_cast<KeyEntry*>(memory_.data())[index]; }

  SharedMemory memory_;
  std::deque<std::uint32_t> free_;          // indices given back, used again in this order
  std::uint32_t next_ = 0;                  // first index that was never used
  std::vector<std::uint16_t> generations_;  // of each used index
};

}  // namespace lacuna::nic::local
