/* Types freed while their messages are under way, and handles that mean another type or communicator each time. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 11, TIMES = 2000, WINDOW = 8 };

/* Something new each time; `n` doubles. */
static struct end nth(int number, int n) {
  struct random random = {(uint64_t)number * 2 + (uint64_t)me};
  struct shape unit = basic(MPI_DOUBLE);
  struct end e = end_of(nest(&random, &unit, n, 1 + number % 2), 1);
  free_shape(&unit);
  return e;
}

static void many_types(void) {
  struct end ends[WINDOW];
  MPI_Request requests[WINDOW];
  for (int number = 0; number < TIMES; ++number) {
    int slot = number % WINDOW, n = number % 500 == 0 ? 100000 : 1 + number % 13 * 97;
    ends[slot] = nth(number, n);
    if (me == 0) {
      load(&ends[slot], (uint64_t)number);
      MPI_Isend(ends[slot].at, 1, ends[slot].shape.type, 1, TAG, MPI_COMM_WORLD, &requests[slot]);
    } else {
      blank(&ends[slot]);
      MPI_Irecv(ends[slot].at, 1, ends[slot].shape.type, 0, TAG, MPI_COMM_WORLD, &requests[slot]);
    }
    MPI_Type_free(&ends[slot].shape.type); /* the next one may well have the same handle */
    if (slot < WINDOW - 1) continue;
    MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < WINDOW; ++i) {
      int which = number - WINDOW + 1 + i;
      if (me == 1) check_end(&ends[i], (uint64_t)which, bytes_of(&ends[i]), "message %d", which);
      free_end(&ends[i]);
    }
  }
  say("ok %d types", TIMES);
}

/* A type that is freed lives on in those made of it, and in its duplicates. */
static void parts_freed(void) {
  MPI_Datatype part, whole, duplicate;
  double data[1200];
  for (int i = 0; i < 1200; ++i) data[i] = me == 0 ? i : -1;
  MPI_Type_vector(100, 2, 3, MPI_DOUBLE, &part);
  MPI_Type_commit(&part);
  MPI_Type_create_hvector(3, 1, 400 * sizeof(double), part, &whole);
  MPI_Type_free(&part);
  MPI_Type_commit(&whole);
  MPI_Type_dup(whole, &duplicate);
  MPI_Type_free(&whole);
  if (me == 0) MPI_Send(data, 1, duplicate, 1, TAG, MPI_COMM_WORLD);
  if (me == 1) {
    MPI_Recv(data, 1, duplicate, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int others = 0;
    for (int i = 0; i < 1200; ++i) others += data[i] != (i % 400 < 299 && i % 400 % 3 < 2 ? i : -1);
    CHECK(others == 0);
  }
  MPI_Type_free(&duplicate);
  say("ok parts");
}

/* One handle for two shapes in turn, the blocks of one being the gaps of the other. */
static void same_handle(void) {
  int data[256];
  for (int turn = 0; turn < 100; ++turn) {
    MPI_Datatype type;
    MPI_Type_indexed(2, (int[]){20 + turn, 40}, turn % 2 ? (int[]){0, 150} : (int[]){130, 10}, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 256; ++i) data[i] = me == 0 ? turn * 1000 + i : -1;
    if (me == 0) {
      MPI_Send(data, 1, type, 1, TAG, MPI_COMM_WORLD);
    } else {
      MPI_Recv(data, 60 + turn, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      int first = turn % 2 ? 0 : 130, second = turn % 2 ? 150 : 10, others = 0;
      for (int i = 0; i < 60 + turn; ++i) others += data[i] != turn * 1000 + (i < 20 + turn ? first + i : second + i - 20 - turn);
      if (others > 0) wrong("turn %d: %d ints differ", turn, others);
    }
    MPI_Type_free(&type);
  }
  say("ok same handle");
}

/* The same for communicators: whoever is rank 0 of one is rank 1 of the next, and sends. */
static void same_communicator(void) {
  for (int turn = 0; turn < 60; ++turn) {
    struct end e = nth(turn, 3000 + turn);
    MPI_Comm comm;
    MPI_Request request;
    MPI_Status status = soiled();
    int rank;
    MPI_Comm_split(MPI_COMM_WORLD, 0, turn % 2 ? me : -me, &comm);
    MPI_Comm_rank(comm, &rank);
    rank == 0 ? load(&e, (uint64_t)turn) : blank(&e);
    if (rank == 0) MPI_Isend(e.at, 1, e.shape.type, 1, TAG, comm, &request);
    if (rank == 1) MPI_Irecv(e.at, 1, e.shape.type, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
    if (turn % 3 == 0) MPI_Comm_free(&comm);
    MPI_Wait(&request, &status);
    check_end(&e, (uint64_t)turn, bytes_of(&e), "communicator %d", turn);
    if (rank == 1) say_status(&status, MPI_DOUBLE, "communicator %d", turn);
    if (turn % 3 != 0) MPI_Comm_free(&comm);
    free_end(&e);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  many_types();
  parts_freed();
  same_handle();
  same_communicator();
  return finish();
}
