/* An irregular gather, as of an unstructured mesh: each rank wants from each other one a list of cells of four doubles
 * that lie anywhere. The owner sends them by an indexed block, or packs them by hand; they arrive in a row.
 *
 *   mpirun -n 4 ./gather --seconds 0.5 --largest 16384 */
#include <stdio.h>
#include <stdlib.h>

#include "mini.h"

enum { CELL = 4, LEAST = 64, TAG = 11 };

struct mesh {
  int wanted, rank, ranks;
  long cells;
  double *values, *ghosts, *packed;
  int* places; /* of what each rank wants of us, in doubles */
  MPI_Datatype* types;
  MPI_Request* requests;
};

static void exchange(void* state, enum mini_way way) {
  struct mesh* m = state;
  int count = m->wanted * CELL, begun = 0;
  for (int from = 0; from < m->ranks; ++from)
    if (from != m->rank) MPI_Irecv(m->ghosts + (long)from * count, count, MPI_DOUBLE, from, TAG, MPI_COMM_WORLD, &m->requests[begun++]);
  for (int to = 0; to < m->ranks; ++to) {
    if (to == m->rank) continue;
    if (way == MINI_DATATYPE) {
      MPI_Isend(m->values, 1, m->types[to], to, TAG, MPI_COMM_WORLD, &m->requests[begun++]);
      continue;
    }
    double* packed = m->packed + (long)to * count;
    for (int i = 0; i < m->wanted; ++i)
      for (int k = 0; k < CELL; ++k) packed[i * CELL + k] = m->values[m->places[(long)to * m->wanted + i] + k];
    MPI_Isend(packed, count, MPI_DOUBLE, to, TAG, MPI_COMM_WORLD, &m->requests[begun++]);
  }
  MPI_Waitall(begun, m->requests, MPI_STATUSES_IGNORE);
}

/* Which cell of `owner` is the i-th that `rank` wants: anywhere, the same in both, and never one twice: an odd factor
 * permutes. */
static long wanted_cell(const struct mesh* m, int owner, int rank, long i) { return (i * 40503 + 977L * rank + 31L * owner) % m->cells; }

static double value(int owner, long cell, int k, int call) { return owner * 1e7 + (double)cell * CELL + k + call * 0.125; }

static void prepare(void* state, int call) {
  struct mesh* m = state;
  for (long cell = 0; cell < m->cells; ++cell)
    for (int k = 0; k < CELL; ++k) m->values[cell * CELL + k] = value(m->rank, cell, k, call);
  for (long i = 0; i < (long)m->ranks * m->wanted * CELL; ++i) m->ghosts[i] = -1;
}

static int check(void* state, int call) {
  const struct mesh* m = state;
  const double* ghost = m->ghosts;
  for (int from = 0; from < m->ranks; ++from)
    for (long i = 0; i < m->wanted; ++i)
      for (int k = 0; k < CELL; ++k)
        if (*ghost++ != (from == m->rank ? -1 : value(from, wanted_cell(m, from, m->rank, i), k, call))) return 0;
  return 1;
}

static void run(int wanted, double seconds) {
  struct mesh m = {.wanted = wanted, .cells = 8L * wanted};
  MPI_Comm_rank(MPI_COMM_WORLD, &m.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &m.ranks);
  long received = (long)m.ranks * wanted * CELL * (long)sizeof(double);
  m.values = mini_memory(m.cells * CELL * (long)sizeof(double));
  m.ghosts = mini_memory(received);
  m.packed = mini_memory(received);
  m.places = mini_memory((long)m.ranks * wanted * (long)sizeof(int));
  m.types = mini_memory(m.ranks * (long)sizeof(MPI_Datatype));
  m.requests = mini_memory(2L * m.ranks * (long)sizeof(MPI_Request));
  for (int to = 0; to < m.ranks; ++to) {
    int* places = m.places + (long)to * wanted;
    for (int i = 0; i < wanted; ++i) places[i] = (int)wanted_cell(&m, m.rank, to, i) * CELL;
    MPI_Type_create_indexed_block(wanted, CELL, places, MPI_DOUBLE, &m.types[to]);
    MPI_Type_commit(&m.types[to]);
  }
  char name[64];
  snprintf(name, sizeof name, "gather, %d cells", wanted);
  mini_race(name, received / m.ranks * (m.ranks - 1), seconds, &m, exchange, prepare, check);
  for (int to = 0; to < m.ranks; ++to) MPI_Type_free(&m.types[to]);
  free(m.values);
  free(m.ghosts);
  free(m.packed);
  free(m.places);
  free(m.types);
  free(m.requests);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = mini_number(argc, argv, "seconds", 0.5), largest = mini_number(argc, argv, "largest", 16384);
  for (int wanted = LEAST; wanted <= largest; wanted *= 4) run(wanted, seconds);
  MPI_Finalize();
  return 0;
}
