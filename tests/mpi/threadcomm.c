/* A communicator whose ranks are threads, which MPICH has beside MPI's. Each sends to each other one. */
/* ranks: 2 */
#define _GNU_SOURCE
#include <pthread.h>

#include "nests.h"

enum { TAG = 5, THREADS = 2, INTS = 20000 };

#if defined(MPICH) && defined(MPIX_STREAM_NULL)

static MPI_Comm threads;
static MPI_Datatype every_second;
static int wrong_ints[THREADS];

static int value(int from, int to, int turn, int i) { return ((from * 8 + to) * 8 + turn) * INTS + i; }

static void exchange(int thread, int rank, int other, int turn) {
  int *out = allocate(2 * INTS * sizeof *out), *in = allocate(2 * INTS * sizeof *in);
  MPI_Request request;
  for (int i = 0; i < INTS; ++i) {
    out[2 * i] = value(rank, other, turn, i);
    out[2 * i + 1] = in[2 * i] = in[2 * i + 1] = -1;
  }
  MPI_Isend(out, 1, every_second, other, TAG + turn, threads, &request);
  MPI_Recv(in, 1, every_second, other, TAG + turn, threads, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  for (int i = 0; i < INTS; ++i) wrong_ints[thread] += in[2 * i] != value(other, rank, turn, i) || in[2 * i + 1] != -1;
  free(in);
  free(out);
}

static void* run_thread(void* number) {
  int thread = (int)(intptr_t)number, rank, size;
  MPIX_Threadcomm_start(threads);
  MPI_Comm_rank(threads, &rank);
  MPI_Comm_size(threads, &size);
  for (int turn = 0; turn < 3; ++turn) {
    for (int other = 0; other < size; ++other) {
      if (other != rank) exchange(thread, rank, other, turn);
    }
  }
  MPIX_Threadcomm_finish(threads);
  return NULL;
}

static void exchange_all(void) {
  pthread_t all[THREADS];
  MPI_Type_vector(INTS, 1, 2, MPI_INT, &every_second);
  MPI_Type_commit(&every_second);
  MPIX_Threadcomm_init(MPI_COMM_WORLD, THREADS, &threads);
  for (int i = 0; i < THREADS; ++i) pthread_create(&all[i], NULL, run_thread, (void*)(intptr_t)i);
  for (int i = 0; i < THREADS; ++i) pthread_join(all[i], NULL);
  MPIX_Threadcomm_free(&threads);
  MPI_Type_free(&every_second);
  for (int i = 0; i < THREADS; ++i) CHECK(wrong_ints[i] == 0);
  say("threads exchanged");
}

#endif

int main(int argc, char** argv) {
  if (begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE) < MPI_THREAD_MULTIPLE) {
    say("no threads");
  } else {
#if defined(MPICH) && defined(MPIX_STREAM_NULL)
    exchange_all();
#endif
  }
  return finish();
}
