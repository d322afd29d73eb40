// What MPI_Type_commit takes.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/bench/copy/mpi.hpp"

namespace lacuna::bench {

/// Microseconds of committing `times` datatypes, each of so many blocks of 1 to 16 doubles with gaps of as many between
/// them. All differ, so nothing that an MPI remembers of one helps with the next; `seed` says which they are. Throws
/// std::runtime_error where the MPI refuses one.
std::vector<double> commit_times(const Mpi& mpi, int times, int blocks, std::uint64_t seed);

}  // namespace lacuna::bench
