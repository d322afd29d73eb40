// MPI_Init and MPI_Finalize, and what is best done when a type is committed.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "lacuna/mpi/calls.hpp"

namespace lacuna::mpi {
namespace {

// Whether a Fortran binding starts MPI. Its other calls may reach the host without passing here, so that descriptors would not be understood.
bool by_fortran = false;

template <class Call>
Call next(const char* name) {
  by_fortran = true;
  const auto found = reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
  if (found != nullptr) return found;
  std::fprintf(stderr, "lacuna: the MPI of this program has no %s\n", name);
  std::abort();
}

void begin() {
  job = Job::begin(by_fortran ? Mode::pack : Mode::full).release();  // for good: what is left behind for others is its memory
}

}  // namespace

LACUNA_MPI_CALL MPI_Init(int* argc, char*** argv) {
  const int result = host().Init(argc, argv);
  if (result == kSuccess) begin();
  return result;
}

LACUNA_MPI_CALL MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int result = host().Init_thread(argc, argv, required, provided);
  if (result == kSuccess) begin();
  return result;
}

#define FORTRAN_INIT(name) \
  extern "C" __attribute__((visibility("default"))) void name(int* error) { next<void (*)(int*)>(#name)(error); }
#define FORTRAN_INIT_THREAD(name)                                                                         \
  extern "C" __attribute__((visibility("default"))) void name(int* required, int* provided, int* error) { \
    next<void (*)(int*, int*, int*)>(#name)(required, provided, error);                                   \
  }
FORTRAN_INIT(mpi_init_)
FORTRAN_INIT(mpi_init_f08_)
FORTRAN_INIT_THREAD(mpi_init_thread_)
FORTRAN_INIT_THREAD(mpi_init_thread_f08_)

LACUNA_MPI_CALL MPI_Finalize() {
  if (job != nullptr) job->end();
  const int result = host().Finalize();
  job = nullptr;
  return result;
}

LACUNA_MPI_CALL MPI_Type_commit(Datatype* type) {
  const int result = host().Type_commit(type);
  if (result == kSuccess && job != nullptr) job->types.committed(*type);
  return result;
}

// As committed as the old one.
LACUNA_MPI_CALL MPI_Type_dup(Datatype old, Datatype* type) {
  const int result = host().Type_dup(old, type);
  if (result == kSuccess && job != nullptr && job->types.is_committed(old)) job->types.committed(*type);
  return result;
}

}  // namespace lacuna::mpi
