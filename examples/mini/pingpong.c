/* Vectors to and fro between two ranks, as many bytes of gaps as of data; by datatype or packed by hand.
 *
 *   mpirun -n 2 ./pingpong --seconds 0.5 --largest 16777216 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mini.h"

enum { LEAST = 65536, STEP = 4, TAG = 3 };

struct vector {
  long blocks, block; /* bytes of one */
  int rank, ranks;
  char *sent, *received, *packed;
  MPI_Datatype type;
};

static void send(struct vector* v, enum mini_way way, int to) {
  if (way == MINI_DATATYPE) {
    MPI_Send(v->sent, 1, v->type, to, TAG, MPI_COMM_WORLD);
    return;
  }
  for (long i = 0; i < v->blocks; ++i) memcpy(v->packed + i * v->block, v->sent + 2 * i * v->block, (size_t)v->block);
  MPI_Send(v->packed, (int)(v->blocks * v->block), MPI_BYTE, to, TAG, MPI_COMM_WORLD);
}

static void receive(struct vector* v, enum mini_way way, int from) {
  if (way == MINI_DATATYPE) {
    MPI_Recv(v->received, 1, v->type, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return;
  }
  MPI_Recv(v->packed, (int)(v->blocks * v->block), MPI_BYTE, from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (long i = 0; i < v->blocks; ++i) memcpy(v->received + 2 * i * v->block, v->packed + i * v->block, (size_t)v->block);
}

/* There and back. */
static void exchange(void* state, enum mini_way way) {
  struct vector* v = state;
  int other = v->rank ^ 1;
  if (other >= v->ranks) return;
  if (v->rank < other) {
    send(v, way, other);
    receive(v, way, other);
  } else {
    receive(v, way, other);
    send(v, way, other);
  }
}

static char value(int rank, long at, int call) { return (char)(at * 131 + at / 251 + rank * 17 + call); }

static void prepare(void* state, int call) {
  struct vector* v = state;
  for (long i = 0; i < 2 * v->blocks * v->block; ++i) {
    v->sent[i] = value(v->rank, i, call);
    v->received[i] = value(v->rank, i, call + 100);
  }
}

/* Gaps are as they were. */
static int check(void* state, int call) {
  const struct vector* v = state;
  int other = v->rank ^ 1;
  for (long i = 0; i < 2 * v->blocks * v->block; ++i) {
    int comes = other < v->ranks && i % (2 * v->block) < v->block;
    if (v->received[i] != (comes ? value(other, i, call) : value(v->rank, i, call + 100))) return 0;
  }
  return 1;
}

static void run(long bytes, long block, double seconds) {
  struct vector v = {.blocks = bytes / block, .block = block};
  MPI_Comm_rank(MPI_COMM_WORLD, &v.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &v.ranks);
  v.sent = mini_memory(2 * bytes);
  v.received = mini_memory(2 * bytes);
  v.packed = mini_memory(bytes);
  MPI_Type_vector((int)v.blocks, (int)block, (int)(2 * block), MPI_BYTE, &v.type);
  MPI_Type_commit(&v.type);
  char name[64];
  snprintf(name, sizeof name, "pingpong, %ld KiB in blocks of %ld B", bytes / 1024, block);
  mini_race(name, bytes, seconds, &v, exchange, prepare, check);
  MPI_Type_free(&v.type);
  free(v.sent);
  free(v.received);
  free(v.packed);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  double seconds = mini_number(argc, argv, "seconds", 0.5), largest = mini_number(argc, argv, "largest", 16777216);
  for (long bytes = LEAST; bytes <= largest; bytes *= STEP)
    for (long block = 64; block <= 1024; block *= 16) run(bytes, block, seconds);
  MPI_Finalize();
  return 0;
}
