/* One rank of two dies while large messages travel between all: by a signal, by exit(), or by MPI_Abort, as sender or
 * as receiver. */
#include <time.h>

#include "../nests.h"

static const char* how;

static void die(int signal) {
  (void)signal;
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  if (strcmp(how, "exit") == 0) _exit(7);
  MPI_Abort(MPI_COMM_WORLD, 5);
}

/* A CPU's time from now. */
static void die_soon(void) {
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
  struct itimerspec soon = {.it_value = {.tv_nsec = 50 * 1000 * 1000}};
  timer_t timer;
  signal(SIGUSR1, die);
  timer_create(CLOCK_MONOTONIC, &event, &timer);
  timer_settime(timer, 0, &soon, NULL);
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  how = argv[1];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  struct end e = end_with(3 * MIB, STRIDED, (uint64_t)me);
  load(&e, 1);
  MPI_Barrier(MPI_COMM_WORLD);
  int dies = strcmp(argv[2], "sender") == 0 ? 0 : 1;
  if (me == dies) die_soon();
  for (;;) {
    MPI_Request requests[2];
    if (me == 0) {
      for (int i = 0; i < 2; ++i) MPI_Isend(e.at, e.count, e.shape.type, 1, i, MPI_COMM_WORLD, &requests[i]);
      MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
      MPI_Send(e.at, e.count, e.shape.type, 1, 2, MPI_COMM_WORLD);
    } else {
      for (int i = 0; i < 3; ++i) MPI_Recv(e.at, e.count, e.shape.type, 0, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
}
