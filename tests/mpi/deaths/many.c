/* One rank of many dies while blocks with gaps travel between all: by a signal, by exit(), or by MPI_Abort. */
#include <time.h>

#include "../check.h"

enum { BLOCK = 64 * KIB, RUN = 32, ROUNDS_BEFORE = 2, TAG = 5 };

/* What the others take to end is from this time, of CLOCK_REALTIME, to the end of the launcher. */
static void die(const char* how) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  fprintf(stderr, "rank %d dies at %lld.%03ld\n", me, (long long)now.tv_sec, now.tv_nsec / 1000000);
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "exit") == 0) _exit(7);
  MPI_Abort(MPI_COMM_WORLD, 5);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &everybody);
  MPI_Datatype block;
  MPI_Type_vector(BLOCK / RUN, RUN, 2 * RUN, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  char* out = calloc(2, BLOCK);
  char* in = calloc((size_t)everybody * 2, BLOCK);
  MPI_Request* requests = malloc((size_t)everybody * 2 * sizeof *requests);
  if (out == NULL || in == NULL || requests == NULL) give_up("no memory");
  for (int round = 0;; ++round) {
    for (int k = 0; k < everybody; ++k) {
      int peer = (me + k) % everybody;
      MPI_Irecv(in + (size_t)peer * 2 * BLOCK, 1, block, peer, TAG, MPI_COMM_WORLD, &requests[k]);
    }
    for (int k = 0; k < everybody; ++k) {
      if (me == everybody / 2 && round == ROUNDS_BEFORE && k == everybody / 2) die(argv[1]);
      MPI_Isend(out, 1, block, (me + k) % everybody, TAG, MPI_COMM_WORLD, &requests[everybody + k]);
    }
    MPI_Waitall(2 * everybody, requests, MPI_STATUSES_IGNORE);
  }
}
