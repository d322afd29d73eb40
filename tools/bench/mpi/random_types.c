/* Races datatypes that are drawn by a seed, for `lacuna bench mpi --random`: each through messages and collectives, by
 * the functions of the preloaded library and by the host's own, which a plain program calls, by turns in one job.
 *
 *   mpirun -n 2 env LD_PRELOAD=liblacuna_mpi_ABI.so ./random_types --seed 1 --first 0 --types 10 --milliseconds 40
 *
 * Rank 0 prints a line of JSON for each exchange of each type; times are of the slower rank, by round, for one message
 * or one call:
 *
 *   {"use": "MPI_Gather", "number": 3, "type": "vector of struct of int", "bytes": 4096, "runs": 64, "count": 1,
 *    "plain_us": [...], "preloaded_us": [...], "send_in": "liblacuna_mpi_openmpi.so"} */
#define _GNU_SOURCE
#include "drawn_type.h"
#include "exchanges.h"

enum { FEWEST_ROUNDS = 9, MOST_ROUNDS = 301, MOST_REPEATS = 200, WARM = 3, SIDES = 2, UNTOUCHED = 0xa5 };
enum side { PLAIN, PRELOADED };
static const double batch_ns = 60e3;
static const char* const side_names[SIDES] = {"plain", "preloaded"};

static struct calls calls[SIDES];

static const struct use {
  const char* name;
  exchange exchange;
  int calls; /* what an exchange's time is divided by */
  enum arrival arrival;
} uses[] = {
    {"MPI_Send", ping_pong, 2, FIRST_OF_PEER},
    {"MPI_Isend", cross, 1, FIRST_OF_PEER},
    {"MPI_Alltoall", alltoall, 1, MINE_OF_EACH},
    {"MPI_Alltoallv", alltoallv, 1, MINE_OF_EACH},
    {"MPI_Alltoallw", alltoallw, 1, MINE_OF_EACH},
    {"MPI_Allgather", allgather, 1, FIRST_OF_EACH},
    {"MPI_Allgatherv", allgatherv, 1, FIRST_OF_EACH},
    {"MPI_Gather", gather, RANKS, FIRST_OF_EACH},
    {"MPI_Gatherv", gatherv, RANKS, FIRST_OF_EACH},
    {"MPI_Scatter", scatter, RANKS, MINE_OF_EACH},
    {"MPI_Scatterv", scatterv, RANKS, MINE_OF_EACH},
    {"MPI_Bcast", bcast, RANKS, FIRST_OF_PEER_IN_ITS_PLACE},
    {"MPI_Neighbor_alltoall", neighbor_alltoall, 1, BOTH_OF_PEER},
    {"MPI_Neighbor_alltoallw", neighbor_alltoallw, 1, BOTH_OF_PEER},
    {"MPI_Neighbor_allgather", neighbor_allgather, 1, BOTH_OF_PEER},
};
enum { USES = sizeof uses / sizeof uses[0] };

/* --- What is sent. --- */

/* Bytes of a stream that no other block, rank or call has. */
static void write_block(char* to, const struct drawn_type* type, const struct blocks* b, int of, int block, int call) {
  uint64_t state = ((uint64_t)of << 40) ^ ((uint64_t)block << 32) ^ (uint64_t)call;
  for (int element = 0; element < b->count; ++element)
    for (long i = 0; i < type->runs; ++i)
      for (long k = 0; k < type->run[i].bytes; ++k) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        to[element * type->extent + type->run[i].at + k] = (char)(state >> 56);
      }
}

/* On a ring of two, MPIs differ in which of the peer's blocks comes first: they are alike there. */
static int number_of(const struct use* use, int block) { return use->arrival == BOTH_OF_PEER ? 0 : block; }

static void verify(const struct use* use, const struct drawn_type* type, const struct blocks* b, enum side side, int call) {
  size_t room = (size_t)(RANKS * b->span);
  memset(b->sent, UNTOUCHED, room);
  memset(b->received, UNTOUCHED, room);
  for (int block = 0; block < RANKS; ++block) write_block(out(b, block), type, b, rank, number_of(use, block), call);
  char* expected = memory((long)room);
  memset(expected, UNTOUCHED, room);
  for (int block = 0; block < RANKS; ++block) {
    int of_it = 0, from = origin(use->arrival, block, &of_it);
    if (from >= 0) write_block(expected + block * b->span, type, b, from, of_it, call);
  }
  larger(0);
  use->exchange(b, &calls[side]);
  int wrong = memcmp(expected, b->received, room) != 0;
  free(expected);
  if (wrong) {
    fprintf(stderr, "%s, ", use->name);
    print_name(stderr, type);
    fprintf(stderr, ", %s: wrong bytes\n", side_names[side]);
  }
  if (larger(wrong) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- The race. --- */

/* Verifies, and returns how many exchanges are a batch. */
static int warm_up(const struct use* use, const struct drawn_type* type, const struct blocks* b, enum side side) {
  verify(use, type, b, side, 1 + side);
  int repeats = 1;
  for (int i = 0; i < WARM; ++i) {
    double needed = batch_ns / timed(use->exchange, b, &calls[side], repeats);
    repeats = needed < 1 ? 1 : needed < MOST_REPEATS ? (int)needed + 1 : MOST_REPEATS;
  }
  return repeats;
}

static void print_times(const char* side, const double* us, int rounds) {
  printf("\"%s_us\": [", side);
  for (int i = 0; i < rounds; ++i) printf("%s%.4f", i > 0 ? ", " : "", us[i]);
  printf("], ");
}

static void race(const struct use* use, const struct drawn_type* type, const struct blocks* b, int number, double milliseconds) {
  static double us[SIDES][MOST_ROUNDS];
  int repeats[SIDES], order[SIDES] = {PLAIN, PRELOADED}, rounds = 0;
  double spent = 0;
  for (int side = 0; side < SIDES; ++side) repeats[side] = warm_up(use, type, b, (enum side)side);
  while (rounds < MOST_ROUNDS && (rounds < FEWEST_ROUNDS || spent < milliseconds * 1e6)) {
    shuffle(order, SIDES);
    for (int i = 0; i < SIDES; ++i) {
      int side = order[i];
      if (repeats[side] > 1) use->exchange(b, &calls[side]); /* the first after the other side's differs */
      double ns = timed(use->exchange, b, &calls[side], repeats[side]);
      spent += ns * repeats[side];
      us[side][rounds] = ns / 1e3 / use->calls;
    }
    ++rounds;
  }
  for (int side = 0; side < SIDES; ++side) verify(use, type, b, (enum side)side, 3 + side);
  if (rank != 0) return;
  printf("{\"use\": \"%s\", \"number\": %d, \"type\": \"", use->name, number);
  print_name(stdout, type);
  printf("\", \"bytes\": %ld, \"runs\": %ld, \"count\": %d, ", type->bytes * b->count, type->runs * b->count, b->count);
  for (int side = 0; side < SIDES; ++side) print_times(side_names[side], us[side], rounds);
  printf("\"send_in\": \"%s\"}\n", send_in());
  fflush(stdout);
}

static void race_type(uint64_t seed, int number, double milliseconds) {
  struct drawn_type type = draw_type(seed, number);
  struct blocks b = {.count = type.bytes < 65536 && drawn(3) == 0 ? 2 + (int)drawn(4) : 1, .type = type.type};
  int around = 1, ranks = RANKS;
  b.span = b.count * type.extent;
  b.sent = memory(RANKS * b.span);
  b.received = memory(RANKS * b.span);
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &b.ring);
  MPI_Comm_dup(MPI_COMM_WORLD, &b.exchanging);
  for (int i = 0; i < USES; ++i) race(&uses[i], &type, &b, number, milliseconds);
  MPI_Comm_free(&b.exchanging);
  MPI_Comm_free(&b.ring);
  free(b.sent);
  free(b.received);
  free_type(&type);
}

/* --- The job. --- */

int main(int argc, char** argv) {
  const uint64_t seed = (uint64_t)argument(argc, argv, "--seed");
  const int first = (int)argument(argc, argv, "--first"), types = (int)argument(argc, argv, "--types");
  const double milliseconds = argument(argc, argv, "--milliseconds");
  calls[PRELOADED] = preloaded_calls;
  if (!find_plain_calls(&calls[PLAIN])) {
    fprintf(stderr, "random_types: Lacuna's library is not preloaded, or it is of another version\n");
    return 2;
  }
  setenv("LACUNA_MPI_DECODE", "1", 0); /* the first use of a type is like all others */
  MPI_Init(&argc, &argv);
  begin_two_ranks("random_types");
  for (int number = first; number < first + types; ++number) race_type(seed, number, milliseconds);
  MPI_Finalize();
  return 0;
}
