// MPI_Init and MPI_Finalize, and what is best done when a type is committed.
#include "lacuna/mpi/calls.hpp"

namespace lacuna::mpi {
namespace {

void begin() {
  job = Job::begin().release();  // for good: what is left behind for others is its memory
}

}  // namespace

LACUNA_MPI_CALL(Init, (int* argc, char*** argv)) {
  const int result = host().Init(argc, argv);
  if (result == kSuccess) begin();
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Init_thread, (int* argc, char*** argv, int required, int* provided)) {
  const int result = host().Init_thread(argc, argv, required, provided);
  if (result == kSuccess) begin();
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Finalize, ()) {
  if (job != nullptr) job->end();
  const int result = host().Finalize();
  job = nullptr;
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Type_commit, (Datatype * type)) {
  const int result = host().Type_commit(type);
  if (result == kSuccess && job != nullptr) job->types.committed(*type);
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Type_free, (Datatype * type)) {
  if (job == nullptr || type == nullptr || !job->types.puts_off_free(*type)) return host().Type_free(type);
  *type = host().no_type;
  return kSuccess;
}
LACUNA_MPI_CAUGHT

// As committed as the old one.
LACUNA_MPI_CALL(Type_dup, (Datatype old, Datatype* type)) {
  const int result = host().Type_dup(old, type);
  if (result == kSuccess && job != nullptr && job->types.is_committed(old)) job->types.committed(*type);
  return result;
}
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
