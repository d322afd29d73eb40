#include "lacuna/mpi/inter_node/private_comm.hpp"

namespace lacuna::mpi {
namespace {

// NOLINTNEXTLINE(cert-dcl50-cpp,modernize-avoid-variadic-functions): as MPI has it
void hears(Comm* /*comm*/, int* code, ...) { told_of_private = *code; }

}  // namespace

void hear_errors(Comm comm) {
  Errhandler handler{};
  if (host().Comm_create_errhandler(&hears, &handler) != kSuccess) return;
  host().Comm_set_errhandler(comm, handler);
  host().Errhandler_free(&handler);
}

}  // namespace lacuna::mpi
