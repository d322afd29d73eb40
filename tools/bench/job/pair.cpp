#include "tools/bench/job/pair.hpp"

namespace lacuna::bench {

Pair::Pair(const std::string& shim) : mpi_(must(Mpi::start(shim, kRanks), "MPI")), rank_(mpi_->calls().rank()) {
  must(base::pin_to_cpu(rank_), "pinning");
}

void Pair::tell(Words words) const {
  if (mpi_->calls().send(&words, sizeof words, nullptr, peer()) != 0) throw Broken("MPI_Send failed");
}

Pair::Words Pair::hear() const {
  Words words;
  if (mpi_->calls().recv(&words, sizeof words, nullptr, peer()) != 0) throw Broken("MPI_Recv failed");
  return words;
}

}  // namespace lacuna::bench
