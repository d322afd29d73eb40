// pattern: who sends to whom in a collective, block by block, as one rank sees it.
//
//              alltoall, allgather   gather        scatter, bcast    neighbor_...
//   outs       each rank             the root      each rank, of     each neighbor that
//                                                  the root's        is sent to
//   ins        each rank             each rank,    the root          each neighbor that
//                                    the root's                      sends
#pragma once

#include "lacuna/mpi/process/comms.hpp"

namespace lacuna::mpi {

enum class Collective { alltoall, allgather, gather, scatter, bcast, neighbor_alltoall, neighbor_allgather };
[[nodiscard]] constexpr bool of_neighbors(Collective kind) {
  return kind == Collective::neighbor_alltoall || kind == Collective::neighbor_allgather;
}

/// Whether each rank sends to each.
[[nodiscard]] constexpr bool all_with_all(Collective kind) { return kind == Collective::alltoall || kind == Collective::allgather; }

/// Asked for once: a communicator keeps its topology. Null: it has none, or the host does not say. Throws
/// std::bad_alloc.
const Neighbors* neighbors_of(CommOf& of, Comm comm, int rank);

class Pattern {
 public:
  /// `neighbors`: of collectives of neighbors.
  Pattern(Collective kind, int root, int rank, int size, const Neighbors* neighbors)
      : kind_(kind), root_(root), rank_(rank), size_(size), neighbors_(neighbors) {}
  [[nodiscard]] Collective kind() const { return kind_; }
  [[nodiscard]] int root() const { return root_; }
  [[nodiscard]] bool is_root() const { return rank_ == root_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] const Neighbors* neighbors() const { return neighbors_; }
  /// The same with these, where it has some.
  [[nodiscard]] Pattern with(const Neighbors* neighbors) const { return {kind_, root_, rank_, size_, neighbors}; }
  /// Whether there is one block to send, for all that get one.
  [[nodiscard]] bool one_for_all() const {
    return kind_ == Collective::allgather || kind_ == Collective::bcast || kind_ == Collective::neighbor_allgather;
  }
  /// Blocks that are sent and that come, and whose they are; MPI_PROC_NULL is none.
  [[nodiscard]] int outs() const;
  [[nodiscard]] int ins() const;
  [[nodiscard]] int to(int block) const;
  [[nodiscard]] int from(int block) const;
  /// The block that another rank gets, or sends; below 0: none. Of neighbors there may be several: the first.
  [[nodiscard]] int block_to(int rank) const;
  [[nodiscard]] int block_from(int rank) const;
  /// The block from this rank to itself, on either side; below 0: there is none that is copied here.
  [[nodiscard]] int own_out() const;
  [[nodiscard]] int own_in() const;

 private:
  Collective kind_;
  int root_, rank_, size_;
  const Neighbors* neighbors_;
};

}  // namespace lacuna::mpi
