// Open MPI 4.1 and 5 (libmpi.so.40): handles are addresses of objects, and predefined ones are exported objects, which
// Host looks up. tests/mpi/abi_check.c compares the numbers with each mpi.h at hand.
#pragma once

#include <cstddef>

struct ompi_communicator_t;
struct ompi_datatype_t;
struct ompi_request_t;
struct ompi_message_t;
struct ompi_group_t;
struct ompi_errhandler_t;
struct ompi_info_t;
struct ompi_win_t;
struct ompi_op_t;

namespace lacuna::mpi {

using Comm = ompi_communicator_t*;
using Datatype = ompi_datatype_t*;
using Request = ompi_request_t*;
using Message = ompi_message_t*;
using Group = ompi_group_t*;
using Errhandler = ompi_errhandler_t*;
using Info = ompi_info_t*;
using Win = ompi_win_t*;
using Op = ompi_op_t*;

struct Status {
  int source;
  int tag;
  int error;
  int cancelled;
  std::size_t bytes;
};

inline constexpr const char* kAbi = "openmpi";

inline constexpr int kErrTruncate = 15;
inline constexpr int kErrOther = 16;
inline constexpr int kErrInStatus = 18;
inline constexpr int kErrPending = 19;

inline constexpr int kErrNoMem = 39;
inline constexpr int kAnySource = -1;
inline constexpr int kProcNull = -2;
inline constexpr int kAnyTag = -1;
inline constexpr int kThreadMultiple = 3;
inline constexpr int kOrderC = 0;
inline constexpr int kDistributeBlock = 0;
inline constexpr int kDistributeCyclic = 1;
inline constexpr int kDefaultBlock = -1;
inline constexpr int kCart = 1;
inline constexpr int kGraph = 2;
inline constexpr int kDistGraph = 3;
inline void* in_place() { return reinterpret_cast<void*>(1); }

inline std::int64_t bytes_of(const Status& status) { return static_cast<std::int64_t>(status.bytes); }
inline Status* ignored() { return nullptr; }

enum class Combiner : int {
  named = 0,
  dup = 1,
  contiguous = 2,
  vector = 3,
  hvector = 5,
  indexed = 6,
  hindexed = 8,
  indexed_block = 9,
  structure = 11,
  subarray = 12,
  darray = 13,
  f90_real = 14,
  f90_complex = 15,
  f90_integer = 16,
  resized = 17,
  hindexed_block = 18,
  value_index = -1,  // none that is known: Open MPI 5 has no such types
};

}  // namespace lacuna::mpi
