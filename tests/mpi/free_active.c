/* Requests that are freed while their messages are under way: these must arrive all the same. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 2, MARK = 3, TOGETHER = 6 };

static void await(int peer) { MPI_Recv(NULL, 0, MPI_BYTE, peer, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void tell(int peer) { MPI_Send(NULL, 0, MPI_BYTE, peer, MARK, MPI_COMM_WORLD); }

/* The only way to see that a receive without a request is over: to look at its memory while MPI is called. */
static bool arrives(const struct end* e, uint64_t seed, long bytes) {
  double deadline = MPI_Wtime() + 20;
  do {
    int flag;
    for (int i = 0; i < 100; ++i) MPI_Iprobe(MPI_ANY_SOURCE, MARK, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    if (holds(e, seed, bytes)) return true;
  } while (MPI_Wtime() < deadline);
  return false;
}

static void sends(bool synchronous) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = end_with(sizes[i], (enum style)((i + me) % STYLES), (uint64_t)(2 * i + me));
    if (me == 0) {
      MPI_Request request;
      load(&e, (uint64_t)i);
      if (synchronous) MPI_Issend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
      if (!synchronous) MPI_Isend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      CHECK(request == MPI_REQUEST_NULL);
      if (e.shape.own) MPI_Type_free(&e.shape.type);
      await(1);
    } else {
      MPI_Status status = soiled();
      blank(&e);
      MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
      say_status(&status, e.shape.type, "freed send of %ld", sizes[i]);
      check_end(&e, (uint64_t)i, sizes[i], "freed send of %ld", sizes[i]);
      tell(0);
    }
    free_end(&e);
  }
}

/* Posted and freed before the message comes, or after it is there. */
static void receives(bool late) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = end_with(sizes[i], (enum style)((i + me + 1) % STYLES), (uint64_t)(100 + 2 * i + me));
    MPI_Request request;
    if (me == 1) {
      load(&e, (uint64_t)i);
      if (!late) await(0);
      MPI_Isend(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      await(0);
    } else {
      blank(&e);
      if (late) MPI_Probe(1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Irecv(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
      MPI_Request_free(&request);
      CHECK(request == MPI_REQUEST_NULL);
      if (e.shape.own) MPI_Type_free(&e.shape.type);
      if (!late) tell(1);
      if (!arrives(&e, (uint64_t)i, sizes[i])) wrong("what a freed receive of %ld was for has not come", sizes[i]);
      tell(1);
    }
    free_end(&e);
  }
  say("ok receives, %s", late ? "late" : "early");
}

/* Several of each at once, in both directions, beside requests that are waited for. */
static void together(void) {
  struct end in[TOGETHER], out[TOGETHER];
  MPI_Request requests[TOGETHER], request;
  for (int i = 0; i < TOGETHER; ++i) {
    long bytes = sizes[SIZES - 1 - i];
    in[i] = end_with(bytes, (enum style)((i + me) % STYLES), (uint64_t)(200 + 2 * i + me));
    out[i] = end_with(bytes, (enum style)((i + me + 2) % STYLES), (uint64_t)(300 + 2 * i + me));
    load(&out[i], (uint64_t)(i * 2 + me));
    blank(&in[i]);
    MPI_Irecv(in[i].at, in[i].count, in[i].shape.type, 1 - me, TAG, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < TOGETHER; ++i) {
    MPI_Isend(out[i].at, out[i].count, out[i].shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
  }
  for (int i = 0; i < TOGETHER; i += 2) MPI_Request_free(&requests[i]);
  MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < TOGETHER; ++i)
    if (!arrives(&in[i], (uint64_t)(i * 2 + 1 - me), bytes_of(&in[i]))) wrong("message %d of several has not come", i);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < TOGETHER; ++i) {
    free_end(&in[i]);
    free_end(&out[i]);
  }
  say("ok together");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  sends(false);
  sends(true);
  receives(false);
  receives(true);
  together();
  return finish();
}
