/* Calls of MPI 4 and later, where there are any. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 9 };

#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)

/* MPICH and Intel MPI leave the status of some earlier message. */
static void say_exchanged(const MPI_Status* status, MPI_Datatype type, const char* what, long bytes) {
#ifdef MPICH
  (void)status;
  (void)type;
  say("%s of %ld", what, bytes);
#else
  say_status(status, type, "%s of %ld", what, bytes);
#endif
}

static void exchanges(void) {
  for (int size = 0; size < SIZES; ++size) {
    struct end out = end_with(sizes[size], (enum style)((size + me) % STYLES), (uint64_t)(2 * size + me));
    struct end in = end_with(sizes[size], (enum style)((size + me + 1) % STYLES), (uint64_t)(100 + 2 * size + me));
    MPI_Request request;
    MPI_Status status = soiled();
    load(&out, (uint64_t)(size * 2 + me));
    blank(&in);
    MPI_Isendrecv(out.at, out.count, out.shape.type, 1 - me, TAG, in.at, in.count, in.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, &status);
    check_end(&in, (uint64_t)(size * 2 + 1 - me), sizes[size], "Isendrecv of %ld", sizes[size]);
    say_exchanged(&status, in.shape.type, "Isendrecv", sizes[size]);
    free_end(&in);
    free_end(&out);
#ifdef MPICH /* and Intel MPI write past it where it has gaps */
    struct end both = end_with(sizes[size], FLAT, 0);
#else
    struct end both = end_with(sizes[size], (enum style)(size % STYLES), (uint64_t)(200 + size));
#endif
    load(&both, (uint64_t)(size * 2 + me));
    soil(&status, 1);
    MPI_Isendrecv_replace(both.at, both.count, both.shape.type, 1 - me, TAG, 1 - me, TAG, MPI_COMM_WORLD, &request);
    for (int flag = 0; !flag;) MPI_Test(&request, &flag, &status);
    check_end(&both, (uint64_t)(size * 2 + 1 - me), sizes[size], "Isendrecv_replace of %ld", sizes[size]);
    say_exchanged(&status, both.shape.type, "Isendrecv_replace", sizes[size]);
    free_end(&both);
  }
}

/* Requests of another kind than any message's, started beside one. */
static void partitions(void) {
  enum { PARTS = 8, DOUBLES = 10000 };
  double* data = allocate(PARTS * DOUBLES * sizeof *data);
  struct end e = end_with(3 * MIB, (enum style)(2 - me), (uint64_t)me);
  MPI_Request requests[2];
  if (me == 0) MPI_Psend_init(data, PARTS, DOUBLES, MPI_DOUBLE, 1, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  if (me == 1) MPI_Precv_init(data, PARTS, DOUBLES, MPI_DOUBLE, 0, TAG, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  if (me == 0) MPI_Send_init(e.at, e.count, e.shape.type, 1, TAG + 1, MPI_COMM_WORLD, &requests[1]);
  if (me == 1) MPI_Recv_init(e.at, e.count, e.shape.type, 0, TAG + 1, MPI_COMM_WORLD, &requests[1]);
  for (int turn = 0; turn < 3; ++turn) {
    for (int i = 0; i < PARTS * DOUBLES; ++i) data[i] = me == 0 ? turn * 1e6 + i : -1;
    me == 0 ? load(&e, (uint64_t)turn) : blank(&e);
    MPI_Startall(2, requests);
    for (int i = 0; i < PARTS && me == 0; ++i) MPI_Pready(i * 3 % PARTS, requests[0]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    int others = 0;
    for (int i = 0; i < PARTS * DOUBLES; ++i) others += data[i] != turn * 1e6 + i;
    CHECK(others == 0);
    check_end(&e, (uint64_t)turn, 3 * MIB, "beside partitions");
    say("partitions, turn %d", turn);
  }
  MPI_Request_free(&requests[0]);
  MPI_Request_free(&requests[1]);
  free(data);
  free_end(&e);
}

/* A communicator of a session, which is no part of the world's. */
static void session(void) {
  MPI_Session own;
  MPI_Group group;
  MPI_Comm comm;
  MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &own);
  MPI_Group_from_session_pset(own, "mpi://WORLD", &group);
  MPI_Comm_create_from_group(group, "lacuna", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
  for (int size = 0; size < SIZES; ++size) {
    struct end out = end_with(sizes[size], (enum style)((size + me) % STYLES), (uint64_t)(300 + 2 * size + me));
    struct end in = end_with(sizes[size], (enum style)((size + me + 2) % STYLES), (uint64_t)(400 + 2 * size + me));
    MPI_Status status = soiled();
    load(&out, (uint64_t)(size * 2 + me));
    blank(&in);
    MPI_Sendrecv(out.at, out.count, out.shape.type, 1 - me, TAG, in.at, in.count, in.shape.type, 1 - me, TAG, comm, &status);
    check_end(&in, (uint64_t)(size * 2 + 1 - me), sizes[size], "session, %ld", sizes[size]);
    say_status(&status, in.shape.type, "session, %ld", sizes[size]);
    free_end(&in);
    free_end(&out);
  }
  MPI_Group_free(&group);
  MPI_Comm_free(&comm);
  MPI_Session_finalize(&own);
}

#endif

#if MPI_VERSION >= 4

/* Collective operations that are started like persistent messages. */
static void persistent_collectives(void) {
  struct end e = end_with(513 * KIB, STRIDED, 5);
  struct end large = end_with(3 * MIB, (enum style)(1 + me), (uint64_t)me);
  MPI_Request requests[3];
  MPI_Bcast_init(e.at, e.count, e.shape.type, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &requests[0]);
  MPI_Barrier_init(MPI_COMM_WORLD, MPI_INFO_NULL, &requests[1]);
  if (me == 0) MPI_Ssend_init(large.at, large.count, large.shape.type, 1, TAG, MPI_COMM_WORLD, &requests[2]);
  if (me == 1) MPI_Recv_init(large.at, large.count, large.shape.type, 0, TAG, MPI_COMM_WORLD, &requests[2]);
  for (int turn = 0; turn < 4; ++turn) {
    int left = 3, index;
    me == 0 ? load(&e, (uint64_t)turn) : blank(&e);
    me == 0 ? load(&large, (uint64_t)turn) : blank(&large);
    MPI_Startall(3, requests);
    while (turn % 2 == 0 && left-- > 0) MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    if (turn % 2 != 0) MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    check_end(&e, (uint64_t)turn, 513 * KIB, "persistent Bcast, turn %d", turn);
    check_end(&large, (uint64_t)turn, 3 * MIB, "beside a persistent Bcast, turn %d", turn);
    say("collective operations, turn %d", turn);
  }
  for (int i = 0; i < 3; ++i) MPI_Request_free(&requests[i]);
  free_end(&e);
  free_end(&large);
}

#endif

#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)

/* Looking at several requests, which stay as they are. */
static void looked_at(void) {
  struct end ends[3];
  MPI_Request requests[3];
  MPI_Status statuses[3];
  soil(statuses, 3);
  for (int i = 0; i < 3; ++i) {
    ends[i] = end_with(sizes[SIZES - 1 - 3 * i], (enum style)((i + me) % STYLES), (uint64_t)(500 + 2 * i + me));
    struct end* e = &ends[i];
    me == 0 ? load(e, (uint64_t)i) : blank(e);
    if (me == 0) MPI_Isend(e->at, e->count, e->shape.type, 1, TAG + i, MPI_COMM_WORLD, &requests[i]);
    if (me == 1) MPI_Irecv(e->at, e->count, e->shape.type, 0, TAG + i, MPI_COMM_WORLD, &requests[i]);
  }
  int index, count = 0, indices[3], flag = 0;
  while (!flag) MPI_Request_get_status_any(3, requests, &index, &flag, MPI_STATUS_IGNORE);
  while (count == 0) MPI_Request_get_status_some(3, requests, &count, indices, MPI_STATUSES_IGNORE);
  for (flag = 0; !flag;) MPI_Request_get_status_all(3, requests, &flag, statuses);
  for (int i = 0; i < 3; ++i) {
    CHECK(requests[i] != MPI_REQUEST_NULL);
    check_end(&ends[i], (uint64_t)i, bytes_of(&ends[i]), "one of several that were looked at");
    if (me == 1) say_status(&statuses[i], ends[i].shape.type, "one of several that were looked at");
  }
  MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 3; ++i) free_end(&ends[i]);
}

#endif

int main(int argc, char** argv) {
  begin(&argc, &argv);
#if MPI_VERSION >= 4 || (defined(OPEN_MPI) && OMPI_MAJOR_VERSION >= 5)
  exchanges();
  partitions();
  session();
#endif
#if MPI_VERSION >= 4
  persistent_collectives();
#endif
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
  looked_at();
#endif
  say("this is MPI %d.%d", MPI_VERSION, MPI_SUBVERSION);
  return finish();
}
