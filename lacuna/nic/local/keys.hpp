// The key table: which stretches of memory a process has registered, and what its indirect keys stand for. Its owner
// writes it; its peers read it before each access.
//
// A key is an index and a generation, so that a stale key is not mistaken for its successor. A peer brackets check and
// copy by an epoch (inbox.hpp); a process that takes memory away clears the key, then waits until no peer is inside an
// epoch that began before.
//
//   sg_list ── resolve() ──▶ extents          table[index]: a region ──▶ one extent
//                                             table[index]: an indirect key ──▶ translations[place, place + entries)
//                                                                               ──▶ regions
#pragma once

#include <atomic>
#include <deque>

#include "lacuna/nic/local/arena.hpp"

namespace lacuna::nic::local {

struct KeyEntry {
  std::atomic<std::uint32_t> key;  // 0: free, or an indirect key that is not bound
  std::uint32_t rights;            // bits of kRight*
  std::uint64_t addr;              // 0 of an indirect key
  std::uint64_t length;
  // Of a region: its offset in the arena, or kNotShared. Of an indirect key: its first translation
  std::uint64_t place;
  std::uint32_t entries;  // of an indirect key; 0 says that this is a region
  std::uint32_t repeat;   // rounds of a strided binding; 0 says that it is a list
};

// An entry of a binding: bytes [start, start + length) of the stream, or of each round of a strided one.
struct Translation {
  std::uint64_t start;
  std::uint64_t addr;
  std::uint32_t length;
  std::uint32_t stride;
  std::uint32_t key;
  std::uint32_t unused;
};

inline constexpr std::uint32_t kRightLocalWrite = 1;
inline constexpr std::uint32_t kRightRemoteWrite = 2;
inline constexpr std::uint32_t kRightRemoteRead = 4;
inline constexpr std::uint64_t kNotShared = ~std::uint64_t{0};
inline constexpr std::uint32_t kMaxKeys = 1 << 16;
inline constexpr std::size_t kKeyTableBytes = kMaxKeys * sizeof(KeyEntry);
inline constexpr std::size_t kTranslationBytes = std::size_t{1} << 30;  // address space; pages cost memory once touched

[[nodiscard]] std::uint32_t right_bits(const Rights& rights);

// One process's keys, as it or a peer sees them.
struct Keys {
  const SharedMemory& table;
  const SharedMemory& translations;
};

// Memory that was checked: `length` bytes at `addr` of its process, and where in that process's arena.
struct Extent {
  std::uint64_t addr;
  std::uint64_t length;
  std::uint64_t arena_offset;  // kNotShared if it is not in the arena
};

/// Appends what lies behind bytes [from, from + bytes) of an sg_list, until there are `most` extents or more: a list
/// may have as many as it has bytes. Returns for how many bytes it did, or nothing if a key, a bound or a right is
/// wrong; then what was appended is of no use.
std::optional<std::uint64_t> resolve(const Keys& keys, std::span<const Sge> list, std::uint64_t from, std::uint64_t bytes,
                                     std::uint32_t rights, std::size_t most, std::vector<Extent>& extents);

// A checked binding, in the form that the table holds.
struct PreparedBinding {
  std::uint32_t key = 0;
  std::uint32_t rights = 0;
  std::uint32_t repeat = 0;
  std::uint64_t length = 0;
  std::vector<Translation> translations;
};

class KeyTable {
 public:
  static Result<KeyTable> create();
  Result<std::uint32_t> add_region(std::span<std::byte> bytes, Rights rights, std::optional<std::uint64_t> arena_offset);
  /// An indirect key with room for `entries`, not bound.
  Result<std::uint32_t> add_indirect(int entries);
  /// Room of an indirect key; 0 if `key` is none.
  [[nodiscard]] int indirect_entries(std::uint32_t key) const;
  /// The key must have been revoked, and no peer be inside.
  void bind(const PreparedBinding& binding);
  /// Clears the key; its memory, or its binding, may be used again only once no peer is inside.
  void revoke(std::uint32_t key);
  void release(std::uint32_t key);

  [[nodiscard]] Keys view() const { return {table_, translations_.memory()}; }
  [[nodiscard]] int indirect_keys() const { return indirect_; }

 private:
  struct Owned {
    std::uint16_t generation = 0;
    std::span<std::byte> translations;  // empty of a region
  };
  KeyTable(SharedMemory table, Arena translations) : table_(std::move(table)), translations_(std::move(translations)) {}
  [[nodiscard]] KeyEntry& entry(std::uint32_t index) const { return reinterpret_cast<KeyEntry*>(table_.data())[index]; }
  Result<std::uint32_t> take_index();
  std::uint32_t next_key(std::uint32_t index);

  SharedMemory table_;
  Arena translations_;
  std::deque<std::uint32_t> free_;  // indices given back, used again in this order
  std::vector<Owned> owned_;        // of each index that was ever used
  int indirect_ = 0;
};

}  // namespace lacuna::nic::local
