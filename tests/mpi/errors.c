/* What goes wrong must go wrong in the same way: truncated messages by every kind of completion, and wrong arguments.
 * */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 8 };

static const char* class_of(int code) {
  static const struct {
    int class;
    const char* name;
  } names[] = {{MPI_SUCCESS, "success"},     {MPI_ERR_TRUNCATE, "truncate"}, {MPI_ERR_IN_STATUS, "in status"},
               {MPI_ERR_PENDING, "pending"}, {MPI_ERR_TYPE, "type"},         {MPI_ERR_COUNT, "count"},
               {MPI_ERR_RANK, "rank"},       {MPI_ERR_TAG, "tag"},           {MPI_ERR_COMM, "communicator"},
               {MPI_ERR_ARG, "argument"},    {MPI_ERR_REQUEST, "request"},   {MPI_ERR_OTHER, "other"},
               {MPI_ERR_BUFFER, "buffer"},   {MPI_ERR_INTERN, "internal"},   {MPI_ERR_UNKNOWN, "unknown"}};
  int class = -1;
  MPI_Error_class(code, &class);
  for (int i = 0; i < COUNT_OF(names); ++i)
    if (names[i].class == class) return names[i].name;
  return "another class";
}

static MPI_Comm comm; /* returns errors */
static int handled;

static void count_error(MPI_Comm* where, int* code, ...) {
  (void)where;
  (void)code;
  ++handled;
}

/* --- truncation --------------------------------------------------------------------------------------------------- */

enum how { RECV, WAIT, TEST, WAITALL, WAITANY, WAITSOME, TESTALL, PERSISTENT, SENDRECV, MRECV, HOWS };

static const char* const how_names[] = {"Recv",     "Wait",    "Test",       "Waitall",  "Waitany",
                                        "Waitsome", "Testall", "persistent", "Sendrecv", "Mrecv"};

static const struct {
  long sent, expected;
} cases[] = {
#ifndef I_MPI_VERSION /* calls it a success, and complains about the next message */
    {1, 0},
#endif
    {DESCRIPTOR, DESCRIPTOR - 1},
    {256, DESCRIPTOR},
    {DESCRIPTOR + 1, 1},
    {KIB, DESCRIPTOR},
    {8 * KIB, 2 * KIB},
    {64 * KIB, DESCRIPTOR - 1},
    {65 * KIB, 64 * KIB},
    {513 * KIB, 64 * KIB},
    {3 * MIB, DESCRIPTOR},
    {3 * MIB, 513 * KIB}};

/* Bytes in any shape, so that ends of different sizes have one signature. */
static struct end some_bytes(long bytes, int style) {
  struct shape unit = basic(MPI_BYTE);
  if (bytes == 0 || style % 3 == 0) return end_of(unit, (int)bytes);
  struct random random = {(uint64_t)style};
  if (bytes % KIB == 0) replace(&unit, copies(&random, CONTIGUOUS, 64, &unit));
  struct shape s = copies(&random, style % 3 == 1 ? SUBARRAY_C : INDEXED, (int)(bytes / unit.size), &unit);
  free_shape(&unit);
  return end_of(s, 1);
}

/* One end of a message that is too long. */
static struct end too_much(int number, int how) {
  int style = number + how + 2 * me;
#ifdef OPEN_MPI /* 4.1 and 5.0 copy all of it past the end of the receiver's memory where both ends are contiguous */
  if (me == 0 && cases[number].sent > 2 * KIB) {
    struct shape unit = basic(MPI_BYTE);
    struct shape s = nothing();
    for (long i = 0; i < cases[number].sent / 64; ++i)
      for (int k = 0; k < 64; ++k) add_shape(&s, &unit, i * 96 + k);
    MPI_Type_vector((int)cases[number].sent / 64, 64, 96, MPI_BYTE, &s.type);
    return end_of(s, 1);
  }
#endif
  return some_bytes(me == 0 ? cases[number].sent : cases[number].expected, style);
}

/* Between a short message and another, that must both come. */
static void receive_too_much(enum how how, int number, struct end* e) {
  struct end before = some_bytes(DESCRIPTOR, number), after = some_bytes(64 * KIB, number + 1);
  MPI_Request requests[3];
  MPI_Status statuses[3];
  soil(statuses, 3);
  MPI_Message message;
  int code = MPI_SUCCESS, flag = 0, index = -1, count = 0, indices[3];
  blank(&before);
  blank(&after);
  MPI_Irecv(before.at, before.count, before.shape.type, 0, TAG, comm, &requests[0]);
  requests[1] = MPI_REQUEST_NULL;
  if (how == WAIT || how == TEST || how == WAITANY || how == WAITALL || how == WAITSOME || how == TESTALL)
    MPI_Irecv(e->at, e->count, e->shape.type, 0, TAG, comm, &requests[1]);
  if (how == PERSISTENT) MPI_Recv_init(e->at, e->count, e->shape.type, 0, TAG, comm, &requests[1]);
  if (how == PERSISTENT) MPI_Start(&requests[1]);
  if (how == RECV) code = MPI_Recv(e->at, e->count, e->shape.type, 0, TAG, comm, MPI_STATUS_IGNORE);
  if (how == SENDRECV) code = MPI_Sendrecv(NULL, 0, MPI_BYTE, 0, TAG + 1, e->at, e->count, e->shape.type, 0, TAG, comm, MPI_STATUS_IGNORE);
  if (how == MRECV) {
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Mprobe(0, TAG, comm, &message, MPI_STATUS_IGNORE);
    code = MPI_Mrecv(e->at, e->count, e->shape.type, &message, MPI_STATUS_IGNORE);
  }
  MPI_Irecv(after.at, after.count, after.shape.type, 0, TAG, comm, &requests[2]);
  if (how == WAIT || how == PERSISTENT) code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  if (how == TEST)
    while (code == MPI_SUCCESS && !flag) code = MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
  if (how == WAITANY) code = MPI_Waitany(1, &requests[1], &index, MPI_STATUS_IGNORE);
  for (int i = 0; i < 3; ++i) statuses[i].MPI_ERROR = MPI_SUCCESS;
  if (how == WAITALL) code = MPI_Waitall(3, requests, statuses);
  if (how == TESTALL)
    while (code == MPI_SUCCESS && !flag) code = MPI_Testall(3, requests, &flag, statuses);
  if (how == WAITSOME) code = MPI_Waitsome(1, &requests[1], &count, indices, &statuses[1]);
  say("%s, %ld for %ld: %s", how_names[how], cases[number].sent, cases[number].expected, class_of(code));
  if (code == MPI_ERR_IN_STATUS) say("of which %s", class_of(statuses[1].MPI_ERROR));
  if (how == PERSISTENT) MPI_Request_free(&requests[1]);
  for (int i = 0; i < 3; i += 2) code = MPI_Wait(&requests[i], MPI_STATUS_IGNORE); /* those that were not over */
  check_end(&before, 1, bytes_of(&before), "before it");
  check_end(&after, 2, bytes_of(&after), "after it");
  free_end(&before);
  free_end(&after);
}

static void truncation(enum how how) {
  for (int i = 0; i < COUNT_OF(cases); ++i) {
    struct end e = too_much(i, how);
    MPI_Barrier(comm);
    if (me == 1) {
      blank(&e);
      receive_too_much(how, i, &e);
      if (how == SENDRECV) MPI_Barrier(comm);
    } else {
      struct end before = some_bytes(DESCRIPTOR, i + 2), after = some_bytes(64 * KIB, i + 3);
      load(&before, 1);
      load(&e, 3);
      load(&after, 2);
      MPI_Send(before.at, before.count, before.shape.type, 1, TAG, comm);
      int code = MPI_Send(e.at, e.count, e.shape.type, 1, TAG, comm);
      say("its sender: %s", class_of(code));
      MPI_Send(after.at, after.count, after.shape.type, 1, TAG, comm);
      if (how == SENDRECV) MPI_Recv(NULL, 0, MPI_BYTE, 1, TAG + 1, comm, MPI_STATUS_IGNORE);
      if (how == SENDRECV) MPI_Barrier(comm);
      free_end(&before);
      free_end(&after);
    }
    free_end(&e);
  }
}

/* To oneself, and through an error handler of the program's own. */
static void other_places(void) {
  char from[8 * KIB] = {0}, to[8 * KIB];
  MPI_Errhandler handler;
  MPI_Request request;
  MPI_Comm_create_errhandler(count_error, &handler);
  MPI_Comm_set_errhandler(comm, handler);
  MPI_Isend(from, sizeof from, MPI_BYTE, me, TAG, comm, &request);
  int code = MPI_Recv(to, DESCRIPTOR, MPI_BYTE, me, TAG, comm, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  say("to oneself: %s, handled %d", class_of(code), handled);
  if (me == 0) MPI_Send(from, sizeof from, MPI_BYTE, 1, TAG, comm);
  if (me == 1) code = MPI_Recv(to, 100, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE);
  if (me == 1) say("from the other: %s, handled %d", class_of(code), handled);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Errhandler_free(&handler);
}

/* --- wrong arguments ---------------------------------------------------------------------------------------------- */

static void arguments(void) {
  char data[256];
  int at = 0, *top = NULL, flag = 0, tag = 0;
  MPI_Datatype fresh;
  MPI_Request r;
  MPI_Type_vector(4, 1, 2, MPI_INT, &fresh);
  MPI_Comm_get_attr(comm, MPI_TAG_UB, &top, &flag);
  if (flag && *top < 0x7fffffff) tag = *top + 1;
  const struct {
    int count;
    MPI_Datatype type;
    int rank, tag;
    const char* what;
  } calls[] = {{1, fresh, 0, TAG, "a type that was not committed"},
               {1, MPI_DATATYPE_NULL, 0, TAG, "no type"},
               {-1, MPI_INT, 0, TAG, "a count of -1"},
               {1, MPI_INT, 2, TAG, "rank 2 of 2"},
               {1, MPI_INT, -17, TAG, "rank -17"},
               {1, MPI_INT, 0, -17, "tag -17"},
               {1, MPI_INT, 0, tag, "the tag after the last"}};
  for (int i = 0; i < COUNT_OF(calls) - (tag == 0); ++i) {
    int n = calls[i].count, rank = calls[i].rank, t = calls[i].tag;
    MPI_Datatype type = calls[i].type;
    say("%s: Send %s", calls[i].what, class_of(MPI_Send(data, n, type, rank, t, comm)));
    say("%s: Ssend %s", calls[i].what, class_of(MPI_Ssend(data, n, type, rank, t, comm)));
    say("%s: Isend %s", calls[i].what, class_of(MPI_Isend(data, n, type, rank, t, comm, &r)));
    say("%s: Send_init %s", calls[i].what, class_of(MPI_Send_init(data, n, type, rank, t, comm, &r)));
    say("%s: Sendrecv_replace %s", calls[i].what, class_of(MPI_Sendrecv_replace(data, n, type, rank, t, rank, t, comm, MPI_STATUS_IGNORE)));
    say("%s: Recv %s", calls[i].what, class_of(MPI_Recv(data, n, type, rank, t, comm, MPI_STATUS_IGNORE)));
    say("%s: Irecv %s", calls[i].what, class_of(MPI_Irecv(data, n, type, rank, t, comm, &r)));
    say("%s: Recv_init %s", calls[i].what, class_of(MPI_Recv_init(data, n, type, rank, t, comm, &r)));
    if (i < 3) say("%s: Pack %s", calls[i].what, class_of(MPI_Pack(data, n, type, data + 128, 128, &at, comm)));
    if (i < 3) say("%s: Unpack %s", calls[i].what, class_of(MPI_Unpack(data, 100, &at, data + 128, n, type, comm)));
    if (i >= 3) say("%s: Iprobe %s", calls[i].what, class_of(MPI_Iprobe(rank, t, comm, &flag, MPI_STATUS_IGNORE)));
  }
  say("no communicator: Send %s", class_of(MPI_Send(data, 1, MPI_INT, 0, TAG, MPI_COMM_NULL)));
  say("no communicator: Irecv %s", class_of(MPI_Irecv(data, 1, MPI_INT, 0, TAG, MPI_COMM_NULL, &r)));
  say("no request: Start %s", class_of(MPI_Start(&(MPI_Request){MPI_REQUEST_NULL})));
  say("no request: Request_free %s", class_of(MPI_Request_free(&(MPI_Request){MPI_REQUEST_NULL})));
  say("no request: Cancel %s", class_of(MPI_Cancel(&(MPI_Request){MPI_REQUEST_NULL})));
  MPI_Type_commit(&fresh);
  at = 0;
  say("Pack into too little: %s", class_of(MPI_Pack(data, 1, fresh, data + 128, 15, &at, comm)));
  at = 0;
  say("Unpack of too little: %s", class_of(MPI_Unpack(data, 15, &at, data + 128, 1, fresh, comm)));
  MPI_Type_free(&fresh);
}

/* The buffer has room for one message, but not for the other. In Open MPI no message comes after that. */
static void small_buffer(void) {
#ifndef OPEN_MPI
  enum { BYTES = 50000 };
  char* data = allocate(BYTES * 2);
  int room = BYTES + MPI_BSEND_OVERHEAD;
  char* buffer = allocate((size_t)room);
  memset(data, 0, BYTES * 2);
  MPI_Buffer_attach(buffer, room);
  if (me == 0) say("Bsend of too much: %s", class_of(MPI_Bsend(data, BYTES, MPI_INT16_T, 1, TAG, comm)));
  if (me == 0) say("Bsend: %s", class_of(MPI_Bsend(data, BYTES, MPI_BYTE, 1, TAG, comm)));
  if (me == 1) say("Recv: %s", class_of(MPI_Recv(data, BYTES, MPI_BYTE, 0, TAG, comm, MPI_STATUS_IGNORE)));
  MPI_Buffer_detach(&buffer, &room);
  free(buffer);
  free(data);
#endif
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN); /* some errors of several requests belong there */
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  for (int how = 0; how < HOWS; ++how) truncation((enum how)how);
  other_places();
  arguments();
  small_buffer();
  MPI_Comm_free(&comm);
  return finish();
}
