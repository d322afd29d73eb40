// What a process has without any peer: datatypes, buffers, its report, and what it knows of its MPI.
#pragma once

#include "lacuna/mpi/host/bounce.hpp"
#include "lacuna/mpi/report/report.hpp"
#include "lacuna/mpi/types/types.hpp"

namespace lacuna::mpi {

/// Which MPI the host is, where that tells what it is fast at.
enum class Library { open_mpi, mpich, mpich_4_0, intel };

struct Process {
  Library library = Library::mpich;
  Types types;
  Bounces bounces;
  MessageReport report;
  bool reports = false;  ///< LACUNA_MPI_REPORT
};

}  // namespace lacuna::mpi
