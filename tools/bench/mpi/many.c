/* For `lacuna bench ranks`: what a job of many ranks on one node takes, with Lacuna preloaded or without. All ranks
 * send blocks with gaps to all others, by MPI_Alltoallw and by MPI_Isend, and verify them. Then each rank sends a block
 * 1, 2, 4, ... ranks further, as a barrier does. Rank 0 prints one JSON object.
 *
 *   many --bytes 65536 --rounds 5    of a block, a multiple of 64; of its memory every other 32 bytes are gaps */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdint.h>
#include <unistd.h>

#include "program.h"

enum { RUN = 32, TAG = 7, IDLE_SECONDS = 3 }; /* Lacuna gives memory back that was idle for one to two seconds */

static int me, all;
static long bytes, rounds;
static unsigned char *out, *in;
static MPI_Datatype block;

static void give_up(const char* why) {
  fprintf(stderr, "many: rank %d: %s\n", me, why);
  MPI_Abort(MPI_COMM_WORLD, 3);
  exit(3);
}

/* Seconds from then to now, of the slowest rank; known to rank 0. */
static double of_slowest(double start) {
  double own = (now_ns() - start) / 1e9, slowest = own;
  MPI_Reduce(&own, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  return slowest;
}

/* Blocks of one rank overlap, each a run and its gap behind the last: 128 ranks have memory for 256 KiB to each. */
static long place_of(int to) { return 2L * RUN * to; }
/* Knuth's multiplicative hash: blocks that overlap differ. */
static unsigned char value(int from, long at) { return (unsigned char)(((uint32_t)at * 2654435761U + (uint32_t)from * 40503U) >> 13); }

/* Memory that processes of this machine share, KiB. */
static long shared_kib(void) {
  char line[256];
  long kib = -1;
  FILE* file = fopen("/proc/meminfo", "r");
  while (file != NULL && fgets(line, sizeof line, file) != NULL)
    if (sscanf(line, "Shmem: %ld", &kib) == 1) break;
  if (file != NULL) fclose(file);
  return kib;
}

static void fill(void) {
  memset(in, 0xEE, (size_t)(2 * bytes * all));
  for (long at = 0; at < 2 * bytes + place_of(all); ++at) out[at] = value(me, at);
}

static void verify(const char* what) {
  for (int peer = 0; peer < all; ++peer) {
    const unsigned char* got = in + 2 * bytes * peer;
    for (long at = 0; at < 2 * bytes; ++at)
      if (got[at] != (at / RUN % 2 == 0 ? value(peer, place_of(me) + at) : 0xEE)) give_up(what);
  }
}

static void alltoallw(void) {
  int* counts = malloc((size_t)all * sizeof *counts);
  int* from = malloc((size_t)all * sizeof *from);
  int* into = malloc((size_t)all * sizeof *into);
  MPI_Datatype* types = malloc((size_t)all * sizeof *types);
  if (counts == NULL || from == NULL || into == NULL || types == NULL) give_up("no memory");
  for (int peer = 0; peer < all; ++peer) {
    counts[peer] = 1;
    from[peer] = (int)place_of(peer);
    into[peer] = (int)(2 * bytes * peer);
    types[peer] = block;
  }
  MPI_Alltoallw(out, counts, from, types, in, counts, into, types, MPI_COMM_WORLD);
  free(counts);
  free(from);
  free(into);
  free(types);
}

static void isend(void) {
  MPI_Request* requests = malloc(2 * (size_t)all * sizeof *requests);
  if (requests == NULL) give_up("no memory");
  for (int k = 0; k < all; ++k) {
    int peer = (me + k) % all;
    MPI_Irecv(in + 2 * bytes * peer, 1, block, peer, TAG, MPI_COMM_WORLD, &requests[k]);
  }
  for (int k = 0; k < all; ++k) {
    int peer = (me + k) % all;
    MPI_Isend(out + place_of(peer), 1, block, peer, TAG, MPI_COMM_WORLD, &requests[all + k]);
  }
  MPI_Waitall(2 * all, requests, MPI_STATUSES_IGNORE);
  free(requests);
}

/* The median of the slowest rank's rounds, in seconds. The rounds before and after them are verified. */
static double timed(void (*exchange)(void), const char* what) {
  double* took = malloc((size_t)rounds * sizeof *took);
  if (took == NULL) give_up("no memory");
  for (long i = -1; i <= rounds; ++i) {
    const int verified = i < 0 || i == rounds;
    if (verified) fill();
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_ns();
    exchange();
    double slowest = of_slowest(start);
    if (verified)
      verify(what);
    else
      took[i] = slowest;
  }
  double found = median(took, (int)rounds);
  free(took);
  return found;
}

static double barrier_median(void) {
  enum { TIMES = 21 };
  double took[TIMES];
  for (int i = 0; i < TIMES; ++i) {
    double start = now_ns();
    MPI_Barrier(MPI_COMM_WORLD);
    took[i] = (now_ns() - start) / 1e9;
  }
  return median(took, TIMES);
}

/* All ranks have heard of all others afterwards, through blocks with gaps. */
static double dissemination_median(void) {
  enum { TIMES = 5 };
  double took[TIMES];
  for (int i = 0; i < TIMES; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    double start = now_ns();
    for (int step = 1; step < all; step *= 2) {
      int to = (me + step) % all, from = (me + all - step) % all;
      MPI_Sendrecv(out, 1, block, to, TAG, in, 1, block, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    took[i] = of_slowest(start);
  }
  return median(took, TIMES);
}

static long shared_of_all(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  long kib = shared_kib();
  MPI_Barrier(MPI_COMM_WORLD);
  return kib;
}

int main(int argc, char** argv) {
  bytes = (long)argument(argc, argv, "--bytes");
  rounds = (long)argument(argc, argv, "--rounds");
  double start = now_ns();
  MPI_Init(&argc, &argv);
  double init = of_slowest(start);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &all);
  if (bytes < 2 * RUN || bytes % (2 * RUN) != 0 || rounds < 1) give_up("--bytes is a multiple of 64, --rounds 1 or more");
  long after_init = shared_of_all();
  out = malloc((size_t)(2 * bytes + place_of(all)));
  in = malloc((size_t)(2 * bytes * all));
  if (out == NULL || in == NULL) give_up("no memory");
  MPI_Type_vector((int)(bytes / RUN), RUN, 2 * RUN, MPI_BYTE, &block);
  MPI_Type_commit(&block);

  double waits = barrier_median();
  double collective = timed(&alltoallw, "MPI_Alltoallw moved a wrong byte");
  double requests = timed(&isend, "MPI_Isend moved a wrong byte");
  double disseminated = dissemination_median();
  long after_exchange = shared_of_all();

  start = now_ns();
  MPI_Comm copy;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  double made = of_slowest(start);
  MPI_Comm_free(&copy);
  MPI_Type_free(&block);
  free(out);
  free(in);
  sleep(IDLE_SECONDS); /* no rank calls MPI */
  long after_idle = shared_of_all();
  start = now_ns();
  MPI_Finalize();
  double finalized = (now_ns() - start) / 1e9;
  if (me != 0) return 0;
  printf("{\"ranks\": %d, \"bytes\": %ld, \"init_s\": %.6f, \"barrier_s\": %.9f, \"alltoallw_s\": %.9f, \"isend_s\": %.9f, ", all, bytes,
         init, waits, collective, requests);
  printf("\"dissemination_s\": %.9f, \"comm_dup_s\": %.6f, \"finalize_s\": %.6f, ", disseminated, made, finalized);
  printf("\"shared_after_init_kib\": %ld, \"shared_after_exchange_kib\": %ld, \"shared_after_idle_kib\": %ld, \"send_in\": \"%s\"}\n",
         after_init, after_exchange, after_idle, send_in());
  return 0;
}
