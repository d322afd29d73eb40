/* Communicators of all kinds: oneself, reordered parts, duplicates, two groups, freed ones, and nobody. */
/* ranks: 4 */
#include "nests.h"

enum { TAG = 5 };

static struct end own_end(int size, int more) {
  return end_with(sizes[size], (enum style)((size + more + me) % STYLES), (uint64_t)(size * 100 + more * 10 + me));
}

/* Every size round a ring: to rank + 1, from rank - 1. `tell`: for the lines. */
static void ring(MPI_Comm comm, int step, const char* what) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  for (int size = 0; size < SIZES; size += step) {
    struct end out = own_end(size, 1), in = own_end(size, 2);
    MPI_Status status = soiled();
    MPI_Request request;
    int from = (rank + ranks - 1) % ranks;
    load(&out, (uint64_t)(size * 10 + rank));
    blank(&in);
    MPI_Irecv(in.at, in.count, in.shape.type, from, TAG, comm, &request);
    MPI_Send(out.at, out.count, out.shape.type, (rank + 1) % ranks, TAG, comm);
    MPI_Wait(&request, &status);
    check_end(&in, (uint64_t)(size * 10 + from), sizes[size], "%s, %ld", what, sizes[size]);
    say_status(&status, in.shape.type, "%s, %ld", what, sizes[size]);
    free_end(&out);
    free_end(&in);
  }
}

/* Messages to oneself, by every kind of send and probe. */
static void oneself(MPI_Comm comm, int rank, const char* what) {
  for (int size = 0; size < SIZES; ++size)
    for (int way = 0; way < 5; ++way) {
      struct end out = own_end(size, way), in = own_end(size, way + 1);
      MPI_Request request, second;
      MPI_Status status = soiled();
      MPI_Message message;
      uint64_t seed = (uint64_t)(size * 10 + way);
      load(&out, seed);
      blank(&in);
      if (way == 0) MPI_Irecv(in.at, in.count, in.shape.type, rank, TAG, comm, &second);
      if (way == 1) MPI_Sendrecv(out.at, out.count, out.shape.type, rank, TAG, in.at, in.count, in.shape.type, rank, TAG, comm, &status);
      if (way == 0) MPI_Send(out.at, out.count, out.shape.type, rank, TAG, comm);
      if (way > 1) MPI_Isend(out.at, out.count, out.shape.type, rank, TAG, comm, &request);
      if (way == 3) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
      if (way == 3) say_probed(&status, in.shape.type, "%s, %ld, probed", what, sizes[size]);
      if (way == 2 || way == 3) MPI_Recv(in.at, in.count, in.shape.type, way == 2 ? rank : MPI_ANY_SOURCE, TAG, comm, &status);
      if (way == 4) MPI_Mprobe(rank, TAG, comm, &message, MPI_STATUS_IGNORE);
      if (way == 4) MPI_Mrecv(in.at, in.count, in.shape.type, &message, &status);
      if (way == 0) MPI_Wait(&second, &status);
      if (way > 1) MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_end(&in, seed, sizes[size], "%s, %ld, way %d", what, sizes[size], way);
      check_end(&out, seed, sizes[size], "%s, %ld, way %d, what was sent", what, sizes[size], way);
      say_status(&status, in.shape.type, "%s, %ld, way %d", what, sizes[size], way);
      free_end(&out);
      free_end(&in);
    }
}

static void parts(void) {
  MPI_Comm reversed, half, some, line;
  MPI_Group world, chosen;
  int source, target, flag = 1;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 3, (int[]){3, 0, 2}, &chosen);
  MPI_Comm_create(MPI_COMM_WORLD, chosen, &some);
  MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){4}, (int[]){0}, 0, &line);
  ring(reversed, 3, "reversed");
  ring(half, 2, "half");
  if (some != MPI_COMM_NULL) ring(some, 4, "three of four");
  MPI_Cart_shift(line, 0, 1, &source, &target); /* the ends have nobody beside them */
  for (int size = 0; size < SIZES; size += 3) {
    struct end out = own_end(size, 5), in = own_end(size, 6);
    MPI_Status status = soiled();
    load(&out, (uint64_t)me);
    blank(&in);
    MPI_Sendrecv(out.at, out.count, out.shape.type, target, TAG, in.at, in.count, in.shape.type, source, TAG, line, &status);
    check_end(&in, (uint64_t)(me - 1), source == MPI_PROC_NULL ? 0 : sizes[size], "line, %ld", sizes[size]);
    say_status(&status, in.shape.type, "line, %ld", sizes[size]);
    free_end(&out);
    free_end(&in);
  }
  MPI_Comm_test_inter(half, &flag);
  CHECK(!flag);
  MPI_Group_free(&world);
  MPI_Group_free(&chosen);
  MPI_Comm_free(&reversed);
  MPI_Comm_free(&half);
  if (some != MPI_COMM_NULL) MPI_Comm_free(&some);
  MPI_Comm_free(&line);
}

/* The same ranks and tags, but other messages: between two pairs of ranks. */
static void duplicates(void) {
  MPI_Comm twin[2];
  struct end ends[2][4];
  MPI_Request requests[2][4];
  MPI_Status status = soiled();
  for (int c = 0; c < 2; ++c) MPI_Comm_dup(MPI_COMM_WORLD, &twin[c]);
  bool sender = me < 2;
  for (int i = 0; i < 4; ++i)
    for (int c = 0; c < 2; ++c) {
      int size = SIZES - 1 - 2 * i - c;
      ends[c][i] = own_end(size, 7);
      struct end* e = &ends[c][i];
      if (sender) load(e, (uint64_t)(c * 10 + i));
      if (sender) MPI_Isend(e->at, e->count, e->shape.type, me + 2, TAG, twin[c], &requests[c][i]);
    }
  for (int c = 1; c >= 0; --c) /* those of the second communicator come first */
    for (int i = 0; i < 4 && !sender; ++i) {
      struct end* e = &ends[c][i];
      blank(e);
      MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, twin[c], &status);
      say_probed(&status, e->shape.type, "twin %d, message %d, probed", c, i);
      MPI_Recv(e->at, e->count, e->shape.type, MPI_ANY_SOURCE, MPI_ANY_TAG, twin[c], &status);
      check_end(e, (uint64_t)(c * 10 + i), bytes_of(e), "twin %d, message %d", c, i);
    }
  if (sender) MPI_Waitall(8, &requests[0][0], MPI_STATUSES_IGNORE);
  for (int c = 0; c < 2; ++c) {
    for (int i = 0; i < 4; ++i) free_end(&ends[c][i]);
    MPI_Comm_free(&twin[c]);
  }
}

/* Ranks are those of the other group. */
static void two_groups(void) {
  MPI_Comm half, between, merged;
  MPI_Comm_split(MPI_COMM_WORLD, me / 2, -me, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < 2 ? 3 : 1, 12, &between);
  int rank;
  MPI_Comm_rank(between, &rank);
  for (int size = 0; size < SIZES; size += 2) {
    struct end out = own_end(size, 1), in = own_end(size, 2);
    MPI_Status status = soiled();
    MPI_Request request;
    load(&out, (uint64_t)me);
    blank(&in);
    MPI_Isend(out.at, out.count, out.shape.type, 1 - rank, TAG, between, &request);
    if (size % 4 == 0) MPI_Probe(MPI_ANY_SOURCE, TAG, between, &status);
    MPI_Recv(in.at, in.count, in.shape.type, MPI_ANY_SOURCE, TAG, between, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check_end(&in, (uint64_t)(3 - me), sizes[size], "two groups, %ld", sizes[size]);
    say_status(&status, in.shape.type, "two groups, %ld", sizes[size]);
    free_end(&out);
    free_end(&in);
  }
  MPI_Intercomm_merge(between, me < 2, &merged);
  ring(merged, 4, "merged");
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
  MPI_Comm_free(&merged);
}

/* A communicator that is freed lives on in what was started on it. */
static void freed(void) {
  for (int size = 0; size < SIZES; size += 2) {
    MPI_Comm comm;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    soil(statuses, 2);
    struct end out = own_end(size, 3), in = own_end(size, 4);
    int peer = me ^ 1;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    load(&out, (uint64_t)(size + me));
    blank(&in);
    MPI_Isend(out.at, out.count, out.shape.type, peer, TAG, comm, &requests[0]);
    MPI_Irecv(in.at, in.count, in.shape.type, peer, TAG, comm, &requests[1]);
    MPI_Comm_free(&comm);
    if (out.shape.own) MPI_Type_free(&out.shape.type);
    MPI_Waitall(2, requests, statuses);
    check_end(&in, (uint64_t)(size + peer), sizes[size], "freed communicator, %ld", sizes[size]);
    say_status(&statuses[1], in.shape.type, "freed communicator, %ld", sizes[size]);
    free_end(&out);
    free_end(&in);
  }
}

static void nobody(void) {
  for (int size = 0; size < SIZES; size += 3) {
    struct end e = own_end(size, 1);
    MPI_Status status = soiled();
    MPI_Request requests[2];
    load(&e, 1);
    MPI_Send(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Ssend(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_COMM_WORLD);
    MPI_Isend(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Recv(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    say_status(&status, e.shape.type, "nobody, %ld", sizes[size]);
    MPI_Sendrecv_replace(e.at, e.count, e.shape.type, MPI_PROC_NULL, TAG, MPI_PROC_NULL, TAG, MPI_COMM_WORLD, &status);
    say_status(&status, e.shape.type, "replaced by nobody's, %ld", sizes[size]);
    check_end(&e, 1, sizes[size], "nobody, %ld", sizes[size]);
    free_end(&e);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  oneself(MPI_COMM_SELF, 0, "self");
  if (me < 2) oneself(MPI_COMM_WORLD, me, "own rank");
  parts();
  duplicates();
  two_groups();
  freed();
  nobody();
  return finish();
}
