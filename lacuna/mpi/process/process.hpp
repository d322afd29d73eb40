// What a process has without any peer: datatypes, buffers, its report, and what it knows of its MPI.
#pragma once

#include "lacuna/mpi/host/bounce.hpp"
#include "lacuna/mpi/report/report.hpp"
#include "lacuna/mpi/types/types.hpp"
#include "lacuna/mpi/ways/ways.hpp"

namespace lacuna::mpi {

struct Process {
  Library library = Library::mpich;  ///< the host
  Ways ways;
  Types types;
  Bounces bounces;
  MessageReport report;
  bool reports = false;  ///< LACUNA_MPI_REPORT
};

}  // namespace lacuna::mpi
