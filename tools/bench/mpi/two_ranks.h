/* What programs that measure two ranks of a job share: a CPU for each, numbers that both know, and the host's own
 * functions beside those of the preloaded library. */
#ifndef LACUNA_BENCH_MPI_TWO_RANKS_H
#define LACUNA_BENCH_MPI_TWO_RANKS_H

#include <mpi.h>
#include <sched.h>
#include <stdint.h>

#include "program.h"

enum { RANKS = 2, TAG = 39 };

static int rank, peer;

static inline void* memory(long bytes) {
  void* found = aligned_alloc(4096, ((size_t)bytes + 4096) / 4096 * 4096);
  if (found != NULL) return found;
  fprintf(stderr, "no memory for %ld bytes\n", bytes);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return NULL;
}

/* --- The functions that programs call: the preloaded library's, or the host's, which a plain program calls. --- */

/* clang-format off */
#define LACUNA_CALLS(X)                                                                      \
  X(Send) X(Recv) X(Isend) X(Irecv) X(Waitall) X(Alltoall) X(Alltoallv) X(Alltoallw)         \
  X(Allgather) X(Allgatherv) X(Gather) X(Gatherv) X(Scatter) X(Scatterv) X(Bcast)            \
  X(Neighbor_alltoall) X(Neighbor_alltoallw) X(Neighbor_allgather)
/* clang-format on */

struct calls {
#define X(name) __typeof__(&MPI_##name) name;
  LACUNA_CALLS(X)
#undef X
};

static const struct calls preloaded_calls = {
#define X(name) .name = MPI_##name,
    LACUNA_CALLS(X)
#undef X
};

/* 0: this library does not tell. */
static inline int find_plain_calls(struct calls* found) {
  void* (*host_function)(const char*);
  *(void**)&host_function = dlsym(RTLD_DEFAULT, "lacuna_mpi_host_function");
  if (host_function == NULL) return 0;
#define X(name) \
  if (!(*(void**)& found->name = host_function("PMPI_" #name))) return 0;
  LACUNA_CALLS(X)
#undef X
  return 1;
}

/* --- What both ranks agree on, by messages of 8 bytes, which no way but the MPI's own takes. --- */

/* The larger of both ranks' numbers. Neither returns before both have come. */
static inline double larger(double own) {
  double other = 0;
  MPI_Sendrecv(&own, 1, MPI_DOUBLE, peer, TAG, &other, 1, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return own > other ? own : other;
}

/* Which block a rank has received as its b-th: `from` which rank, and which of that rank's. */
enum arrival { FIRST_OF_PEER, FIRST_OF_EACH, MINE_OF_EACH, FIRST_OF_PEER_IN_ITS_PLACE, BOTH_OF_PEER };

/* Returns whose block comes as the b-th, or -1. */
static inline int origin(enum arrival arrival, int b, int* of_it) {
  *of_it = arrival == MINE_OF_EACH ? rank : 0;
  switch (arrival) {
    case FIRST_OF_PEER: return b == 0 ? peer : -1;
    case FIRST_OF_PEER_IN_ITS_PLACE: return b == peer ? peer : -1;
    case BOTH_OF_PEER: return peer;
    default: return b;
  }
}

static uint64_t drawing = 39;

/* The same numbers in both ranks and in each run. */
static inline uint32_t drawn(uint32_t below) {
  drawing = drawing * 6364136223846793005U + 1442695040888963407U;
  return (uint32_t)(drawing >> 33) % below;
}

static inline void shuffle(int* order, int n) {
  for (int i = n - 1; i > 0; --i) {
    int j = (int)drawn((uint32_t)i + 1), other = order[i];
    order[i] = order[j];
    order[j] = other;
  }
}

/* --- The job. --- */

/* Ranks that the launcher does not bind get a CPU each; 0: there are fewer. */
static inline int bind_to_cpu(int index) {
  cpu_set_t allowed, one;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || index-- != 0) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
  }
  return 0;
}

/* After MPI_Init; ends the job if it has not two ranks with a CPU each. */
static inline void begin_two_ranks(const char* program) {
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != RANKS || !bind_to_cpu(rank)) {
    fprintf(stderr, "%s needs two ranks and a CPU for each; there are %d ranks\n", program, ranks);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  peer = 1 - rank;
}

#endif
