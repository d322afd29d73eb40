/* Collectives of blocks with gaps: each block is a column of cells, sent and received by one vector type, or packed by
 * hand around the same collective of contiguous doubles.
 *
 *   mpirun -n 4 ./collectives --seconds 0.2 --largest 65536 */
#include <stdio.h>
#include <stdlib.h>

#include "mini.h"

enum { CELL = 4, STRIDE = 8, LEAST = 4096, STEP = 8, ROOT = 0 };

/* What a rank has of blocks: none, one, or one of each rank. */
enum blocks { NONE, ONE, EACH };

struct job {
  int cells, rank, ranks, elements; /* of a block */
  long span;                        /* of a block in memory, doubles */
  double *sent, *received, *packed_sent, *packed_received;
  MPI_Datatype block;
  int *ones, *many, *places, *packed_places, *byte_places; /* counts and displacements, of each rank */
  MPI_Datatype* blocks;
  MPI_Comm ring;
  const struct collective* of;
};

/* Sends and receives `count` elements of `type` in a block. */
struct buffers {
  double *sent, *received;
  int count;
  MPI_Datatype type;
  const int *counts, *places; /* of the forms with v, in elements */
};

struct collective {
  const char* name;
  enum blocks root_sends, others_send, root_receives, others_receive;
  void (*by_type)(const struct job* job, const struct buffers* b);
};

static void alltoall(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Alltoall(b->sent, b->count, b->type, b->received, b->count, b->type, MPI_COMM_WORLD);
}
static void alltoallv(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Alltoallv(b->sent, b->counts, b->places, b->type, b->received, b->counts, b->places, b->type, MPI_COMM_WORLD);
}
/* Packed blocks take the v form, as a user would have it. */
static void alltoallw(const struct job* job, const struct buffers* b) {
  if (b->type == MPI_DOUBLE)
    alltoallv(job, b);
  else
    MPI_Alltoallw(b->sent, job->ones, job->byte_places, job->blocks, b->received, job->ones, job->byte_places, job->blocks, MPI_COMM_WORLD);
}
static void allgather(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Allgather(b->sent, b->count, b->type, b->received, b->count, b->type, MPI_COMM_WORLD);
}
static void allgatherv(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Allgatherv(b->sent, b->count, b->type, b->received, b->counts, b->places, b->type, MPI_COMM_WORLD);
}
static void gather(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Gather(b->sent, b->count, b->type, b->received, b->count, b->type, ROOT, MPI_COMM_WORLD);
}
static void scatter(const struct job* job, const struct buffers* b) {
  (void)job;
  MPI_Scatter(b->sent, b->count, b->type, b->received, b->count, b->type, ROOT, MPI_COMM_WORLD);
}
static void bcast(const struct job* job, const struct buffers* b) {
  MPI_Bcast(job->rank == ROOT ? b->sent : b->received, b->count, b->type, ROOT, MPI_COMM_WORLD);
}
/* On a ring: the block of the one before, and that of the one after. */
static void neighbors(const struct job* job, const struct buffers* b) {
  MPI_Neighbor_alltoall(b->sent, b->count, b->type, b->received, b->count, b->type, job->ring);
}

static const struct collective collectives[] = {
    {"alltoall", EACH, EACH, EACH, EACH, alltoall},
    {"alltoallv", EACH, EACH, EACH, EACH, alltoallv},
    {"alltoallw", EACH, EACH, EACH, EACH, alltoallw},
    {"allgather", ONE, ONE, EACH, EACH, allgather},
    {"allgatherv", ONE, ONE, EACH, EACH, allgatherv},
    {"gather", ONE, ONE, EACH, NONE, gather},
    {"scatter", EACH, NONE, ONE, ONE, scatter},
    {"bcast", ONE, NONE, NONE, ONE, bcast},
    {"neighbor_alltoall", EACH, EACH, EACH, EACH, neighbors},
};

static int sent_blocks(const struct job* job) {
  enum blocks blocks = job->rank == ROOT ? job->of->root_sends : job->of->others_send;
  if (job->of->by_type == neighbors) return 2;
  return blocks == EACH ? job->ranks : blocks == ONE;
}

static int received_blocks(const struct job* job) {
  enum blocks blocks = job->rank == ROOT ? job->of->root_receives : job->of->others_receive;
  if (job->of->by_type == neighbors) return 2;
  return blocks == EACH ? job->ranks : blocks == ONE;
}

static void exchange(void* state, enum mini_way way) {
  struct job* job = state;
  if (way == MINI_DATATYPE) {
    const struct buffers whole = {job->sent, job->received, 1, job->block, job->ones, job->places};
    job->of->by_type(job, &whole);
    return;
  }
  double* packed = job->packed_sent;
  for (int block = 0, blocks = sent_blocks(job); block < blocks; ++block)
    for (int cell = 0; cell < job->cells; ++cell)
      for (int k = 0; k < CELL; ++k) *packed++ = job->sent[block * job->span + (long)cell * STRIDE + k];
  const struct buffers whole = {job->packed_sent, job->packed_received, job->elements, MPI_DOUBLE, job->many, job->packed_places};
  job->of->by_type(job, &whole);
  packed = job->packed_received;
  for (int block = 0, blocks = received_blocks(job); block < blocks; ++block)
    for (int cell = 0; cell < job->cells; ++cell)
      for (int k = 0; k < CELL; ++k) job->received[block * job->span + (long)cell * STRIDE + k] = *packed++;
}

/* The block-th that `rank` sends. */
static double value(int rank, int block, int cell, int k, int call) { return rank * 1e9 + block * 1e7 + cell * CELL + k + call * 0.125; }

/* Where both neighbours are one rank, MPIs differ in which of its blocks comes first: they are alike there. */
static int number_of(const struct job* job, int block) { return job->of->by_type == neighbors && job->ranks <= 2 ? 0 : block; }

static void prepare(void* state, int call) {
  struct job* job = state;
  for (long i = 0; i < (job->ranks + 1) * job->span; ++i) job->sent[i] = job->received[i] = -1;
  for (int block = 0, blocks = sent_blocks(job); block < blocks; ++block)
    for (int cell = 0; cell < job->cells; ++cell)
      for (int k = 0; k < CELL; ++k)
        job->sent[block * job->span + (long)cell * STRIDE + k] = value(job->rank, number_of(job, block), cell, k, call);
}

/* Whose block comes as the block-th, and which of its blocks it was. */
static void origin(const struct job* job, int block, int* from, int* of_it) {
  if (job->of->by_type == neighbors) {
    *from = (job->rank + (block == 0 ? job->ranks - 1 : 1)) % job->ranks;
    *of_it = 1 - block;
    return;
  }
  *from = job->of->others_send == NONE ? ROOT : block;
  *of_it = job->of->root_sends == EACH ? job->rank : 0;
}

static int check(void* state, int call) {
  const struct job* job = state;
  int blocks = received_blocks(job);
  for (int block = 0; block <= job->ranks; ++block)
    for (long i = 0; i < job->span; ++i) {
      int from = 0, of_it = 0, k = (int)(i % STRIDE), cell = (int)(i / STRIDE);
      double right = -1;
      if (block < blocks && k < CELL) {
        origin(job, block, &from, &of_it);
        right = value(from, number_of(job, of_it), cell, k, call);
      }
      if (job->received[block * job->span + i] != right) return 0;
    }
  return 1;
}

static void open_job(struct job* job, long bytes) {
  job->cells = (int)(bytes / (CELL * (long)sizeof(double)));
  job->elements = job->cells * CELL;
  job->span = (long)job->cells * STRIDE;
  long room = (job->ranks + 1) * job->span * (long)sizeof(double);
  double** memory[] = {&job->sent, &job->received, &job->packed_sent, &job->packed_received};
  for (int i = 0; i < 4; ++i) *memory[i] = mini_memory(room);
  MPI_Datatype column;
  MPI_Type_vector(job->cells, CELL, STRIDE, MPI_DOUBLE, &column);
  MPI_Type_create_resized(column, 0, job->span * (long)sizeof(double), &job->block);
  MPI_Type_commit(&job->block);
  MPI_Type_free(&column);
  int** lists[] = {&job->ones, &job->many, &job->places, &job->packed_places, &job->byte_places};
  for (int i = 0; i < 5; ++i) *lists[i] = mini_memory(job->ranks * (long)sizeof(int));
  job->blocks = mini_memory(job->ranks * (long)sizeof(MPI_Datatype));
  for (int i = 0; i < job->ranks; ++i) {
    job->ones[i] = 1;
    job->many[i] = job->elements;
    job->places[i] = i;
    job->packed_places[i] = i * job->elements;
    job->byte_places[i] = (int)(i * job->span * (long)sizeof(double));
    job->blocks[i] = job->block;
  }
}

static void close_job(struct job* job) {
  double* memory[] = {job->sent, job->received, job->packed_sent, job->packed_received};
  for (int i = 0; i < 4; ++i) free(memory[i]);
  int* lists[] = {job->ones, job->many, job->places, job->packed_places, job->byte_places};
  for (int i = 0; i < 5; ++i) free(lists[i]);
  free(job->blocks);
  MPI_Type_free(&job->block);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  struct job job = {.cells = 0};
  double seconds = mini_number(argc, argv, "seconds", 0.2), largest = mini_number(argc, argv, "largest", 262144);
  int around = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &job.ranks);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &job.ranks, &around, 0, &job.ring);
  for (long bytes = LEAST; bytes <= largest; bytes *= STEP) {
    open_job(&job, bytes);
    for (size_t i = 0; i < sizeof collectives / sizeof collectives[0]; ++i) {
      job.of = &collectives[i];
      char name[64];
      snprintf(name, sizeof name, "%s, blocks of %ld KiB", job.of->name, bytes / 1024);
      mini_race(name, sent_blocks(&job) * bytes, seconds, &job, exchange, prepare, check);
    }
    close_job(&job);
  }
  MPI_Comm_free(&job.ring);
  MPI_Finalize();
  return 0;
}
