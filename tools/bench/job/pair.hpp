// The two processes of an MPI's job. What they agree on while they measure goes by that MPI too.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>

#include "tools/bench/copy/mpi.hpp"

namespace lacuna::bench {

/// After this the two are out of step: the process has to end.
class Broken : public std::runtime_error {
  using runtime_error::runtime_error;
};

/// The value of a Result, or Broken.
template <class T>
T must(base::Result<T> result, const char* what) {
  if (!result) throw Broken(std::string(what) + ": " + result.error().text());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

class Pair {
 public:
  static constexpr int kRanks = 2;

  /// Starts the MPI of the shim and takes the CPU of its rank. Throws Broken.
  explicit Pair(const std::string& shim);
  /// Already started, by whoever chooses the CPUs.
  explicit Pair(std::unique_ptr<Mpi> started) : mpi_(std::move(started)), rank_(mpi_->calls().rank()) {}

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int peer() const { return 1 - rank_; }
  [[nodiscard]] const Mpi& mpi() const { return *mpi_; }

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
};

}  // namespace lacuna::bench
