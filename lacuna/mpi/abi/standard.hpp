// The ABI that MPI-5.0 defines (chapter 20; libmpi_abi.so.1), which MPICH 5 and Intel MPI offer beside their own:
// handles are addresses of nothing, predefined ones are small numbers. tests/mpi/abi_check.c compares the numbers with
// each mpi_abi.h at hand.
#pragma once

#include <cstdint>

struct MPI_ABI_Comm;
struct MPI_ABI_Datatype;
struct MPI_ABI_Request;
struct MPI_ABI_Message;
struct MPI_ABI_Group;
struct MPI_ABI_Errhandler;
struct MPI_ABI_Info;
struct MPI_ABI_Win;
struct MPI_ABI_Op;

namespace lacuna::mpi {

using Comm = MPI_ABI_Comm*;
using Datatype = MPI_ABI_Datatype*;
using Request = MPI_ABI_Request*;
using Message = MPI_ABI_Message*;
using Group = MPI_ABI_Group*;
using Errhandler = MPI_ABI_Errhandler*;
using Info = MPI_ABI_Info*;
using Win = MPI_ABI_Win*;
using Op = MPI_ABI_Op*;

struct Status {
  int source;
  int tag;
  int error;
  int internal[5];  // each MPI's own
};

inline constexpr const char* kAbi = "abi";

inline constexpr int kErrTruncate = 15;
inline constexpr int kErrOther = 16;
inline constexpr int kErrPending = 18;
inline constexpr int kErrInStatus = 19;

inline constexpr int kErrNoMem = 39;
inline constexpr int kAnySource = -1;
inline constexpr int kAnyTag = -2;
inline constexpr int kProcNull = -3;
inline constexpr int kThreadMultiple = 4096;
inline constexpr int kOrderC = 12;
inline constexpr int kDistributeBlock = 17;
inline constexpr int kDistributeCyclic = 18;
inline constexpr int kDefaultBlock = 19;
inline constexpr int kCart = 211;
inline constexpr int kGraph = 212;
inline constexpr int kDistGraph = 213;

inline void* in_place() { return reinterpret_cast<void*>(1); }
inline Status* ignored() { return nullptr; }
// Collectives with large counts are there.
#define LACUNA_MPI_LARGE_COLLECTIVES

inline constexpr std::uintptr_t kCommWorld = 0x101;
inline constexpr std::uintptr_t kCommSelf = 0x102;
inline constexpr std::uintptr_t kCommNull = 0x100;
inline constexpr std::uintptr_t kByte = 0x247;
inline constexpr std::uintptr_t kDatatypeNull = 0x200;
inline constexpr std::uintptr_t kRequestNull = 0x180;
inline constexpr std::uintptr_t kBand = 0x28;
inline constexpr std::uintptr_t kMessageNull = 0x128;
inline constexpr std::uintptr_t kMessageNoProc = 0x129;
inline constexpr std::uintptr_t kErrorsAreFatalNumber = 0x141;
inline constexpr std::uintptr_t kFirstOwnHandle = 0x400;
inline Errhandler errors_are_fatal() { return reinterpret_cast<Errhandler>(kErrorsAreFatalNumber); }
inline bool is_own(Errhandler handler) { return reinterpret_cast<std::uintptr_t>(handler) >= kFirstOwnHandle; }

enum class Combiner : int {
  named = 101,
  dup = 102,
  contiguous = 103,
  vector = 104,
  hvector = 105,
  indexed = 106,
  hindexed = 107,
  indexed_block = 108,
  hindexed_block = 109,
  structure = 110,
  subarray = 111,
  darray = 112,
  f90_real = 113,
  f90_complex = 114,
  f90_integer = 115,
  resized = 116,
  value_index = 117,
};

}  // namespace lacuna::mpi
