/* A halo exchange in two dimensions: each rank has a block of a grid of doubles and, around it, what its neighbours
 * have beyond its edges. By subarrays, or packed by hand. Ranks side by side come first, so that of two the edges are
 * columns: 16 bytes of each row.
 *
 *   mpirun -n 4 ./halo --seconds 0.5 --largest 2048 */
#include <stdio.h>
#include <stdlib.h>

#include "mini.h"

enum { DEPTH = 2, SIDES = 4, LEAST = 256, TAG = 7 };

struct edge {
  int neighbour, tag; /* tag: of what it sends to us */
  int from[2], into[2], size[2];
  MPI_Datatype out, in;
  double *packed_out, *packed_in;
};

struct block {
  int n, width, where[2], ranks[2];
  double* values;
  struct edge edges[SIDES]; /* up, down, left, right */
};

static double* at(const struct block* block, int row, int column) { return block->values + (long)row * block->width + column; }

/* Of each point of the whole grid another one in each call. */
static double value(const struct block* block, int row, int column, int call) {
  double whole_row = row - DEPTH + (double)block->where[0] * block->n, whole_column = column - DEPTH + (double)block->where[1] * block->n;
  return whole_row * 65536 + whole_column + call * 0.125;
}

static int is_inside(const struct block* block, int row, int column) {
  return row >= DEPTH && row < DEPTH + block->n && column >= DEPTH && column < DEPTH + block->n;
}

static void pack(const struct block* block, const int first[2], const int size[2], double* packed) {
  for (int row = 0; row < size[0]; ++row)
    for (int column = 0; column < size[1]; ++column) *packed++ = *at(block, first[0] + row, first[1] + column);
}

static void unpack(struct block* block, const int first[2], const int size[2], const double* packed) {
  for (int row = 0; row < size[0]; ++row)
    for (int column = 0; column < size[1]; ++column) *at(block, first[0] + row, first[1] + column) = *packed++;
}

static void exchange(void* state, enum mini_way way) {
  struct block* block = state;
  MPI_Request requests[2 * SIDES];
  for (int side = 0; side < SIDES; ++side) {
    struct edge* edge = &block->edges[side];
    int count = edge->size[0] * edge->size[1];
    if (way == MINI_DATATYPE)
      MPI_Irecv(block->values, 1, edge->in, edge->neighbour, edge->tag, MPI_COMM_WORLD, &requests[side]);
    else
      MPI_Irecv(edge->packed_in, count, MPI_DOUBLE, edge->neighbour, edge->tag, MPI_COMM_WORLD, &requests[side]);
  }
  for (int side = 0; side < SIDES; ++side) {
    struct edge* edge = &block->edges[side];
    int tag = TAG + side, count = edge->size[0] * edge->size[1];
    if (way == MINI_DATATYPE) {
      MPI_Isend(block->values, 1, edge->out, edge->neighbour, tag, MPI_COMM_WORLD, &requests[SIDES + side]);
    } else {
      if (edge->neighbour != MPI_PROC_NULL) pack(block, edge->from, edge->size, edge->packed_out);
      MPI_Isend(edge->packed_out, count, MPI_DOUBLE, edge->neighbour, tag, MPI_COMM_WORLD, &requests[SIDES + side]);
    }
  }
  MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
  if (way == MINI_DATATYPE) return;
  for (int side = 0; side < SIDES; ++side) {
    struct edge* edge = &block->edges[side];
    if (edge->neighbour != MPI_PROC_NULL) unpack(block, edge->into, edge->size, edge->packed_in);
  }
}

static void prepare(void* state, int call) {
  struct block* block = state;
  for (int row = 0; row < block->width; ++row)
    for (int column = 0; column < block->width; ++column)
      *at(block, row, column) = is_inside(block, row, column) ? value(block, row, column, call) : -1;
}

/* Corners, and what lies beyond the whole grid, nobody sends. */
static int check(void* state, int call) {
  const struct block* block = state;
  for (int row = 0; row < block->width; ++row)
    for (int column = 0; column < block->width; ++column) {
      int rows_inside = row >= DEPTH && row < DEPTH + block->n, columns_inside = column >= DEPTH && column < DEPTH + block->n;
      int side = row < DEPTH ? 0 : row >= DEPTH + block->n ? 1 : column < DEPTH ? 2 : 3;
      int comes = rows_inside != columns_inside && block->edges[side].neighbour != MPI_PROC_NULL;
      double right = (rows_inside && columns_inside) || comes ? value(block, row, column, call) : -1;
      if (*at(block, row, column) != right) return 0;
    }
  return 1;
}

static void open_edge(struct block* block, int side) {
  struct edge* edge = &block->edges[side];
  int axis = side / 2, step = side % 2 == 0 ? -1 : 1, whole[2] = {block->width, block->width};
  int there[2] = {block->where[0], block->where[1]};
  there[axis] += step;
  edge->neighbour = there[axis] < 0 || there[axis] >= block->ranks[axis] ? MPI_PROC_NULL : there[0] * block->ranks[1] + there[1];
  edge->tag = TAG + (side ^ 1);
  edge->size[axis] = DEPTH;
  edge->size[1 - axis] = block->n;
  edge->from[1 - axis] = edge->into[1 - axis] = DEPTH;
  edge->from[axis] = step < 0 ? DEPTH : block->n;
  edge->into[axis] = step < 0 ? 0 : DEPTH + block->n;
  MPI_Type_create_subarray(2, whole, edge->size, edge->from, MPI_ORDER_C, MPI_DOUBLE, &edge->out);
  MPI_Type_create_subarray(2, whole, edge->size, edge->into, MPI_ORDER_C, MPI_DOUBLE, &edge->in);
  MPI_Type_commit(&edge->out);
  MPI_Type_commit(&edge->in);
  edge->packed_out = mini_memory((long)sizeof(double) * DEPTH * block->n);
  edge->packed_in = mini_memory((long)sizeof(double) * DEPTH * block->n);
}

static void close_edge(struct edge* edge) {
  MPI_Type_free(&edge->out);
  MPI_Type_free(&edge->in);
  free(edge->packed_out);
  free(edge->packed_in);
}

static void run(int n, double seconds) {
  struct block block = {.n = n, .width = n + 2 * DEPTH};
  int rank, ranks, dims[2] = {0, 0};
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Dims_create(ranks, 2, dims); /* the larger one first */
  block.ranks[0] = dims[1];
  block.ranks[1] = dims[0];
  block.where[0] = rank / block.ranks[1];
  block.where[1] = rank % block.ranks[1];
  block.values = mini_memory((long)sizeof(double) * block.width * block.width);
  long bytes = 0;
  for (int side = 0; side < SIDES; ++side) {
    open_edge(&block, side);
    if (block.edges[side].neighbour != MPI_PROC_NULL) bytes += (long)sizeof(double) * DEPTH * n;
  }
  char name[64];
  snprintf(name, sizeof name, "halo in C, %d x %d", n, n);
  mini_race(name, bytes, seconds, &block, exchange, prepare, check);
  for (int side = 0; side < SIDES; ++side) close_edge(&block.edges[side]);
  free(block.values);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = mini_number(argc, argv, "seconds", 0.5), largest = mini_number(argc, argv, "largest", 2048);
  for (int n = LEAST; n <= largest; n *= 2) run(n, seconds);
  MPI_Finalize();
  return 0;
}
