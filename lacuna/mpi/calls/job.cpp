// MPI_Init and MPI_Finalize, and what is best done when a type is committed.
#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

int copied(Comm, int, void*, void*, void*, int* flag) {
  *flag = 0;
  return kSuccess;
}

void end(Job& ending) {
  end_messages(ending);
  ending.end();
}

int deleted(Comm, int, void*, void*) try {
  if (job != nullptr) end(*job);
  return kSuccess;
} catch (const std::bad_alloc&) {
  return no_memory();
}

void begin() {
  job = Job::begin().release();  // for good: what is left behind for others is its memory
  int keyval = 0;
  if (job != nullptr && host().Comm_create_keyval(&copied, &deleted, &keyval, nullptr) == kSuccess)
    job->ends_with_self = host().Comm_set_attr(host().self, keyval, nullptr) == kSuccess;
}

}  // namespace

// For what measures the ways of this MPI (`lacuna guide --mpi`): Job::force(). 0: it holds.
LACUNA_MPI_EXPORTED int lacuna_mpi_force_way(const char* name) { return takes_messages(job) && job->force(name) ? 0 : 1; }

// For the same: nanoseconds that reading a line of another rank took last; 0: that is not known.
LACUNA_MPI_EXPORTED double lacuna_mpi_line_ns() {
  if (job == nullptr || job->lines == nullptr) return 0;
  const auto lock = job->enter();
  return job->lines->line_ns();
}

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

// MPI first deletes the attributes of MPI_COMM_SELF, the one that was set last before all others (MPI-4.1, 11.4.1).
// Until then the program may send and receive. Ours was set in MPI_Init, before any of the program's, so the job ends
// after them.
LACUNA_MPI_CALL(Finalize, ()) {
  if (job != nullptr && !job->ends_with_self) end(*job);
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
