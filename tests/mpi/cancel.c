/* Cancelling: what never matches, what has matched, what may do either; and everything goes on afterwards. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 4, NEVER = 5, MARK = 6 };

static bool was_cancelled(const MPI_Status* status) {
  int cancelled = -1;
  MPI_Test_cancelled(status, &cancelled);
  return cancelled != 0;
}

static struct end own_end(int size, int more) {
  return end_with(sizes[size], (enum style)((size + more + me) % STYLES), (uint64_t)(size * 10 + more + me));
}

/* Receives that nobody sends anything to, by all kinds of completion. */
static void never_matched(void) {
  struct end ends[SIZES];
  MPI_Request requests[SIZES];
  MPI_Status statuses[SIZES];
  soil(statuses, SIZES);
  for (int i = 0; i < SIZES; ++i) {
    ends[i] = own_end(i, 0);
    blank(&ends[i]);
    int source = i % 3 == 0 ? MPI_ANY_SOURCE : i % 3 == 1 ? 1 - me : me;
    MPI_Irecv(ends[i].at, ends[i].count, ends[i].shape.type, source, NEVER, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < SIZES; ++i) MPI_Cancel(&requests[i]);
  MPI_Wait(&requests[0], &statuses[0]);
  for (int flag = 0; !flag;) MPI_Test(&requests[1], &flag, &statuses[1]);
  MPI_Waitall(SIZES - 2, requests + 2, statuses + 2);
  for (int i = 0; i < SIZES; ++i) {
    say("never matched, %ld: cancelled %d", sizes[i], was_cancelled(&statuses[i]));
    check_end(&ends[i], 0, 0, "the buffer of a cancelled receive");
    free_end(&ends[i]);
  }
}

/* A synchronous send that is over has been matched. Nothing is left to cancel. */
static void matched(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = own_end(i, 1);
    MPI_Request request;
    MPI_Status status = soiled();
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Ssend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
      MPI_Send(NULL, 0, MPI_BYTE, 1, MARK, MPI_COMM_WORLD);
    } else {
      blank(&e);
      MPI_Irecv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      MPI_Recv(NULL, 0, MPI_BYTE, 0, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      say_status(&status, e.shape.type, "matched, %ld", sizes[i]);
      check_end(&e, (uint64_t)i, sizes[i], "matched, %ld", sizes[i]);
    }
    free_end(&e);
  }
}

/* The first of two receives is cancelled; the second gets the message. */
static void first_of_two(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = own_end(i, 2), other = own_end(i, 3);
    MPI_Request requests[2];
    MPI_Status status = soiled();
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
    } else {
      blank(&e);
      blank(&other);
      MPI_Irecv(e.at, e.count, e.shape.type, MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &requests[0]);
      MPI_Irecv(other.at, other.count, other.shape.type, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[1]);
      MPI_Cancel(&requests[0]);
      MPI_Wait(&requests[0], &status);
      say("first of two, %ld: cancelled %d", sizes[i], was_cancelled(&status));
      MPI_Send(NULL, 0, MPI_BYTE, 0, MARK, MPI_COMM_WORLD);
      MPI_Wait(&requests[1], &status);
      say_status(&status, other.shape.type, "second of two, %ld", sizes[i]);
      check_end(&e, 0, 0, "first of two, %ld", sizes[i]);
      check_end(&other, (uint64_t)i, sizes[i], "second of two, %ld", sizes[i]);
    }
    free_end(&e);
    free_end(&other);
  }
}

/* Cancelled while the message is on its way: it comes now or to the next receive, whole, and once. */
static void either(void) {
  for (int i = 0; i < 3 * SIZES; ++i) {
    int size = i % SIZES;
    struct end e = own_end(size, 4);
    MPI_Request request;
    MPI_Status status = soiled();
    MPI_Barrier(MPI_COMM_WORLD);
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
    } else {
      blank(&e);
      MPI_Irecv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      if (was_cancelled(&status)) {
        check_end(&e, 0, 0, "either, %ld, cancelled", sizes[size]);
        MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
      }
      say_status(&status, e.shape.type, "either, %ld", sizes[size]);
      check_end(&e, (uint64_t)i, sizes[size], "either, %ld", sizes[size]);
    }
    free_end(&e);
  }
}

/* A persistent receive is cancelled, and then started again as if nothing had been. */
static void persistent(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = own_end(i, 5);
    MPI_Request request;
    MPI_Status status = soiled();
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
    } else {
      blank(&e);
      MPI_Recv_init(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      MPI_Start(&request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      say("persistent, %ld: cancelled %d", sizes[i], was_cancelled(&status));
      MPI_Start(&request);
      MPI_Send(NULL, 0, MPI_BYTE, 0, MARK, MPI_COMM_WORLD);
      MPI_Wait(&request, &status);
      say_status(&status, e.shape.type, "persistent, %ld", sizes[i]);
      check_end(&e, (uint64_t)i, sizes[i], "persistent, %ld", sizes[i]);
      MPI_Request_free(&request);
    }
    free_end(&e);
  }
}

/* Cancelling a send may fail; if it does not, the message must not come. */
static void sends(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = own_end(i, 6);
    MPI_Request request;
    MPI_Status status = soiled();
    int cancelled = 0;
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Isend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
      MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      cancelled = was_cancelled(&status);
      MPI_Send(&cancelled, 1, MPI_INT, 1, MARK, MPI_COMM_WORLD);
    } else {
      blank(&e);
      MPI_Irecv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      MPI_Recv(&cancelled, 1, MPI_INT, 0, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (cancelled) MPI_Cancel(&request);
      MPI_Wait(&request, &status);
      if (was_cancelled(&status) != (cancelled != 0)) wrong("a send of %ld that was cancelled, or was not", sizes[i]);
      check_end(&e, (uint64_t)i, cancelled ? 0 : sizes[i], "send of %ld", sizes[i]);
    }
    free_end(&e);
  }
  say("ok sends");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  never_matched();
  matched();
  first_of_two();
  either();
  persistent();
  sends();
  return finish();
}
