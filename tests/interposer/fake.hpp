// fake: an MPI within one process, for tests of the interposer. Its ranks are threads, and it implements
// lacuna/mpi/host.hpp: what the interposer asks of its host is done here, under one lock, by the standard's rules,
// without anything clever.
//
//   program(mpi) ── mpi.Send ──▶ MPI_Send of the interposer ──▶ host().Send ──▶ fake: a mailbox for each rank
//   program(mpi) ── mpi.Send ─────────────────────────────────────────────────▶ the same, without the interposer
//
// A program is a function of a table of MPI's functions, so that one program runs both ways, and what it saw can be
// compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "lacuna/mpi/host/host.hpp"

namespace lacuna::test::fake {

using mpi::Aint;
using mpi::Comm;
using mpi::Count;
using mpi::Datatype;
using mpi::Errhandler;
using mpi::Group;
using mpi::Host;
using mpi::Info;
using mpi::Message;
using mpi::Op;
using mpi::Request;
using mpi::Status;
using mpi::Win;

inline constexpr int kErrRequest = 7;  // of MPI-5.0's numbers, those that the interposer does not need
inline constexpr int kErrRank = 6;
inline constexpr int kErrArg = 13;
inline constexpr int kErrTag = 4;
inline constexpr int kErrComm = 5;
inline constexpr int kErrProcFailed = 75;  ///< of ULFM: MPIX_ERR_PROC_FAILED

/// Predefined datatypes.
Datatype byte_type();
Datatype int_type();
Datatype double_type();
/// A double and an int, of 12 bytes in 16.
Datatype double_int_type();

/// How the fake behaves.
struct Options {
  int ranks = 2;
  std::int64_t eager = 4096;  ///< bytes; a longer send is over once it is received
  bool threads = true;        ///< MPI_THREAD_MULTIPLE
  /// MPI_Start puts another request in the place of the one that is started, as Open MPI may
  bool renews = false;
  bool open_mpi = false;  ///< says so of itself
  /// A Fault that an error handler of the program's own hears is no error then, as with MPICH 5
  bool forgives = false;
  bool singly = false;  ///< MPI_Waitsome and MPI_Testsome end one request at a time
  /// The use of a datatype at which the interposer decodes it: LACUNA_MPI_DECODE; 0: it has no value
  int decode_at = 1;
  std::string profile = "/nonexistent";  ///< LACUNA_MPI_PROFILE
  std::string distance = "near";         ///< LACUNA_MPI_DISTANCE; empty: what the library measures
  int nodes = 1;                         ///< machines that the ranks are on, as many consecutive ones on each
  /// Of each machine, by which others read its memory: "fake" (tests/support/mlx5), or as nic::open() calls it
  std::string nic;
  /// Of the last rank, in MPI_Init, from its first word to the others on: allocations of the interposer until all
  /// fail; -1: none does
  long scarce_after = -1;
  bool scarce_once = false;    ///< only one does then
  bool* was_scarce = nullptr;  ///< whether some did
  /// A seed: requests that are over are seen to be over at the second or a later look; 0: at the first
  std::uint64_t slow = 0;
};

/// The call of a rank that fails: the n-th of its name, from 1, with this code; it does nothing else.
struct Fault {
  static constexpr int kAll = 0;
  std::string call;
  int n = 1;  ///< kAll: each of them
  int code = mpi::kErrOther;
  int rank = 0;
};

/// What came of a run.
struct Outcome {
  /// Calls that no MPI has to bear: handles that are none, errors that are fatal, requests left over
  std::vector<std::string> wrong;
  std::map<std::string, int> calls;
};

/// A program: what each of the ranks does, between MPI_Init_thread and MPI_Finalize.
using Program = std::function<void(const Host& mpi, int rank)>;

/// Runs it on the fake alone.
Outcome run_plain(const Options& options, const Program& program, const std::vector<Fault>& faults = {});
/// Runs it with the interposer between.
Outcome run_preloaded(const Options& options, const Program& program, const std::vector<Fault>& faults = {});

/// Calls of one function of the fake's, by this rank until now. kLooks: requests that MPI_Waitsome and MPI_Testsome
/// were asked about.
inline constexpr const char* kLooks = "requests of MPI_Waitsome";
int calls_of(const char* call);
/// This rank is dead: it makes no call any more, nor MPI_Finalize. What it has sent whole still comes; others' requests
/// and calls that need more of it end with kErrProcFailed. Its memory stays until all have ended.
void die();
/// A thread of the rank that starts it.
std::jthread thread_of_rank(std::function<void()> body);

// Constructors of datatypes, which the interposer does not see. `large`: by the function with large counts.
Datatype contiguous(Count count, Datatype old, bool large = false);
Datatype vector(Count count, Count length, Count stride, Datatype old, bool large = false);
Datatype hvector(Count count, Count length, Aint stride, Datatype old, bool large = false);
Datatype indexed(std::span<const Count> lengths, std::span<const Count> places, Datatype old, bool large = false);
Datatype hindexed(std::span<const Count> lengths, std::span<const Count> places, Datatype old, bool large = false);
Datatype indexed_block(Count length, std::span<const Count> places, Datatype old, bool large = false);
Datatype structure(std::span<const Count> lengths, std::span<const Count> places, std::span<const Datatype> olds, bool large = false);
Datatype subarray(std::span<const Count> sizes, std::span<const Count> subsizes, std::span<const Count> starts, Datatype old,
                  bool large = false);
Datatype resized(Datatype old, Aint low, Aint extent, bool large = false);
/// How many there are that were made by constructors.
std::size_t types_made();
/// A type by MPI_COMBINER_VALUE_INDEX, of `old` and an int.
Datatype value_index(Datatype old);

// Communicators, which all of their ranks make in the same order.
Comm split(Comm comm, int color, int key);
Comm dist_graph(Comm comm, std::span<const int> sources, std::span<const int> destinations);
Comm cart(Comm comm, std::span<const int> dims, std::span<const bool> periods);
/// A duplicate whose messages MPICH's MPIX_Stream_recv may receive, which the interposer does not see.
Comm of_stream(Comm comm);
/// Errors are returned in it.
void return_errors(Comm comm);
/// MPI_ERRORS_RETURN.
Errhandler errors_return();

}  // namespace lacuna::test::fake
