// An MPI beside us in this process, behind the table of mpi_shim.h.
#pragma once

#include <memory>
#include <string>

#include "tools/bench/copy/mpi_shim.h"
#include "tools/corpus/datatype.hpp"

namespace lacuna::bench {

class Mpi {
 public:
  /// Loads a shim and starts its MPI, as one of a job of `ranks`. Errors: unsupported, with what the loader or MPI
  /// said.
  static base::Result<std::unique_ptr<Mpi>> start(const std::string& shim, int ranks = 1);
  /// Not an MPI, but what has its send and recv.
  static std::unique_ptr<Mpi> over(const lacuna_mpi_shim* calls) { return std::unique_ptr<Mpi>(new Mpi(calls)); }
  ~Mpi();
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  [[nodiscard]] std::string library() const { return shim_->library(); }
  [[nodiscard]] const lacuna_mpi_shim& calls() const { return *shim_; }

  struct Release {
    const lacuna_mpi_shim* shim;
    void operator()(lacuna_mpi_type* type) const { shim->release(type); }
  };
  using Type = std::unique_ptr<lacuna_mpi_type, Release>;
  /// The same datatype, committed. Errors: unsupported where this MPI refuses it; overflow where a number does not fit
  /// an int.
  base::Result<Type> type(const corpus::Datatype& datatype) const;

 private:
  explicit Mpi(const lacuna_mpi_shim* shim) : shim_(shim) {}
  base::Result<Type> build(const corpus::Datatype& datatype) const;

  const lacuna_mpi_shim* shim_;
};

}  // namespace lacuna::bench
