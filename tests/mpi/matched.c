/* A matched message that is kept as a number, as bindings for other languages do; requests, looked at in MPICH's own
 * way. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 6 };

static MPI_Message by_number(MPI_Message message) {
#if defined(MPI_ABI_VERSION) || (!defined(OPEN_MPI) && MPI_VERSION >= 5)
  message = MPI_Message_fromint(MPI_Message_toint(message));
#endif
#if !defined(MPI_ABI_VERSION)
  message = MPI_Message_f2c(MPI_Message_c2f(message));
#endif
  return message;
}

static void matched(long size, enum style style) {
  struct end e = end_with(size, style, (uint64_t)size);
  MPI_Message message;
  MPI_Status status;
  memset(&status, 0, sizeof status); /* MPICH's probes leave alone what says that it was cancelled */
  me == 0 ? load(&e, 3) : blank(&e);
  if (me == 0) MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
  if (me == 1) {
    MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, &status);
    say_status(&status, e.shape.type, "matched %ld", size);
    message = by_number(message);
    MPI_Mrecv(e.at, e.count, e.shape.type, &message, &status);
    CHECK(message == MPI_MESSAGE_NULL);
    check_end(&e, 3, size, "received %ld", size);
  }
  free_end(&e);
}

static int is_complete(MPI_Request request) {
#if defined(MPIX_STREAM_NULL)
  return MPIX_Request_is_complete(request);
#else
  int flag = 0;
  MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  return flag;
#endif
}

/* One that a probe has looked into, and one that it has not. */
static void asked(long size, enum style style, bool probed) {
  struct end e = end_with(size, style, (uint64_t)size);
  MPI_Request request;
  MPI_Status status = soiled();
  int flag = 0;
  me == 0 ? load(&e, 4) : blank(&e);
  if (me == 0) MPI_Isend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
  if (me == 1 && probed) MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
  if (me == 1) MPI_Irecv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
  /* the host's progress */
  while (!is_complete(request)) MPI_Iprobe(1 - me, TAG + 1, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  if (me == 1) check_end(&e, 4, size, "asked for %ld", size);
  say("asked for %ld", size);
  free_end(&e);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int turn = 0; turn < 2; ++turn) {
    for (int size = 0; size < SIZES; ++size) {
      matched(sizes[size], (enum style)((size + turn) % STYLES));
      asked(sizes[size], (enum style)((size + turn) % STYLES), turn == 0);
    }
  }
  return finish();
}
