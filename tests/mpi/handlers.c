/* Which error handler hears of a truncated message, and what the call returns, differs between MPIs, and with the call
 * that completes it. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 4 };

enum how { RECV, WAIT, TEST, WAITALL, WAITALL_IGNORED, TESTALL, WAITANY, TESTANY, WAITSOME, TESTSOME, PERSISTENT, MRECV, HOWS };
static const char* const how_names[] = {"Recv",    "Wait",    "Test",     "Waitall",  "Waitall, ignored", "Testall",
                                        "Waitany", "Testany", "Waitsome", "Testsome", "persistent",       "Mrecv"};

static int of_comm, of_world, of_self, last;
static void comm_heard(MPI_Comm* where, int* code, ...) {
  (void)where;
  MPI_Error_class(*code, &last);
  ++of_comm;
}
static void world_heard(MPI_Comm* where, int* code, ...) {
  (void)where;
  MPI_Error_class(*code, &last);
  ++of_world;
}
static void self_heard(MPI_Comm* where, int* code, ...) {
  (void)where;
  MPI_Error_class(*code, &last);
  ++of_self;
}

/* What a receive of `count` elements ends with. */
static int receive(enum how how, void* at, int count, MPI_Datatype type, int tag, MPI_Comm comm, MPI_Status* status) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Message message;
  int code = MPI_SUCCESS, flag = 0, index = 0;
  switch (how) {
    case RECV: return MPI_Recv(at, count, type, 0, tag, comm, status);
    case MRECV: MPI_Mprobe(0, tag, comm, &message, MPI_STATUS_IGNORE); return MPI_Mrecv(at, count, type, &message, status);
    case PERSISTENT:
      MPI_Recv_init(at, count, type, 0, tag, comm, &request);
      MPI_Start(&request);
      break;
    default: MPI_Irecv(at, count, type, 0, tag, comm, &request);
  }
  switch (how) {
    case TEST:
      while (!flag) code = MPI_Test(&request, &flag, status);
      break;
    case WAITALL: code = MPI_Waitall(1, &request, status); break;
    case WAITALL_IGNORED: code = MPI_Waitall(1, &request, MPI_STATUSES_IGNORE); break;
    case TESTALL:
      while (!flag) code = MPI_Testall(1, &request, &flag, status);
      break;
    case WAITANY: code = MPI_Waitany(1, &request, &index, status); break;
    case TESTANY:
      while (!flag) code = MPI_Testany(1, &request, &index, &flag, status);
      break;
    case WAITSOME: code = MPI_Waitsome(1, &request, &flag, &index, status); break;
    case TESTSOME:
      while (!flag) code = MPI_Testsome(1, &request, &flag, &index, status);
      break;
    default: code = MPI_Wait(&request, status);
  }
  if (how != PERSISTENT) CHECK(request == MPI_REQUEST_NULL);
  if (how == PERSISTENT && request != MPI_REQUEST_NULL) MPI_Request_free(&request);
  return code;
}

static void truncated(enum how how, const char* what, int count, int blocks, MPI_Comm comm) {
  MPI_Datatype type;
  MPI_Type_vector(blocks, 8, blocks == 1 ? 8 : 16, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  char* memory = allocate((size_t)count * (size_t)blocks * 16);
  if (me == 0) {
    MPI_Send(memory, count, type, 1, TAG, comm);
  } else {
    MPI_Status status = {0};
    of_comm = of_world = of_self = last = 0;
    int class = 0, code = receive(how, memory, count / 2, type, TAG, comm, &status);
    MPI_Error_class(code, &class);
    bool several = how == WAITALL || how == TESTALL || how == WAITSOME || how == TESTSOME;
    int in_status = 0;
    if (several) MPI_Error_class(status.MPI_ERROR, &in_status);
    say("%s, %s: returns %d, heard by the communicator %d, the world %d, self %d, last of %d; status %d", how_names[how], what, class,
        of_comm, of_world, of_self, last, in_status);
  }
  free(memory);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm comm;
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Errhandler handlers[3];
  MPI_Comm_create_errhandler(comm_heard, &handlers[0]);
  MPI_Comm_create_errhandler(world_heard, &handlers[1]);
  MPI_Comm_create_errhandler(self_heard, &handlers[2]);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handlers[1]);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handlers[2]);
  for (int returns = 0; returns < 2; ++returns) {
    MPI_Comm_set_errhandler(comm, returns ? MPI_ERRORS_RETURN : handlers[0]);
    for (int how = 0; how < HOWS; ++how) {
#ifdef OPEN_MPI /* now and then calls it a success, and keeps the request */
      if (how == WAITALL_IGNORED) continue;
#endif
      truncated((enum how)how, "contiguous", 20, 1, comm);
      truncated((enum how)how, "packed", 20, 10, comm);
      truncated((enum how)how, "offered", 20, 1000, comm);
    }
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_ARE_FATAL);
  for (int i = 0; i < 3; ++i) MPI_Errhandler_free(&handlers[i]);
  MPI_Comm_free(&comm);
  return finish();
}
