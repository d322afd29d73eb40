/* Messages of all sizes mixed: none overtakes another, whoever receives them by whichever wildcard. */
/* ranks: 3 */
#include "nests.h"

enum { MESSAGES = 24, POSTED = 15, MARK = 9, CAPACITY = 513 * KIB };

/* What a rank sends as its message `number`. */
static long length_of(int rank, int number) { return sizes[(number * 5 + rank * 3) % (SIZES - 1)]; }
static int tag_of(int number) { return number % 3; }
static uint64_t seed_of(int rank, int number) { return (uint64_t)(rank * 1000 + number); }

/* Bytes, in any shape. */
static struct end some_bytes(long bytes, uint64_t seed) {
  static const enum kind kinds[] = {VECTOR, HINDEXED, SUBARRAY_C, INDEXED_BLOCK};
  struct random random = {seed};
  struct shape unit = basic(MPI_BYTE);
  if (bytes == 0 || seed % 5 == 0) return end_of(unit, (int)bytes);
  if (bytes % KIB == 0) replace(&unit, copies(&random, CONTIGUOUS, KIB, &unit));
  struct shape s = copies(&random, kinds[seed % 4], (int)(bytes / unit.size), &unit);
  free_shape(&unit);
  return end_of(s, 1);
}

static void start_all(int count, struct end* ends, MPI_Request* requests, bool at_once) {
  for (int i = 0; i < count; ++i) {
    ends[i] = some_bytes(length_of(me, i), seed_of(me, i));
    load(&ends[i], seed_of(me, i));
    MPI_Isend(ends[i].at, ends[i].count, ends[i].shape.type, 0, tag_of(i), MPI_COMM_WORLD, &requests[i]);
    if (!at_once) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  }
}

static void end_all(int count, struct end* ends, MPI_Request* requests) {
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i) free_end(&ends[i]);
}

static void send_all(bool at_once) {
  struct end ends[MESSAGES];
  MPI_Request requests[MESSAGES];
  start_all(MESSAGES, ends, requests, at_once);
  end_all(MESSAGES, ends, requests);
}

/* Of each rank and tag, what comes must be the next that was sent; of each rank too if any tag may come. */
static void receive_all(bool any_tag, const char* what) {
  int next[3][3] = {{0, 1, 2}, {0, 1, 2}, {0, 1, 2}}; /* by rank and tag */
  int latest[3] = {-1, -1, -1};
  for (int i = 0; i < 2 * MESSAGES; ++i) {
    MPI_Status status = soiled();
    int bytes = -1, tag = any_tag ? MPI_ANY_TAG : tag_of(i / 2);
    struct end e = some_bytes(CAPACITY, (uint64_t)i);
    blank(&e);
    MPI_Recv(e.at, e.count, e.shape.type, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    int source = status.MPI_SOURCE, number = next[source][status.MPI_TAG];
    if (any_tag && number != ++latest[source]) wrong("%s: message %d of rank %d overtook one", what, number, source);
    if (bytes != length_of(source, number)) wrong("%s: message %d of rank %d has %d bytes", what, number, source, bytes);
    check_end(&e, seed_of(source, number), bytes, "%s, message %d of rank %d", what, number, source);
    next[source][status.MPI_TAG] += 3;
    free_end(&e);
  }
  say("ok %s", what);
}

/* --- receives of all kinds, for messages of one rank -------------------------------------------------------------- */

static const int sources[] = {MPI_ANY_SOURCE, 1, 1, MPI_ANY_SOURCE};
static const int wanted[] = {MPI_ANY_TAG, 2, 0, 1, MPI_ANY_TAG};

static void receive(int number, const char* what) {
  struct end e = some_bytes(CAPACITY, (uint64_t)number);
  MPI_Status status = soiled();
  blank(&e);
  MPI_Recv(e.at, e.count, e.shape.type, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
  check_end(&e, seed_of(1, number), length_of(1, number), "%s, message %d", what, number);
  say_status(&status, MPI_BYTE, "%s, message %d", what, number);
  free_end(&e);
}

/* A message goes to the first receive that takes it, be they there before it or after. */
static void receive_posted(bool late) {
  struct end ends[POSTED];
  MPI_Request requests[POSTED];
  bool taken[POSTED] = {false}, came[POSTED] = {false};
  if (late) MPI_Recv(NULL, 0, MPI_BYTE, 1, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int i = 0; i < POSTED; ++i) {
    ends[i] = some_bytes(CAPACITY, (uint64_t)i);
    blank(&ends[i]);
    MPI_Irecv(ends[i].at, ends[i].count, ends[i].shape.type, sources[i % 4], wanted[i % 5], MPI_COMM_WORLD, &requests[i]);
  }
  if (!late) MPI_Send(NULL, 0, MPI_BYTE, 1, MARK, MPI_COMM_WORLD);
  for (int number = 0; number < POSTED; ++number)
    for (int i = 0; i < POSTED && !came[number]; ++i) {
      if (taken[i] || (wanted[i % 5] != MPI_ANY_TAG && wanted[i % 5] != tag_of(number))) continue;
      MPI_Status status = soiled();
      MPI_Wait(&requests[i], &status);
      taken[i] = came[number] = true;
      check_end(&ends[i], seed_of(1, number), length_of(1, number), "posted receive %d, message %d", i, number);
      say_status(&status, MPI_BYTE, "posted receive %d, message %d", i, number);
    }
  for (int i = 0; i < POSTED; ++i) {
    MPI_Status status = soiled();
    if (!taken[i]) {
      MPI_Cancel(&requests[i]);
      MPI_Wait(&requests[i], &status);
      int cancelled = -1;
      MPI_Test_cancelled(&status, &cancelled);
      say("receive %d is left over: cancelled %d", i, cancelled);
    }
    free_end(&ends[i]);
  }
  for (int number = 0; number < POSTED; ++number)
    if (!came[number]) receive(number, "left over");
}

static void send_posted(bool late) {
  struct end ends[POSTED];
  MPI_Request requests[POSTED];
  if (!late) MPI_Recv(NULL, 0, MPI_BYTE, 0, MARK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  start_all(POSTED, ends, requests, true);
  if (late) MPI_Send(NULL, 0, MPI_BYTE, 0, MARK, MPI_COMM_WORLD);
  end_all(POSTED, ends, requests);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int turn = 0; turn < 3; ++turn) {
    if (me == 0) receive_all(turn != 1, turn != 1 ? "any source and tag" : "any source");
    if (me != 0) send_all(turn < 2); /* one by one they could wait for each other if tags were chosen */
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (int late = 0; late < 2; ++late) {
    if (me == 0) receive_posted(late == 1);
    if (me == 1) send_posted(late == 1);
  }
  return finish();
}
