// The other processes of this node, whose memory this one reads: each is attached to when it is first wanted.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::mpi {

/// Memory that a rank tells the others of its node in MPI_Init.
struct MemoryPlace {
  std::uint64_t addr = 0;
  std::uint32_t rkey = 0;
  std::uint32_t there = 0;  ///< 0: it has no such memory
  /// Of memory of this process; `there` is 0 where that is null.
  static MemoryPlace of(const nic::SharedBuffer& memory);
};

class NodePeers {
 public:
  /// `cards`: of each rank of this node.
  NodePeers(nic::Context& context, std::vector<nic::Card> cards) : context_(context), cards_(std::move(cards)), peers_(cards_.size()) {}
  [[nodiscard]] nic::Context& context() const { return context_; }
  [[nodiscard]] std::size_t size() const { return cards_.size(); }
  /// Memory that a rank of this node has named. Null: it is not to be reached. Throws std::bad_alloc.
  std::byte* reach(int local, std::uint64_t addr, std::uint32_t rkey, std::size_t bytes);
  /// Memory of this process that slower ranks read still: the node keeps it as long as one of them may.
  void keep(const nic::SharedBuffer& memory) const;

 private:
  nic::Context& context_;
  std::vector<nic::Card> cards_;
  std::vector<std::unique_ptr<nic::QueuePair>> peers_;
};

}  // namespace lacuna::mpi
