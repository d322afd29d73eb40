/* Collective operations with the same types, while large messages between ranks are under way. */
/* ranks: 4 */
#include "nests.h"

enum { RANKS = 4, TAG = 2, BLOCK = 2000 };

/* A block of doubles with gaps, as each rank lays it out. */
static struct end block_end(int count, int more) {
  struct shape unit = basic(MPI_DOUBLE);
  struct shape s = nothing();
  int width = (me + more) % 3 + 2; /* 2, 3 or 4 doubles of every 5 are data */
  for (int i = 0; i < BLOCK; ++i) add_shape(&s, &unit, (i / width * 5 + i % width) * 8L);
  MPI_Datatype rows, rest, both;
  int full = BLOCK / width, left = BLOCK % width;
  MPI_Type_vector(full, width, 5, MPI_DOUBLE, &rows);
  MPI_Type_contiguous(left, MPI_DOUBLE, &rest);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, full * 40}, (MPI_Datatype[]){rows, rest}, &both);
  MPI_Type_create_resized(both, 0, (full + 1) * 40, &s.type);
  s.lb = 0;
  s.ub = (full + 1) * 40;
  MPI_Type_free(&rows);
  MPI_Type_free(&rest);
  MPI_Type_free(&both);
  return end_of(s, count);
}

/* The stream of one seed for each of the blocks. */
static void load_blocks(struct end* e, uint64_t seed) {
  blank(e);
  unsigned char* stream = allocate(BLOCK * 8);
  struct end one = {.shape = e->shape, .count = 1};
  for (int i = 0; i < e->count; ++i) {
    write_stream(stream, BLOCK * 8, seed + (uint64_t)i);
    scatter(&one, (unsigned char*)e->at + i * extent_of(&e->shape), stream, BLOCK * 8);
  }
  free(stream);
}

/* Whether its blocks are those that these seeds stand for. */
static void check_blocks(struct end* e, const uint64_t* seeds, const char* what) {
  struct end wanted = *e;
  wanted.memory = allocate(e->room);
  wanted.at = wanted.memory + ((unsigned char*)e->at - e->memory);
  blank(&wanted);
  unsigned char* stream = allocate(BLOCK * 8);
  struct end one = {.shape = e->shape, .count = 1};
  for (int i = 0; i < e->count; ++i) {
    write_stream(stream, BLOCK * 8, seeds[i]);
    scatter(&one, (unsigned char*)wanted.at + i * extent_of(&e->shape), stream, BLOCK * 8);
  }
  if (memcmp(wanted.memory, e->memory, e->room) != 0) wrong("%s", what);
  say("checked %s", what);
  free(stream);
  free(wanted.memory);
}

static void collect(void) {
  struct end out = block_end(RANKS, 1), in = block_end(RANKS, 2);
  MPI_Comm world = MPI_COMM_WORLD;
  MPI_Request request;
  uint64_t seeds[RANKS];
  load_blocks(&out, (uint64_t)(me * 10));

  blank(&in);
  if (me == 1) load_blocks(&in, 1000);
  MPI_Bcast(in.at, RANKS, in.shape.type, 1, world);
  for (int i = 0; i < RANKS; ++i) seeds[i] = (uint64_t)(1000 + i);
  check_blocks(&in, seeds, "Bcast");

  blank(&in);
  MPI_Allgather(out.at, 1, out.shape.type, in.at, 1, in.shape.type, world);
  for (int i = 0; i < RANKS; ++i) seeds[i] = (uint64_t)(i * 10);
  check_blocks(&in, seeds, "Allgather");

  blank(&in);
  MPI_Alltoall(out.at, 1, out.shape.type, in.at, 1, in.shape.type, world);
  for (int i = 0; i < RANKS; ++i) seeds[i] = (uint64_t)(i * 10 + me);
  check_blocks(&in, seeds, "Alltoall");

  blank(&in);
  MPI_Ialltoall(out.at, 1, out.shape.type, in.at, 1, in.shape.type, world, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check_blocks(&in, seeds, "Ialltoall");

  blank(&in);
  int ones[RANKS] = {1, 1, 1, 1}, from[RANKS], to[RANKS];
  MPI_Datatype out_types[RANKS], in_types[RANKS];
  for (int i = 0; i < RANKS; ++i) {
    from[i] = i * (int)extent_of(&out.shape);
    to[i] = (RANKS - 1 - i) * (int)extent_of(&in.shape);
    out_types[i] = out.shape.type;
    in_types[i] = in.shape.type;
  }
  MPI_Alltoallw(out.at, ones, from, out_types, in.at, ones, to, in_types, world);
  for (int i = 0; i < RANKS; ++i) seeds[i] = (uint64_t)((RANKS - 1 - i) * 10 + me);
  check_blocks(&in, seeds, "Alltoallw");

  blank(&in);
  MPI_Gather(out.at, 1, out.shape.type, in.at, 1, in.shape.type, 2, world);
  for (int i = 0; i < RANKS; ++i) seeds[i] = (uint64_t)(i * 10);
  if (me == 2) check_blocks(&in, seeds, "Gather");
  if (me != 2) check_end(&in, 0, 0, "no Gather");

  blank(&in);
  MPI_Scatter(out.at, 1, out.shape.type, in.at, 1, in.shape.type, 3, world);
  struct end first = in;
  first.count = 1;
  seeds[0] = (uint64_t)(30 + me);
  check_blocks(&first, seeds, "Scatter");

  free_end(&out);
  free_end(&in);
}

static void reduce(void) {
  long own[100], sum[100];
  for (int i = 0; i < 100; ++i) own[i] = (me + 1) * i;
  MPI_Allreduce(own, sum, 100, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  for (int i = 0; i < 100; ++i) CHECK(sum[i] == 10L * i);
  MPI_Reduce(own, sum, 100, MPI_LONG, MPI_MAX, 3, MPI_COMM_WORLD);
  if (me == 3) CHECK(sum[99] == 4L * 99);
  MPI_Exscan(own, sum, 100, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (me > 0) CHECK(sum[10] == 10L * me * (me + 1) / 2);
  say("reduced");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  collect();
  struct end out = end_with(3 * MIB, NESTED, (uint64_t)me), in = end_with(3 * MIB, STRIDED, (uint64_t)me);
  MPI_Request requests[2];
  MPI_Status statuses[2];
  soil(statuses, 2);
  load(&out, (uint64_t)me);
  blank(&in);
  MPI_Isend(out.at, out.count, out.shape.type, (me + 1) % RANKS, TAG, MPI_COMM_WORLD, &requests[0]);
  collect();
  MPI_Irecv(in.at, in.count, in.shape.type, (me + RANKS - 1) % RANKS, TAG, MPI_COMM_WORLD, &requests[1]);
  reduce();
  MPI_Waitall(2, requests, statuses);
  check_end(&in, (uint64_t)((me + RANKS - 1) % RANKS), bytes_of(&in), "beside collective operations");
  say_status(&statuses[1], in.shape.type, "beside collective operations");
  free_end(&out);
  free_end(&in);
  return finish();
}
