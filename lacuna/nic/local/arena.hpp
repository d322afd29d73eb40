// An arena: memory of a Context that its peers have mapped too. First fit over whole pages; allocations are few and
// large.
#pragma once

#include <map>
#include <vector>

#include "lacuna/nic/local/shared_memory.hpp"

namespace lacuna::nic::local {

class Arena {
 public:
  static Result<Arena> create(const char* name, std::size_t bytes);
  /// As large as the machine's memory, or as wanted, or as the process's address space allows.
  static Result<Arena> create_largest(const char* name, std::int64_t wanted);
  Result<std::span<std::byte>> allocate(std::size_t bytes);
  void free(std::span<std::byte> bytes) noexcept;
  /// Offset of a stretch that lies wholly in the arena.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::span<const std::byte> bytes) const;
  [[nodiscard]] const SharedMemory& memory() const { return memory_; }

 private:
  explicit Arena(SharedMemory memory);
  [[nodiscard]] std::size_t rounded(std::size_t bytes) const { return (bytes + page_ - 1) / page_ * page_; }

  SharedMemory memory_;
  std::size_t page_;
  using Holes = std::map<std::size_t, std::size_t>;  // offset -> bytes
  Holes free_;                                       // neighbours are always merged
  // One for each stretch that is taken, so that free() wants no memory
  std::vector<Holes::node_type> spare_;
};

}  // namespace lacuna::nic::local
