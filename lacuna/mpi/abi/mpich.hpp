// The ABI that MPICH, Intel MPI and MVAPICH share (libmpi.so.12): handles are ints, and predefined ones are numbers.
// tests/mpi/abi_check.c compares them with each mpi.h at hand.
#pragma once

#include <cstdint>

namespace lacuna::mpi {

// Distinct types, as wide as an int.
enum class Comm : int {};
enum class Datatype : int {};
enum class Request : int {};
enum class Op : int {};
enum class Message : int {};
enum class Group : int {};
enum class Errhandler : int {};
enum class Info : int {};
enum class Win : int {};

struct Status {
  int count_low;
  int count_high_and_cancelled;
  int source;
  int tag;
  int error;
};

inline constexpr const char* kAbi = "mpich";

inline constexpr int kErrTruncate = 14;
inline constexpr int kErrOther = 15;
inline constexpr int kErrInStatus = 17;
inline constexpr int kErrPending = 18;

inline constexpr int kErrNoMem = 34;
inline constexpr int kAnySource = -2;
inline constexpr int kProcNull = -1;
inline constexpr int kAnyTag = -1;
inline constexpr int kThreadMultiple = 3;
inline constexpr int kOrderC = 56;
inline constexpr int kDistributeBlock = 121;
inline constexpr int kDistributeCyclic = 122;
inline constexpr int kDefaultBlock = -49767;
inline constexpr int kGraph = 1;
inline constexpr int kCart = 2;
inline constexpr int kDistGraph = 3;
inline void* in_place() { return reinterpret_cast<void*>(std::intptr_t{-1}); }
// Collectives with large counts are there (since MPICH 4.0).
#define LACUNA_MPI_LARGE_COLLECTIVES

inline constexpr Comm kCommWorld{0x44000000};
inline constexpr Comm kCommSelf{0x44000001};
inline constexpr Errhandler kErrorsAreFatal{0x54000000};
inline Errhandler errors_are_fatal() { return kErrorsAreFatal; }
inline bool is_own(Errhandler handler) {
  constexpr unsigned kKind = 0xfc00'0000, kPredefined = 0x5400'0000;
  return (static_cast<unsigned>(handler) & kKind) != kPredefined;
}
inline constexpr Comm kCommNull{0x04000000};
inline constexpr Datatype kByte{0x4c00010d};
inline constexpr Datatype kDatatypeNull{0x0c000000};
inline constexpr Request kRequestNull{0x2c000000};
inline constexpr Op kBand{0x58000006};
inline constexpr Message kMessageNull{0x2c000000};
inline constexpr Message kMessageNoProc{0x6c000000};

inline std::int64_t bytes_of(const Status& status) {
  return static_cast<std::int64_t>(static_cast<unsigned>(status.count_high_and_cancelled) >> 1) << 32 |
         static_cast<unsigned>(status.count_low);
}
inline Status* ignored() { return reinterpret_cast<Status*>(std::intptr_t{1}); }

enum class Combiner : int {
  named = 1,
  dup = 2,
  contiguous = 3,
  vector = 4,
  hvector = 6,
  indexed = 7,
  hindexed = 9,
  indexed_block = 10,
  structure = 12,
  subarray = 13,
  darray = 14,
  f90_real = 15,
  f90_complex = 16,
  f90_integer = 17,
  resized = 18,
  hindexed_block = 19,
  value_index = 20,
};

}  // namespace lacuna::mpi
