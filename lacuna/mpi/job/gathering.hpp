// MPI_Init waits until every rank has said that it has the library. One without the library never says so.
#pragma once

namespace lacuna::mpi {

/// Returns once every rank of MPI_COMM_WORLD is here. After 30 s it says what it waits for, and after LACUNA_MPI_WAIT
/// seconds it ends the job.
void gather_ranks();

}  // namespace lacuna::mpi
