#include "lacuna/mpi/collectives/pattern.hpp"

#include <algorithm>

namespace lacuna::mpi {
namespace {

// Whether each is a rank.
std::vector<bool> are_ranks(const std::vector<int>& ranks) {
  std::vector<bool> there(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) there[i] = ranks[i] != kProcNull;
  return there;
}

// Below 0: it is not there.
int place_of(int rank, const std::vector<int>& ranks) {
  const auto found = std::ranges::find(ranks, rank);
  return found != ranks.end() ? static_cast<int>(found - ranks.begin()) : -1;
}

// Beyond a border of a Cartesian grid there is MPI_PROC_NULL, and a graph may name it.
std::optional<Neighbors> ask_host(Comm comm, int rank) {
  const Host& h = host();
  int topology = 0, number = 0, out = 0, weighted = 0;
  if (h.Topo_test(comm, &topology) != kSuccess) return std::nullopt;
  Neighbors made;
  if (topology == kCart && h.Cartdim_get(comm, &number) == kSuccess) {
    for (int dim = 0; dim < number; ++dim) {
      int before = 0, behind = 0;
      if (h.Cart_shift(comm, dim, 1, &before, &behind) != kSuccess) return std::nullopt;
      made.sources.insert(made.sources.end(), {before, behind});
    }
    made.destinations = made.sources;
  } else if (topology == kGraph) {
    if (h.Graph_neighbors_count(comm, rank, &number) != kSuccess) return std::nullopt;
    made.out = made.in = std::vector<bool>(static_cast<std::size_t>(number), true);
    return made;
  } else if (topology == kDistGraph && h.Dist_graph_neighbors_count(comm, &number, &out, &weighted) == kSuccess) {
    made.sources.resize(static_cast<std::size_t>(number) + 1);
    made.destinations.resize(static_cast<std::size_t>(out) + 1);
    std::vector<int> weights(std::max(made.sources.size(), made.destinations.size()));
    if (h.Dist_graph_neighbors(comm, number, made.sources.data(), weights.data(), out, made.destinations.data(), weights.data()) !=
        kSuccess)
      return std::nullopt;
    made.sources.pop_back();
    made.destinations.pop_back();
  } else {
    return std::nullopt;
  }
  made.has_ranks = true;
  made.out = are_ranks(made.destinations);
  made.in = are_ranks(made.sources);
  return made;
}

}  // namespace

const Neighbors* neighbors_of(CommOf& of, Comm comm, int rank) {
  if (!of.neighbors) of.neighbors = ask_host(comm, rank);
  return of.neighbors ? &*of.neighbors : nullptr;
}

int Pattern::outs() const {
  switch (kind_) {
    case Collective::alltoall:
    case Collective::allgather: return size_;
    case Collective::gather: return 1;
    case Collective::scatter:
    case Collective::bcast: return is_root() ? size_ : 0;
    default: return static_cast<int>(neighbors_->out.size());
  }
}

int Pattern::ins() const {
  switch (kind_) {
    case Collective::alltoall:
    case Collective::allgather: return size_;
    case Collective::gather: return is_root() ? size_ : 0;
    case Collective::scatter:
    case Collective::bcast: return 1;
    default: return static_cast<int>(neighbors_->in.size());
  }
}

int Pattern::block_to(int rank) const {
  switch (kind_) {
    case Collective::alltoall:
    case Collective::allgather: return rank;
    case Collective::gather: return rank == root_ ? 0 : -1;
    case Collective::scatter:
    case Collective::bcast: return is_root() ? rank : -1;
    default: return place_of(rank, neighbors_->destinations);
  }
}

int Pattern::block_from(int rank) const {
  switch (kind_) {
    case Collective::alltoall:
    case Collective::allgather: return rank;
    case Collective::gather: return is_root() ? rank : -1;
    case Collective::scatter:
    case Collective::bcast: return rank == root_ ? 0 : -1;
    default: return place_of(rank, neighbors_->sources);
  }
}

int Pattern::to(int block) const {
  if (kind_ == Collective::gather) return root_;
  return of_neighbors(kind_) ? neighbors_->destinations[static_cast<std::size_t>(block)] : block;
}

int Pattern::from(int block) const {
  if (kind_ == Collective::scatter || kind_ == Collective::bcast) return root_;
  return of_neighbors(kind_) ? neighbors_->sources[static_cast<std::size_t>(block)] : block;
}

int Pattern::own_out() const {
  if (all_with_all(kind_)) return rank_;
  if (kind_ == Collective::gather && is_root()) return 0;
  return kind_ == Collective::scatter && is_root() ? rank_ : -1;
}

int Pattern::own_in() const {
  if (all_with_all(kind_)) return rank_;
  if (kind_ == Collective::gather && is_root()) return rank_;
  return kind_ == Collective::scatter && is_root() ? 0 : -1;
}

}  // namespace lacuna::mpi
