/* One rank looks its functions up in the MPI's own library, as bindings for other languages do; others call them by
 * name. The ranks change roles, at first from turn to turn, then from message to message. */
/* ranks: 3 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>

#define MPI_Init_thread init_by_either /* in begin() */
int init_by_either(int* argc, char*** argv, int wanted, int* provided);
#include "nests.h"

enum { TAG = 7 };

#define FUNCTIONS(X)                                                           \
  X(Send, (const void*, int, MPI_Datatype, int, int, MPI_Comm))                \
  X(Isend, (const void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*)) \
  X(Recv, (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status*))         \
  X(Irecv, (void*, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request*))       \
  X(Wait, (MPI_Request*, MPI_Status*))                                         \
  X(Probe, (int, int, MPI_Comm, MPI_Status*))                                  \
  X(Alltoallw, (const void*, const int*, const int*, const MPI_Datatype*, void*, const int*, const int*, const MPI_Datatype*, MPI_Comm))

struct table {
#define X(name, arguments) int(*name) arguments;
  FUNCTIONS(X)
#undef X
};

static struct table by_name(void) {
  struct table made = {
#define X(name, arguments) .name = MPI_##name,
      FUNCTIONS(X)
#undef X
  };
  return made;
}

/* That in which MPI_Wtime is, which no tool has. */
static void* library_of_mpi(void) {
  Dl_info info;
  if (dladdr(dlsym(RTLD_DEFAULT, "MPI_Wtime"), &info) == 0) give_up("no library has MPI_Wtime");
  void* library = dlopen(info.dli_fname, RTLD_LAZY);
  if (library == NULL) give_up(dlerror());
  return library;
}

#undef MPI_Init_thread
int init_by_either(int* argc, char*** argv, int wanted, int* provided) {
  const char* names[] = {"PMI_RANK", "OMPI_COMM_WORLD_RANK"};
  for (int i = 0; i < COUNT_OF(names); ++i) {
    const char* rank = getenv(names[i]);
    if (rank == NULL || atoi(rank) != 0) continue;
    int (*found)(int*, char***, int, int*) = (int (*)(int*, char***, int, int*))dlsym(library_of_mpi(), "MPI_Init_thread");
    return found(argc, argv, wanted, provided);
  }
  return MPI_Init_thread(argc, argv, wanted, provided);
}

static struct table by_handle(const char* prefix) {
  struct table made;
  void* library = library_of_mpi();
  char text[64];
#define X(function, arguments)                            \
  snprintf(text, sizeof text, "%s" #function, prefix);    \
  dlerror();                                              \
  made.function = (int(*) arguments)dlsym(library, text); \
  if (made.function == NULL || dlerror() != NULL) wrong("dlsym does not find %s", text);
  FUNCTIONS(X)
#undef X
  CHECK(dlsym(library, "MPI_No_such_function") == NULL && dlerror() != NULL);
  return made;
}

/* To the next rank, from the one before. */
static void ring(const struct table* mpi, long size, enum style style, uint64_t seed, bool later) {
  int next = (me + 1) % everybody, before = (me + everybody - 1) % everybody;
  struct end out = end_with(size, style, seed), in = end_with(size, (enum style)((style + me) % STYLES), seed + 1);
  MPI_Request request;
  MPI_Status status = soiled();
  load(&out, seed * 8 + (uint64_t)me);
  blank(&in);
  if (later) {
    MPI_Request sent;
    mpi->Irecv(in.at, in.count, in.shape.type, before, TAG, MPI_COMM_WORLD, &request);
    mpi->Isend(out.at, out.count, out.shape.type, next, TAG, MPI_COMM_WORLD, &sent);
    mpi->Wait(&request, &status);
    mpi->Wait(&sent, MPI_STATUS_IGNORE);
  } else {
    mpi->Isend(out.at, out.count, out.shape.type, next, TAG, MPI_COMM_WORLD, &request);
    mpi->Probe(before, TAG, MPI_COMM_WORLD, &status);
    mpi->Recv(in.at, in.count, in.shape.type, before, TAG, MPI_COMM_WORLD, &status);
    mpi->Wait(&request, MPI_STATUS_IGNORE);
  }
  check_end(&in, seed * 8 + (uint64_t)before, size, "a ring of %ld", size);
  if (me == 0) mpi->Send(out.at, out.count, out.shape.type, next, TAG + 1, MPI_COMM_WORLD);
  if (me == 1) mpi->Recv(in.at, in.count, in.shape.type, 0, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (me == 1) check_end(&in, seed * 8, size, "a message of %ld", size);
  free_end(&in);
  free_end(&out);
}

static void all_to_all(const struct table* mpi, int turn) {
  enum { ROWS = 5000 };
  MPI_Datatype column;
  MPI_Type_vector(ROWS, 1, everybody, MPI_INT, &column);
  MPI_Type_commit(&column);
  int *out = allocate((size_t)everybody * ROWS * sizeof *out), *in = allocate((size_t)everybody * ROWS * sizeof *in);
  int counts[8], places[8];
  MPI_Datatype types[8];
  for (int i = 0; i < everybody; ++i) {
    counts[i] = 1;
    places[i] = i * (int)sizeof(int);
    types[i] = column;
  }
  for (int i = 0; i < everybody * ROWS; ++i) {
    out[i] = (me * 16 + turn) * everybody * ROWS + i;
    in[i] = -1;
  }
  mpi->Alltoallw(out, counts, places, types, in, counts, places, types, MPI_COMM_WORLD);
  int others = 0;
  for (int i = 0; i < everybody * ROWS; ++i) {
    int from = i % everybody;
    others += in[i] != (from * 16 + turn) * everybody * ROWS + i - from + me;
  }
  CHECK(others == 0);
  free(in);
  free(out);
  MPI_Type_free(&column);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const struct table named = by_name(), found = by_handle("MPI_"), profiled = by_handle("PMPI_");
  const struct table* tables[] = {&found, &named, &profiled};
  for (int turn = 0; turn < 6; ++turn) {
    for (int size = 0; size < SIZES; ++size) {
      const struct table* mpi = turn < 3 ? tables[(me + turn) % 3] : tables[(me + turn + size) % 3];
      ring(mpi, sizes[size], (enum style)((size + turn) % STYLES), (uint64_t)(turn * SIZES + size), size % 2 == turn % 2);
    }
    all_to_all(tables[(me + turn) % 3], turn);
    say("turn %d", turn);
  }
  return finish();
}
