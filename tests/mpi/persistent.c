/* Persistent requests: restarted many times with other data, together and alone, looked at, and freed. */
/* ranks: 2 */
#include "nests.h"

enum { RESTARTS = 5, WAYS = 4 };

#if defined(OPEN_MPI) && OMPI_MAJOR_VERSION < 5 /* sends what the first start of MPI_Bsend_init found, time and again */
enum { BUFFERED_RESTARTS = 1 };
#else
enum { BUFFERED_RESTARTS = RESTARTS };
#endif

static const char* const way_names[] = {"Send_init", "Ssend_init", "Bsend_init", "Rsend_init"};

static void init(int way, const struct end* e, int tag, MPI_Request* request) {
  MPI_Comm world = MPI_COMM_WORLD;
  if (me == 1) MPI_Recv_init(e->at, e->count, e->shape.type, 0, tag, world, request);
  if (me == 0 && way == 0) MPI_Send_init(e->at, e->count, e->shape.type, 1, tag, world, request);
  if (me == 0 && way == 1) MPI_Ssend_init(e->at, e->count, e->shape.type, 1, tag, world, request);
  if (me == 0 && way == 2) MPI_Bsend_init(e->at, e->count, e->shape.type, 1, tag, world, request);
  if (me == 0 && way == 3) MPI_Rsend_init(e->at, e->count, e->shape.type, 1, tag, world, request);
}

/* All sizes at once, each way. The types are freed before they are used. */
static void restarts(int way) {
  struct end ends[SIZES];
  MPI_Request requests[SIZES];
  MPI_Status statuses[SIZES];
  soil(statuses, SIZES);
  int room = 0;
  for (int i = 0; i < SIZES; ++i) {
    int bytes = 0;
    ends[i] = end_with(sizes[i], (enum style)((i + way + me) % STYLES), (uint64_t)(way * 100 + i * 2 + me));
    init(way, &ends[i], 50 + i, &requests[i]);
    MPI_Pack_size(ends[i].count, ends[i].shape.type, MPI_COMM_WORLD, &bytes);
    room += bytes + MPI_BSEND_OVERHEAD;
    if (ends[i].shape.own) MPI_Type_free(&ends[i].shape.type);
  }
  void* buffer = allocate((size_t)room);
  if (way == 2 && me == 0) MPI_Buffer_attach(buffer, room);
  for (int turn = 0; turn < (way == 2 ? BUFFERED_RESTARTS : RESTARTS); ++turn) {
    for (int i = 0; i < SIZES; ++i) me == 0 ? load(&ends[i], (uint64_t)(turn * 50 + i)) : blank(&ends[i]);
    if (way == 3 && me == 0) MPI_Barrier(MPI_COMM_WORLD); /* a ready send needs its receive */
    if (turn % 2 == 0) MPI_Startall(SIZES, requests);
    for (int i = 0; i < SIZES && turn % 2 != 0; ++i) MPI_Start(&requests[i]);
    if (way == 3 && me == 1) MPI_Barrier(MPI_COMM_WORLD);
    if (turn % 3 != 0) MPI_Waitall(SIZES, requests, statuses);
    for (int i = SIZES - 1; i >= 0 && turn % 3 == 0; --i) MPI_Wait(&requests[i], &statuses[i]);
    for (int i = 0; i < SIZES; ++i) {
      CHECK(requests[i] != MPI_REQUEST_NULL);
      int bytes = -1;
      if (me == 0) continue;
      check_end(&ends[i], (uint64_t)(turn * 50 + i), sizes[i], "%s of %ld, turn %d", way_names[way], sizes[i], turn);
      MPI_Get_count(&statuses[i], MPI_BYTE, &bytes);
      say("%s turn %d: source %d tag %d bytes %d", way_names[way], turn, statuses[i].MPI_SOURCE, statuses[i].MPI_TAG, bytes);
    }
    if (way == 2 && me == 0) { /* the buffer is free again once it has been detached */
      MPI_Buffer_detach(&buffer, &room);
      MPI_Buffer_attach(buffer, room);
    }
  }
  if (way == 2 && me == 0) MPI_Buffer_detach(&buffer, &room);
  free(buffer);
  for (int i = 0; i < SIZES; ++i) {
    MPI_Request_free(&requests[i]);
    CHECK(requests[i] == MPI_REQUEST_NULL);
    free_end(&ends[i]);
  }
}

/* Waiting for what is not active returns at once, with nothing. */
static void inactive(void) {
  double data[64];
  MPI_Request request, two[2];
  MPI_Status status = soiled();
  int flag = -1, index = -1, count = -1;
  MPI_Recv_init(data, 64, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
  MPI_Wait(&request, &status);
  say_status(&status, MPI_DOUBLE, "Wait for an inactive one");
  MPI_Test(&request, &flag, &status);
  say("Test of it: %d", flag);
  say_status(&status, MPI_DOUBLE, "Test of it");
  flag = -1;
  MPI_Request_get_status(request, &flag, &status);
  say("Request_get_status of it: %d", flag);
  say_status(&status, MPI_DOUBLE, "Request_get_status of it");
  two[0] = request;
  two[1] = MPI_REQUEST_NULL;
  MPI_Waitany(2, two, &index, &status);
  MPI_Waitsome(2, two, &count, (int[2]){0}, MPI_STATUSES_IGNORE);
  say("Waitany %s, Waitsome %s", index == MPI_UNDEFINED ? "undefined" : "?", count == MPI_UNDEFINED ? "undefined" : "?");
  CHECK(request != MPI_REQUEST_NULL);
  MPI_Request_free(&request);
}

/* Looking at a request leaves it as it is. */
static void looked_at(bool restartable) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = end_with(sizes[i], (enum style)((i + me + 1) % STYLES), (uint64_t)(700 + 2 * i + me));
    MPI_Request request;
    MPI_Status status = soiled();
    me == 0 ? load(&e, (uint64_t)i) : blank(&e);
    if (restartable) init(i % 2, &e, 5, &request);
    if (restartable) MPI_Start(&request);
    if (!restartable && me == 0) MPI_Isend(e.at, e.count, e.shape.type, 1, 5, MPI_COMM_WORLD, &request);
    if (!restartable && me == 1) MPI_Irecv(e.at, e.count, e.shape.type, 0, 5, MPI_COMM_WORLD, &request);
    for (int flag = 0; !flag;) MPI_Request_get_status(request, &flag, &status);
    CHECK(request != MPI_REQUEST_NULL);
    if (me == 1) say_status(&status, e.shape.type, "seen of %ld", sizes[i]);
    if (me == 1) check_end(&e, (uint64_t)i, sizes[i], "seen of %ld", sizes[i]);
    soil(&status, 1);
    MPI_Wait(&request, &status);
#ifdef MPICH /* and MPIs made of it forget the status of a persistent request that was looked at */
    if (me == 1 && !restartable) say_status(&status, e.shape.type, "waited for of %ld", sizes[i]);
#else
    if (me == 1) say_status(&status, e.shape.type, "waited for of %ld", sizes[i]);
#endif
    CHECK((request != MPI_REQUEST_NULL) == restartable);
    if (restartable) MPI_Request_free(&request);
    free_end(&e);
  }
}

/* A request that is freed while it is active still does its work. */
static void freed_while_active(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = end_with(sizes[i], (enum style)((i + me + 2) % STYLES), (uint64_t)(800 + 2 * i + me));
    MPI_Request request;
    if (me == 0) {
      init(0, &e, 6, &request);
      load(&e, (uint64_t)i);
      MPI_Start(&request);
      MPI_Request_free(&request);
      CHECK(request == MPI_REQUEST_NULL);
      MPI_Recv(NULL, 0, MPI_BYTE, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE); /* until then the memory is not ours */
    } else {
      blank(&e);
      MPI_Recv(e.at, e.count, e.shape.type, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check_end(&e, (uint64_t)i, sizes[i], "freed while active: %ld", sizes[i]);
      MPI_Send(NULL, 0, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
    }
    free_end(&e);
  }
  say("ok freed while active");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int way = 0; way < WAYS; ++way) restarts(way);
  inactive();
  looked_at(true);
  looked_at(false);
  freed_while_active();
  return finish();
}
