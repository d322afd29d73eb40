// memory: what a NIC knows of a process's memory. Regions, indirect keys, and what an sg_list stands for.
#pragma once

#include <unordered_map>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::model {

/// A stretch of a region, as a NIC meets it.
struct Piece {
  std::byte* at = nullptr;
  std::int64_t length = 0;
  std::uint32_t region = 0;  ///< its key
  std::int64_t offset = 0;   ///< from the region's start
  std::int32_t entry = -1;   ///< of an indirect key: its number there; -1 of an sg_list
  std::int32_t entries = 0;  ///< that key's
};
using Pieces = std::vector<Piece>;

enum class Access { local_read, local_write, remote_read, remote_write };

/// Of all processes that share a NIC.
struct Keys {
  std::uint32_t given = 0;
  std::int64_t bound = 0;  ///< entries of all bindings there are
};

class Memory {
 public:
  explicit Memory(Keys& keys) : keys_(keys) {}
  std::uint32_t add_region(std::span<std::byte> bytes, Rights rights);
  std::uint32_t add_indirect(int entries);
  void remove(std::uint32_t key);
  /// Entries that a binding of `key` may have; 0 if it is no indirect key.
  [[nodiscard]] int room(std::uint32_t key) const;
  [[nodiscard]] int indirect_keys() const { return static_cast<int>(indirect_.size()); }
  /// The list's or the strides' pieces. False if `key` is no indirect key or too small.
  bool bind(std::uint32_t key, Rights rights, std::span<const Sge> list);
  bool invalidate(std::uint32_t key);

  /// Appends what lies behind an sg_list. False if a key, a bound or a right is wrong.
  bool resolve(std::span<const Sge> list, Access access, Pieces& pieces) const;
  /// Whether the regions of pieces that were resolved are still there.
  [[nodiscard]] bool holds(const Pieces& pieces) const;

 private:
  struct Region {
    std::span<std::byte> bytes;
    Rights rights;
  };
  struct Key {
    int room = 0;
    bool bound = false;
    Rights rights;
    std::vector<Sge> list;
    std::vector<std::int64_t> starts;  // of each entry in the key's stream, and its end
  };
  bool direct(const Sge& sge, Access access, std::int32_t entry, std::int32_t entries, Pieces& pieces) const;
  bool indirect(const Key& key, const Sge& sge, Access access, Pieces& pieces) const;

  Keys& keys_;
  std::unordered_map<std::uint32_t, Region> regions_;
  std::unordered_map<std::uint32_t, Key> indirect_;
};

/// The list that a binding stands for, its rounds spelled out.
std::vector<Sge> spelled_out(const Binding& binding);

/// Moves all bytes of one list to the other, which has as many.
void move_pieces(const Pieces& from, const Pieces& to);

}  // namespace lacuna::nic::model
