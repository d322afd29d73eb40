// Where a rank of a communicator is.
#pragma once

namespace lacuna::mpi {

struct RankPlace {
  int local = -1;   ///< its rank on this node; -1: it has none, or is this process
  int remote = -1;  ///< its rank in the world, if that is on another node; else -1
  [[nodiscard]] bool known() const { return local >= 0 || remote >= 0; }
  bool operator==(const RankPlace&) const = default;
};

}  // namespace lacuna::mpi
