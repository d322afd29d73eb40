// What the interposed functions share. They are MPI's by name and arguments; each is one of messages.hpp's, or the
// host's.
//
// Each has its profiling name, too: that is what the Fortran functions of Open MPI call, and what tools do that stand
// between program and MPI. Those of MPICH's ABI call the names without P. So what a Fortran binding makes of its
// arguments (handles that are numbers, MPI_BOTTOM, MPI_IN_PLACE and the statuses that are ignored, descriptors of
// arrays) is the host's work, and comes here in C.
#pragma once

#include <new>
#include <stdexcept>

#include "lacuna/mpi/messages/messages.hpp"

// NOLINTBEGIN(bugprone-macro-parentheses): names and arguments
#define LACUNA_MPI_EXPORTED extern "C" __attribute__((visibility("default")))
#define LACUNA_MPI_CALL_OF(Result, name, arguments)                                      \
  LACUNA_MPI_EXPORTED Result MPI_##name arguments;                                       \
  LACUNA_MPI_EXPORTED __attribute__((alias("MPI_" #name))) Result PMPI_##name arguments; \
  LACUNA_MPI_EXPORTED Result MPI_##name arguments
// Its body is followed by LACUNA_MPI_CAUGHT: what has no memory is an error of MPI's, and no exception. Others are the
// program's, whose error handlers may throw.
#define LACUNA_MPI_CALL(name, arguments) LACUNA_MPI_CALL_OF(int, name, arguments) try
#define LACUNA_MPI_CAUGHT            \
  catch (const std::bad_alloc&) {    \
    return lacuna::mpi::no_memory(); \
  }                                  \
  catch (const std::length_error&) { \
    return lacuna::mpi::no_memory(); \
  }
// NOLINTEND(bugprone-macro-parentheses)

namespace lacuna::mpi {

/// Messages are ours.
inline bool takes_messages(const Job* j) { return j != nullptr && j->mode == Mode::full; }

/// A call waits, for what a program that learns has to know (ways.hpp).
inline void waits(Job* j) {
  if (j != nullptr) j->ways.waited();
}

/// Of a call that is about nothing of ours.
inline Why why_passed(const Job* j) { return takes_messages(j) ? Why::of_host : Why::not_full; }
/// Hands a call to the host as it is.
template <class Pass>
int passed(Job* j, Function function, Why why, const Pass& pass) {
  if (j != nullptr && j->reports) j->report.passed.add(function, why);
  return pass();
}

// In status.cpp: whether some of the requests are ours, or something of ours wants to be moved on.
bool concerns_us(Job* j, int count, const Request* requests);
/// The same, said without a look at each where that would take as long as the call itself: then it may be none of them.
bool may_concern_us(Job* j, int count, const Request* requests);
// In sends.cpp: MPI_Isend, as a part of this function.
int isend_for(Function function, const void* base, int count, Datatype type, int dest, int tag, Comm comm, Request* request);
int isend_for(Function function, const void* base, Count count, Datatype type, int dest, int tag, Comm comm, Request* request);
// In requests.cpp: MPI_Wait, and what is made of it. `counts`: in the report, if it passes through.
int wait(Request* request, Status* status, bool counts = false);

}  // namespace lacuna::mpi
