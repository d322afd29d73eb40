/* Probes of every kind before messages of every size, in other orders than they were sent in. */
/* ranks: 2 */
#include "nests.h"

enum how { PROBE, IPROBE, MPROBE, IMPROBE, HOWS };

static const char* const how_names[] = {"Probe", "Iprobe", "Mprobe", "Improbe"};

/* An own end for what was probed, with room for just that. */
static struct end fitting(const MPI_Status* status, uint64_t seed) {
  int bytes = -1;
  MPI_Get_count(status, MPI_BYTE, &bytes);
  struct end e = end_with(bytes, (enum style)(seed % STYLES), seed);
  blank(&e);
  return e;
}

static void probe(enum how how, int source, int tag, MPI_Message* message, MPI_Status* status) {
  int flag = 0;
  if (how == PROBE) MPI_Probe(source, tag, MPI_COMM_WORLD, status);
  if (how == MPROBE) MPI_Mprobe(source, tag, MPI_COMM_WORLD, message, status);
  while (how == IPROBE && !flag) MPI_Iprobe(source, tag, MPI_COMM_WORLD, &flag, status);
  while (how == IMPROBE && !flag) MPI_Improbe(source, tag, MPI_COMM_WORLD, &flag, message, status);
}

static void take(struct end* e, MPI_Message* message, int number, MPI_Status* status) {
  MPI_Request request;
  if (number % 2 == 0) {
    MPI_Mrecv(e->at, e->count, e->shape.type, message, status);
  } else {
    MPI_Imrecv(e->at, e->count, e->shape.type, message, &request);
    MPI_Wait(&request, status);
  }
  CHECK(*message == MPI_MESSAGE_NULL);
}

/* --- one message at a time ---------------------------------------------------------------------------------------- */

static void receive_one(enum how how, int size, int tag) {
  MPI_Status probed = soiled(), status = soiled();
  MPI_Message message;
  bool anybody = size % 2 == 0, any_tag = size % 3 == 0;
  probe(how, anybody ? MPI_ANY_SOURCE : 0, any_tag ? MPI_ANY_TAG : tag, &message, &probed);
  struct end e = fitting(&probed, (uint64_t)(size + how));
  say_probed(&probed, e.shape.type, "%s of %ld", how_names[how], sizes[size]);
  if (how == PROBE || how == IPROBE) { /* it stays where it is, however often it is looked at */
    for (int again = 0; again < 3; ++again) probe(again % 2 ? IPROBE : PROBE, 0, tag, NULL, &status);
    say_probed(&status, e.shape.type, "%s of %ld, seen again", how_names[how], sizes[size]);
    MPI_Recv(e.at, e.count, e.shape.type, probed.MPI_SOURCE, probed.MPI_TAG, MPI_COMM_WORLD, &status);
  } else {
    take(&e, &message, size, &status);
  }
  check_end(&e, (uint64_t)tag, sizes[size], "%s of %ld", how_names[how], sizes[size]);
  say_status(&status, e.shape.type, "received after %s", how_names[how]);
  free_end(&e);
}

static void send_one(enum how how, int size, int tag) {
  struct end e = end_with(sizes[size], (enum style)((size + how + 1) % STYLES), (uint64_t)tag * 3);
  load(&e, (uint64_t)tag);
  MPI_Send(e.at, e.count, e.shape.type, 1, tag, MPI_COMM_WORLD);
  free_end(&e);
}

/* --- several that wait -------------------------------------------------------------------------------------------- */

static const long waiting[] = {3 * MIB, DESCRIPTOR, 64 * KIB, 0, 8 * KIB, 513 * KIB, DESCRIPTOR, 1};
enum { WAITING = sizeof waiting / sizeof waiting[0], ORDERS = 4 };

static void send_several(void) {
  struct end ends[WAITING];
  MPI_Request requests[WAITING];
  for (int i = 0; i < WAITING; ++i) {
    ends[i] = end_with(waiting[i], (enum style)(i % STYLES), (uint64_t)i);
    load(&ends[i], (uint64_t)i);
    MPI_Isend(ends[i].at, ends[i].count, ends[i].shape.type, 1, i, MPI_COMM_WORLD, &requests[i]);
  }
  MPI_Waitall(WAITING, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < WAITING; ++i) free_end(&ends[i]);
}

static void check_one(struct end* e, const MPI_Status* status, const char* what) {
  check_end(e, (uint64_t)status->MPI_TAG, waiting[status->MPI_TAG], "%s, tag %d", what, status->MPI_TAG);
  say_status(status, e->shape.type, "%s, tag %d", what, status->MPI_TAG);
  free_end(e);
}

/* Looks at some, from the last to the first, and then receives any: the earliest must come. */
static void probed_backwards(void) {
  MPI_Status status = soiled();
  for (int i = WAITING - 1; i >= 0; i -= 1 + i % 2) {
    probe(i % 3 == 0 ? IPROBE : PROBE, MPI_ANY_SOURCE, i, NULL, &status);
    say_probed(&status, MPI_BYTE, "backwards, tag %d", i);
  }
  for (int i = 0; i < WAITING; ++i) {
    probe(i % 2 ? IPROBE : PROBE, 0, MPI_ANY_TAG, NULL, &status);
    CHECK(status.MPI_TAG == i);
    struct end e = fitting(&status, (uint64_t)i);
    MPI_Recv(e.at, e.count, e.shape.type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    CHECK(status.MPI_TAG == i);
    check_one(&e, &status, "after probes");
  }
}

/* Takes every other one out of the queue, receives the rest, and those last, in another order. */
static void taken_out(void) {
  MPI_Message messages[WAITING];
  MPI_Status probed[WAITING], status = soiled();
  soil(probed, WAITING);
  for (int i = 0; i < WAITING; i += 2) probe(i % 4 ? MPROBE : IMPROBE, 0, i, &messages[i], &probed[i]);
  for (int i = 1; i < WAITING; i += 2) {
    probe(PROBE, MPI_ANY_SOURCE, MPI_ANY_TAG, NULL, &status);
    struct end e = fitting(&status, (uint64_t)(i + 1));
    MPI_Recv(e.at, e.count, e.shape.type, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    check_one(&e, &status, "between");
  }
  for (int i = WAITING - 2; i >= 0; i -= 2) {
    struct end e = fitting(&probed[i], (uint64_t)(i + 2));
    take(&e, &messages[i], i / 2, &status);
    check_one(&e, &status, "taken out");
  }
}

/* All are taken out and received at once. */
static void all_taken_out(void) {
  MPI_Message message;
  MPI_Status statuses[WAITING];
  soil(statuses, WAITING);
  MPI_Request requests[WAITING];
  struct end ends[WAITING];
  for (int i = 0; i < WAITING; ++i) {
    probe(MPROBE, MPI_ANY_SOURCE, MPI_ANY_TAG, &message, &statuses[i]);
    CHECK(statuses[i].MPI_TAG == i);
    ends[i] = fitting(&statuses[i], (uint64_t)(i + 3));
    MPI_Imrecv(ends[i].at, ends[i].count, ends[i].shape.type, &message, &requests[i]);
  }
  MPI_Waitall(WAITING, requests, statuses);
  for (int i = 0; i < WAITING; ++i) check_one(&ends[i], &statuses[i], "all taken out");
}

/* Receives that were posted go first; a probe sees only what is left. */
static void beside_receives(void) {
  MPI_Status statuses[WAITING], status = soiled();
  soil(statuses, WAITING);
  MPI_Request requests[WAITING];
  struct end ends[WAITING];
  for (int i = WAITING / 2; i < WAITING; ++i) {
    ends[i] = end_with(waiting[i], (enum style)((i + 1) % STYLES), (uint64_t)(i + 4));
    blank(&ends[i]);
    MPI_Irecv(ends[i].at, ends[i].count, ends[i].shape.type, 0, i, MPI_COMM_WORLD, &requests[i]);
  }
  for (int i = 0; i < WAITING / 2; ++i) {
    probe(i % 2 ? PROBE : IPROBE, MPI_ANY_SOURCE, MPI_ANY_TAG, NULL, &status);
    struct end e = fitting(&status, (uint64_t)i);
    MPI_Recv(e.at, e.count, e.shape.type, 0, status.MPI_TAG, MPI_COMM_WORLD, &status);
    check_one(&e, &status, "beside receives");
  }
  MPI_Waitall(WAITING / 2, requests + WAITING / 2, statuses + WAITING / 2);
  for (int i = WAITING / 2; i < WAITING; ++i) check_one(&ends[i], &statuses[i], "received beside");
}

static void nobody(void) {
  MPI_Status status = soiled();
  MPI_Message message = MPI_MESSAGE_NULL;
  int flag = 0;
  MPI_Probe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &status);
  say_probed(&status, MPI_INT, "Probe of nobody");
  MPI_Iprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &flag, &status);
  say("Iprobe of nobody: %d", flag);
  MPI_Mprobe(MPI_PROC_NULL, 3, MPI_COMM_WORLD, &message, &status);
  CHECK(message == MPI_MESSAGE_NO_PROC);
  MPI_Mrecv(NULL, 0, MPI_INT, &message, &status);
  CHECK(message == MPI_MESSAGE_NULL);
  say_status(&status, MPI_INT, "Mrecv from nobody");
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
  say("Iprobe of no message: %d", flag);
  MPI_Improbe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, &status);
  say("Improbe of no message: %d", flag);
}

int main(int argc, char** argv) {
  static void (*const orders[ORDERS])(void) = {probed_backwards, taken_out, all_taken_out, beside_receives};
  begin(&argc, &argv);
  for (int how = 0; how < HOWS; ++how)
    for (int size = 0; size < SIZES; ++size)
      me == 0 ? send_one((enum how)how, size, 20 + size) : receive_one((enum how)how, size, 20 + size);
  for (int i = 0; i < ORDERS; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    me == 0 ? send_several() : orders[i]();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  nobody();
  return finish();
}
