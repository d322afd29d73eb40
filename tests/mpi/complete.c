/* Every way of completing requests, over mixtures of all kinds of them. */
/* ranks: 2 */
#include "nests.h"

enum slot {
  LARGE_IN,
  SHORT_IN,
  NONE,
  INACTIVE,
  PERSISTENT_IN,
  BARRIER,
  OWN,
  LARGE_OUT,
  SHORT_OUT,
  MIDDLE_OUT,
  MIDDLE_IN,
  PERSISTENT_OUT,
  NOBODY,
  SLOTS
};
enum way { WAIT, WAITALL, WAITANY, WAITSOME, TEST, TESTALL, TESTANY, TESTSOME, COPIES, WAYS };

static const char* const way_names[] = {"Wait",    "Waitall", "Waitany",  "Waitsome",         "Test",
                                        "Testall", "Testany", "Testsome", "Testany of copies"};

/* Message `tag` of each slot that receives, and of the one that sends it. */
static const int tags[SLOTS] = {1, 2, -1, -1, 3, -1, -1, 1, 2, 4, 4, 3, 5};
static const long lengths[SLOTS] = {3 * MIB, DESCRIPTOR, 0,         64,        64 * KIB, 0,      0,
                                    3 * MIB, DESCRIPTOR, 513 * KIB, 513 * KIB, 64 * KIB, 2 * KIB};

static bool receives(int slot) {
  return slot == LARGE_IN || slot == SHORT_IN || slot == PERSISTENT_IN || slot == MIDDLE_IN || slot == NOBODY;
}
static bool sends(int slot) { return slot == LARGE_OUT || slot == SHORT_OUT || slot == MIDDLE_OUT || slot == PERSISTENT_OUT; }

static struct end ends[SLOTS];
static MPI_Request requests[SLOTS];
static MPI_Status statuses[SLOTS];
static bool done[SLOTS];
static int freed;

static int query(void* state, MPI_Status* status) {
  (void)state;
  status->MPI_SOURCE = 77;
  status->MPI_TAG = 78;
  MPI_Status_set_elements(status, MPI_INT, 79);
  MPI_Status_set_cancelled(status, 0);
  return MPI_SUCCESS;
}

static int free_own(void* state) {
  (void)state;
  ++freed;
  return MPI_SUCCESS;
}

static int cancel_own(void* state, int complete) {
  (void)state;
  (void)complete;
  return MPI_SUCCESS;
}

static uint64_t seed_of(int rank, int way, int slot) { return (uint64_t)(rank * 10000 + way * 100 + tags[slot]); }

static void start(int way) {
  MPI_Comm world = MPI_COMM_WORLD;
  for (int i = 0; i < SLOTS; ++i) {
    struct end* e = &ends[i];
    *e = end_with(lengths[i], (enum style)((i + way + me) % STYLES), (uint64_t)(way * 100 + i * 2 + me));
    if (sends(i)) load(e, seed_of(me, way, i));
    if (!sends(i)) blank(e);
    done[i] = false;
    requests[i] = MPI_REQUEST_NULL;
    soil(&statuses[i], 1);
  }
  for (int i = 0; i < SLOTS; ++i) {
    struct end* e = &ends[i];
    int peer = i == NOBODY ? MPI_PROC_NULL : 1 - me;
    if (i == PERSISTENT_OUT) MPI_Send_init(e->at, e->count, e->shape.type, peer, tags[i], world, &requests[i]);
    if (i == PERSISTENT_IN) MPI_Recv_init(e->at, e->count, e->shape.type, peer, tags[i], world, &requests[i]);
    if (i == INACTIVE) MPI_Recv_init(e->at, e->count, e->shape.type, peer, 99, world, &requests[i]);
    if (i == PERSISTENT_OUT || i == PERSISTENT_IN) MPI_Start(&requests[i]);
    if (requests[i] != MPI_REQUEST_NULL) continue;
    if (receives(i)) MPI_Irecv(e->at, e->count, e->shape.type, peer, tags[i], world, &requests[i]);
    if (sends(i)) MPI_Isend(e->at, e->count, e->shape.type, peer, tags[i], world, &requests[i]);
    if (i == BARRIER) MPI_Ibarrier(world, &requests[i]);
    if (i == OWN) MPI_Grequest_start(query, free_own, cancel_own, NULL, &requests[i]);
  }
}

static void note(int slot) {
  CHECK(!done[slot]);
  done[slot] = true;
}

/* Until nothing is left that could be completed. `ignore`: without statuses. */
static void complete(enum way way, bool ignore) {
  int indices[SLOTS], count = 0, flag = 0, turn = 0;
  MPI_Status* all = ignore ? MPI_STATUSES_IGNORE : statuses;
  MPI_Status some[SLOTS];
  MPI_Request own = requests[OWN], copies[SLOTS];
  if (way == WAIT || way == WAITALL) MPI_Grequest_complete(own);
  for (bool over = false; !over; ++turn) {
    if (turn == 1 && way != WAIT && way != WAITALL) MPI_Grequest_complete(own);
    MPI_Status* one = ignore ? MPI_STATUS_IGNORE : &some[0];
    count = 0;
    soil(some, SLOTS);
    switch (way) {
      case WAIT:
        for (int i = SLOTS - 1; i >= 0; --i) MPI_Wait(&requests[i], ignore ? MPI_STATUS_IGNORE : &statuses[i]);
        return;
      case WAITALL: MPI_Waitall(SLOTS, requests, all); return;
      case TESTALL:
        MPI_Testall(SLOTS, requests, &flag, all);
        over = flag;
        continue;
      case TEST:
        over = true;
        for (int i = 0; i < SLOTS; ++i) {
          if (done[i]) continue;
          MPI_Test(&requests[i], &flag, ignore ? MPI_STATUS_IGNORE : &statuses[i]);
          if (flag) note(i);
          over = over && flag;
        }
        continue;
      case WAITANY:
        MPI_Waitany(SLOTS, requests, &indices[0], one);
        over = indices[0] == MPI_UNDEFINED;
        count = 1;
        break;
      case TESTANY:
      case COPIES:
        memcpy(copies, requests, sizeof copies);
        MPI_Testany(SLOTS, way == COPIES ? copies : requests, &indices[0], &flag, one);
        over = flag && indices[0] == MPI_UNDEFINED;
        count = flag;
        break;
      case WAITSOME: MPI_Waitsome(SLOTS, requests, &count, indices, ignore ? MPI_STATUSES_IGNORE : some); break;
      default: MPI_Testsome(SLOTS, requests, &count, indices, ignore ? MPI_STATUSES_IGNORE : some); break;
    }
    if (count == MPI_UNDEFINED) over = true;
    for (int i = 0; i < count && !over; ++i) {
      note(indices[i]);
      statuses[indices[i]] = some[i];
      if (way == COPIES) requests[indices[i]] = copies[indices[i]];
    }
  }
  say("%s ends with %s", way_names[way], way == TEST || way == TESTALL ? "a flag" : "undefined");
}

static void look(int way, bool ignore) {
  bool each = way == WAIT || way == WAITALL || way == TESTALL || way == TEST;
  for (int i = 0; i < SLOTS; ++i) {
    bool persistent = i == INACTIVE || i == PERSISTENT_IN || i == PERSISTENT_OUT;
    if ((requests[i] == MPI_REQUEST_NULL) == persistent) wrong("%s: the handle of slot %d", way_names[way], i);
    if (!each && done[i] != (i != NONE && i != INACTIVE)) wrong("%s: completes %d %d times", way_names[way], i, done[i]);
    if (receives(i)) check_end(&ends[i], seed_of(1 - me, way, i), i == NOBODY ? 0 : lengths[i], "%s, slot %d", way_names[way], i);
    if (ignore || i == BARRIER) continue;
    if (sends(i)) {
      int cancelled = -1;
      MPI_Test_cancelled(&statuses[i], &cancelled);
      say("%s, slot %d: cancelled %d", way_names[way], i, cancelled);
    } else if (each || done[i]) {
      say_status(&statuses[i], i == OWN ? MPI_INT : receives(i) ? ends[i].shape.type : MPI_BYTE, "%s, slot %d", way_names[way], i);
    }
  }
  for (int i = 0; i < SLOTS; ++i) {
    if (requests[i] != MPI_REQUEST_NULL) MPI_Request_free(&requests[i]);
    free_end(&ends[i]);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int way = 0; way < 2 * WAYS; ++way) {
    start(way % WAYS);
    complete((enum way)(way % WAYS), way >= WAYS);
    look(way % WAYS, way >= WAYS);
  }
  MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
  say("freed %d", freed);
  return finish();
}
