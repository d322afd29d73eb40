/* Large messages that can only move while a rank waits for something else. Argument: what it waits in. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 1, REPLY = 2, LARGE = SIZES - 4 }; /* the sizes from there on */

static MPI_Win window;
static MPI_File file;
static int in_window[16];

/* What all ranks do together, by name. */
static void meet(const char* what) {
  if (strcmp(what, "barrier") == 0) MPI_Barrier(MPI_COMM_WORLD);
  if (strcmp(what, "dup") == 0) {
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_free(&comm);
  }
  if (strcmp(what, "fence") == 0) MPI_Win_fence(0, window);
  if (strcmp(what, "file") == 0) MPI_File_write_at_all(file, me * 64, in_window, 16, MPI_INT, MPI_STATUS_IGNORE);
}

enum role { SEND_STARTED, RECEIVE_STARTED, BOTH_STARTED, ROLES };

/* One end starts its half of a message or both do, all meet, and only then is it waited for. */
static void collective(const char* what) {
  MPI_Win_create(in_window, sizeof in_window, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Win_fence(0, window);
  if (strcmp(what, "file") == 0)
    MPI_File_open(MPI_COMM_WORLD, "progress.tmp", MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL, &file);
  for (int size = LARGE; size < SIZES; ++size)
    for (int turn = 0; turn < 2 * ROLES; ++turn) {
      bool sends = turn / ROLES == me;
      enum role role = (enum role)(turn % ROLES);
      struct end e = end_with(sizes[size], (enum style)((turn + me) % STYLES), (uint64_t)(turn * 2 + me));
      MPI_Request request = MPI_REQUEST_NULL;
      sends ? load(&e, (uint64_t)turn) : blank(&e);
      if (sends && role == RECEIVE_STARTED) MPI_Send(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD);
      if (sends && role != RECEIVE_STARTED) MPI_Isend(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
      if (!sends && role == SEND_STARTED) MPI_Recv(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!sends && role != SEND_STARTED) MPI_Irecv(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
      meet(what);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_end(&e, (uint64_t)turn, sizes[size], "%s, %ld, turn %d", what, sizes[size], turn);
      free_end(&e);
    }
  if (strcmp(what, "file") == 0) MPI_File_close(&file);
  MPI_Win_free(&window);
}

/* Waiting for a short message, which the other sends once the large one is through; in every call that can wait. */
static void await(int way, bool probing) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  MPI_Message message;
  int index, count, indices[2], flag = 0;
  MPI_Comm world = MPI_COMM_WORLD;
  if (!probing) MPI_Irecv(NULL, 0, MPI_BYTE, 1 - me, REPLY, world, &requests[0]);
  switch (probing ? way : way + 4) {
    case 0: MPI_Probe(1 - me, REPLY, world, MPI_STATUS_IGNORE); break;
    case 1: MPI_Mprobe(1 - me, REPLY, world, &message, MPI_STATUS_IGNORE); break;
    case 2:
      while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, REPLY, world, &flag, MPI_STATUS_IGNORE);
      break;
    case 3:
      while (!flag) MPI_Improbe(1 - me, REPLY, world, &flag, &message, MPI_STATUS_IGNORE);
      break;
    case 4: MPI_Waitall(2, requests, MPI_STATUSES_IGNORE); break;
    case 5: MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE); break;
    case 6: MPI_Waitsome(2, requests, &count, indices, MPI_STATUSES_IGNORE); break;
    default:
      while (!flag) MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
      break;
  }
  if (probing && way % 2 == 0) MPI_Recv(NULL, 0, MPI_BYTE, 1 - me, REPLY, world, MPI_STATUS_IGNORE);
  if (probing && way % 2 == 1) MPI_Mrecv(NULL, 0, MPI_BYTE, &message, MPI_STATUS_IGNORE);
}

static void waiting(bool probing) {
  for (int size = LARGE; size < SIZES; ++size)
    for (int turn = 0; turn < 8; ++turn) {
      bool sends = turn % 2 == me, waits = me == 0; /* the one that waits has started its half */
      struct end e = end_with(sizes[size], (enum style)((turn / 2 + me) % STYLES), (uint64_t)(turn * 2 + me));
      MPI_Request request = MPI_REQUEST_NULL;
      sends ? load(&e, (uint64_t)turn) : blank(&e);
      if (sends) MPI_Isend(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
      if (!sends) MPI_Irecv(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
      if (waits) await(turn / 2, probing);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!waits) MPI_Send(NULL, 0, MPI_BYTE, 1 - me, REPLY, MPI_COMM_WORLD);
      check_end(&e, (uint64_t)turn, sizes[size], "%s, %ld, turn %d", probing ? "probe" : "waitall", sizes[size], turn);
      free_end(&e);
    }
}

/* Both send before either receives, one message or all sizes at once. */
static void both_first(void) {
  struct end out[SIZES], in[SIZES];
  MPI_Request requests[SIZES];
  for (int turn = 0; turn < 4; ++turn) {
    for (int i = 0; i < SIZES; ++i) {
      out[i] = end_with(sizes[i], (enum style)((turn + i + me) % STYLES), (uint64_t)(turn * 100 + i * 4 + me));
      in[i] = end_with(sizes[i], (enum style)((turn + i + me + 1) % STYLES), (uint64_t)(turn * 100 + i * 4 + me + 2));
      load(&out[i], (uint64_t)(turn * 10 + i + me));
      blank(&in[i]);
      if (turn % 2 == 0) MPI_Isend(out[i].at, out[i].count, out[i].shape.type, 1 - me, i, MPI_COMM_WORLD, &requests[i]);
      if (turn % 2 != 0) MPI_Issend(out[i].at, out[i].count, out[i].shape.type, 1 - me, i, MPI_COMM_WORLD, &requests[i]);
    }
    for (int k = 0; k < SIZES; ++k) { /* in their order, or from the last to the first */
      int i = turn < 2 ? k : SIZES - 1 - k;
      MPI_Recv(in[i].at, in[i].count, in[i].shape.type, 1 - me, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check_end(&in[i], (uint64_t)(turn * 10 + i + 1 - me), sizes[i], "both first, %ld", sizes[i]);
    }
    MPI_Waitall(SIZES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < SIZES; ++i) {
      free_end(&out[i]);
      free_end(&in[i]);
    }
  }
}

/* A large message between the ends of a chain, which a token then goes along; and large ones along it. */
static void chain(void) {
  int last = everybody - 1, next = (me + 1) % everybody, before = (me + last) % everybody;
  for (int size = LARGE + 1; size < SIZES; size += 2)
    for (int turn = 0; turn < 2; ++turn) {
      struct end e = end_with(sizes[size], (enum style)((turn + me) % STYLES), (uint64_t)(turn * 8 + me));
      bool rank_0_sends = turn % 2 == 0;
      MPI_Request request = MPI_REQUEST_NULL;
      me == (rank_0_sends ? 0 : last) ? load(&e, (uint64_t)turn) : blank(&e);
      if (me == 0 && rank_0_sends) MPI_Isend(e.at, e.count, e.shape.type, last, TAG, MPI_COMM_WORLD, &request);
      if (me == 0 && !rank_0_sends) MPI_Irecv(e.at, e.count, e.shape.type, last, TAG, MPI_COMM_WORLD, &request);
      if (me == last && rank_0_sends) MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (me == last && !rank_0_sends) MPI_Send(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD);
      if (me != last) MPI_Recv(NULL, 0, MPI_BYTE, me + 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (me != 0) MPI_Send(NULL, 0, MPI_BYTE, me - 1, REPLY, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (me == 0 || me == last) check_end(&e, (uint64_t)turn, sizes[size], "ends of the chain, %ld", sizes[size]);
      blank(&e);
      if (me == 0) load(&e, (uint64_t)turn);
      if (me != 0) MPI_Recv(e.at, e.count, e.shape.type, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Isend(e.at, e.count, e.shape.type, next, TAG, MPI_COMM_WORLD, &request);
      struct end back = end_with(sizes[size], (enum style)((turn + 1) % STYLES), (uint64_t)turn);
      blank(&back);
      if (me == 0) MPI_Recv(back.at, back.count, back.shape.type, before, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_end(me == 0 ? &back : &e, (uint64_t)turn, sizes[size], "along the chain, %ld", sizes[size]);
      free_end(&back);
      free_end(&e);
    }
}

/* Rank 1 is in MPI_Finalize when rank 0 receives what it sent. Whoever prints has to be rank 0. */
static int finalize(void) {
  struct end first = end_with(3 * MIB, (enum style)(1 + me), 3), second = end_with(513 * KIB, (enum style)(2 - me), 4);
  MPI_Request request;
  int bytes = 0;
  if (me == 1) {
    load(&first, 5);
    load(&second, 6);
    MPI_Pack_size(second.count, second.shape.type, MPI_COMM_WORLD, &bytes);
    bytes += MPI_BSEND_OVERHEAD;
    MPI_Buffer_attach(allocate((size_t)bytes), bytes);
    MPI_Isend(first.at, first.count, first.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Bsend(second.at, second.count, second.shape.type, 0, REPLY, MPI_COMM_WORLD);
  }
  int result = report();
  if (me == 0) {
    usleep(100 * 1000);
    blank(&first);
    blank(&second);
    MPI_Recv(first.at, first.count, first.shape.type, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(second.at, second.count, second.shape.type, 1, REPLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (!holds(&first, 5, 3 * MIB)) result = 1;
    if (!holds(&second, 6, 513 * KIB)) result = 1;
    printf("%s\n", result == 0 ? "ok, received" : "WRONG");
    fflush(stdout);
  }
  MPI_Finalize();
  return result;
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* what = argc > 1 ? argv[1] : "barrier";
  if (strcmp(what, "finalize") == 0) return finalize();
  if (strcmp(what, "waitall") == 0) {
    waiting(false);
  } else if (strcmp(what, "probe") == 0) {
    waiting(true);
  } else if (strcmp(what, "both_first") == 0) {
    both_first();
  } else if (strcmp(what, "chain") == 0) {
    chain();
  } else {
    collective(what);
  }
  say("ok %s", what);
  return finish();
}
