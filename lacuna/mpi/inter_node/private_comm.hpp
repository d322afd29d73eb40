// The communicator between nodes that is Lacuna's alone. What goes wrong there is an error of the message, whatever the
// program's error handlers are. The host tells a handler of ours in the thread that calls; MPICH 5 calls it a success
// then.
#pragma once

#include "lacuna/mpi/host/host.hpp"

namespace lacuna::mpi {

/// What the handler was told last in this thread.
inline thread_local int told_of_private = kSuccess;

/// What a call on that communicator ends with.
template <class Call>
int told_by(const Call& call) {
  told_of_private = kSuccess;
  const int said = call();
  return told_of_private != kSuccess ? told_of_private : said;
}

/// Sets the handler.
void hear_errors(Comm comm);

}  // namespace lacuna::mpi
