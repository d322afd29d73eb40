// MPI_Init waits until every rank has said that it has the library. One without the library never says so.
#pragma once

#include <cstddef>
#include <span>

namespace lacuna::mpi {

/// Returns once every rank of MPI_COMM_WORLD is here, and has told what it has to tell: `told` has a part for each
/// rank, and after them as much room again; the own part is filled in. Parts that do not come stay as they are. After
/// 30 s it says what it waits for, and after LACUNA_MPI_WAIT seconds it ends the job.
void gather_ranks(std::span<std::byte> told);

}  // namespace lacuna::mpi
