// The ABI of the host MPI that this library is built for.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(LACUNA_MPI_ABI_OPENMPI)
#include "lacuna/mpi/abi/openmpi.hpp"
#elif defined(LACUNA_MPI_ABI_MPICH)
#include "lacuna/mpi/abi/mpich.hpp"
#elif defined(LACUNA_MPI_ABI_STANDARD)
#include "lacuna/mpi/abi/standard.hpp"
#else
#error "LACUNA_MPI_ABI_OPENMPI, _MPICH or _STANDARD says which ABI"
#endif

namespace lacuna::mpi {

using Aint = std::ptrdiff_t;
using Count = long long;

inline constexpr int kSuccess = 0;
inline constexpr int kErrCount = 2;
inline constexpr int kErrType = 3;
inline constexpr int kUndefined = -32766;
inline constexpr int kStreamNull = 0x3c00'0000;  // MPICH's MPIX_STREAM_NULL

}  // namespace lacuna::mpi
