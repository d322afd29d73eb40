// Errors that the library finds: whose handler is told of them, and what the call returns. MPI leaves much of it open
// (MPI-4.1, 9.3), so hosts differ; tests/mpi/handlers.c compares.
#include <new>
#include <string>
#include <string_view>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

// The host still knows a communicator that the program has freed, but not by its handle.
Comm alive(Comm comm) { return job != nullptr && job->comms != nullptr && !job->comms->lives(comm) ? host().world : comm; }

}  // namespace

void tell(const char* of, const base::Error& error) noexcept {
  try {
    base::log(base::Level::error, of + (": " + error.text()));
  } catch (const std::bad_alloc&) {
    base::log(base::Level::error, of);
  }
}

// The standard's ABI is offered by MPICH and Intel MPI so far.
#if !defined(LACUNA_MPI_ABI_OPENMPI)

namespace {

// NOLINTNEXTLINE(cert-dcl50-cpp,modernize-avoid-variadic-functions): as MPI has it
void heard(Comm* /*comm*/, int* /*code*/, ...) {}

// Of a communicator's own error handler the program knows by now; MPICH 5 then calls it a success. Tried out where
// no program sees it.
bool forgives() {
  const Host& h = host();
  Comm comm{};
  if (h.Comm_dup(h.self, &comm) != kSuccess) return false;
  Errhandler handler{};
  h.Comm_create_errhandler(&heard, &handler);
  h.Comm_set_errhandler(comm, handler);
  const bool forgiven = h.Send(nullptr, -1, h.byte, 0, 0, comm) == kSuccess;
  h.Errhandler_free(&handler);
  h.Comm_free(&comm);
  return forgiven;
}

Errhandler handler_of(Comm comm) {
  Errhandler handler{};
  if (host().Comm_get_errhandler(comm, &handler) != kSuccess) return errors_are_fatal();
  Errhandler copy = handler;  // its number stays
  if (is_own(handler)) host().Errhandler_free(&copy);
  return handler;
}

// Since MPI-4.0 what has no communicator is told to MPI_COMM_SELF, by MPICH if that has got a handler; Intel MPI, like
// MPICH 3 and 4.0, tells MPI_COMM_WORLD, of requests too, which it has freed.
bool tells_world() {
  const std::string version = library_version();
  return version.contains("Intel") || version.contains("MPICH Version:\t3") || version.contains("MPICH Version:\t4.0");
}

Comm told(Call call, Comm comm) {
  static const bool world = tells_world();
  if (call == Call::message || (call == Call::completion && !world)) return alive(comm);
  return world || handler_of(host().self) == errors_are_fatal() ? host().world : host().self;
}

}  // namespace

int raise(Call call, Comm comm, int code) {
  const Comm to = told(call, comm);
  host().Comm_call_errhandler(to, code);
  static const bool forgiven = forgives();
  return forgiven && is_own(handler_of(to)) ? kSuccess : code;
}

int raise_in_status(const Ended& first) { return raise(Call::completions, first.comm, kErrInStatus); }

#else

int raise(Call /*call*/, Comm comm, int code) {
  host().Comm_call_errhandler(alive(comm), code);
  return code;
}

int raise_in_status(const Ended& first) {
  raise(Call::completions, first);
  return kErrInStatus;
}

#endif

int no_memory() {
  try {
    return raise(Call::completions, host().world, kErrNoMem);
  } catch (const std::bad_alloc&) {
    return kErrNoMem;
  }
}

}  // namespace lacuna::mpi
