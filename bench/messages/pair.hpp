// The two processes of a job, connected twice: by an MPI and by Lacuna. What they agree on while they measure goes by the MPI.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "bench/copy/mpi.hpp"
#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::bench {

/// After this the two are out of step: the process has to end.
class Broken : public std::runtime_error {
  using runtime_error::runtime_error;
};

class Pair {
 public:
  /// Starts the MPI of the shim, takes the CPU of its rank, and meets the other by `name` through Lacuna. Throws Broken.
  Pair(const std::string& shim, const std::string& name);

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int peer() const { return 1 - rank_; }
  [[nodiscard]] const Mpi& mpi() const { return *mpi_; }
  [[nodiscard]] protocol::Communicator& lacuna() const { return *lacuna_; }

  /// A few words to the other rank and from it. Throw Broken.
  struct Words {
    std::int32_t what = 0;
    std::int32_t count = 0;
  };
  void tell(Words words) const;
  [[nodiscard]] Words hear() const;

 private:
  std::unique_ptr<Mpi> mpi_;
  int rank_ = 0;
  std::unique_ptr<nic::Context> context_;
  std::unique_ptr<protocol::Communicator> lacuna_;
};

}  // namespace lacuna::bench
