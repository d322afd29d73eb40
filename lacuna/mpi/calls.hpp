// What the interposed functions share. They are MPI's by name and arguments; each is one of messages.hpp's, or the host's.
#pragma once

#include "lacuna/mpi/messages.hpp"

#define LACUNA_MPI_CALL extern "C" __attribute__((visibility("default"))) int

namespace lacuna::mpi {

/// Messages are ours.
inline bool takes_messages(const Job* j) { return j != nullptr && j->mode == Mode::full; }

// In calls_status.cpp: whether some of the requests are ours, or something of ours wants to be moved on.
bool concerns_us(Job* j, int count, const Request* requests);
// In calls_requests.cpp: MPI_Wait, for what is made of it.
int wait(Request* request, Status* status);

}  // namespace lacuna::mpi
