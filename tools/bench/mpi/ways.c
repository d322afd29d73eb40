/* Times the ways in which data with gaps travels between two ranks of an MPI program, for `lacuna guide --mpi`: by the
 * MPI's own datatypes, packed by Lacuna, through memory that both ranks reach. The preloaded library is told which.
 *
 *   mpirun -n 2 env LD_PRELOAD=liblacuna_mpi_ABI.so LACUNA_MPI_DECODE=1 ./ways MILLISECONDS BYTES,... RUN,...
 *
 * MILLISECONDS: about how long the ways of one use race at one size. Rank 0 prints a line of JSON about the MPI, one
 * for each size, and a last one:
 *
 *   {"version": "Open MPI v5.0.11", "cells": 27}
 *   {"bytes": 256, "run": 8, "ns": {"send": {"regular": {"host": 812.5, "packed": 640.1, "offered": 0.9e3}, ...}, ...}}
 *   {"ends": 27}
 *
 * A time is the median of batches, of the slower rank, for one message or one call. */
#define _GNU_SOURCE
#include "two_ranks.h"

enum { WORD = sizeof(uint64_t), MOST_SIZES = 64 };
enum { FEWEST_ROUNDS = 5, SLOW_ROUNDS = 3, MOST_ROUNDS = 51, MOST_REPEATS = 200, WARM = 2 };
enum way { HOST, PACKED, OFFERED, WAYS };
enum { BY_HOST = 1 << HOST, BY_PACKING = 1 << PACKED, BY_OFFER = 1 << OFFERED };

static const char* const way_names[WAYS] = {"host", "packed", "offered"};
/* Of a batch about, so that what ranks leave a barrier apart is little of it. A fraction of a race, within bounds. */
static const double batch_of_race = 1 / 400.0, shortest_batch_ns = 20e3, longest_batch_ns = 100e3;
static double batch_ns;
/* A way whose fastest exchange takes so long has few rounds: one that took so long once lost its CPU. */
static const double slow_ns = 50e6;
/* After a line, for its reader: on two CPUs the reader belongs to the measurement. */
static const struct timespec pause_for_reader = {0, 20000000};
static const uint64_t untouched = 0xa5a5a5a5a5a5a5a5;

/* Ranks that had nothing to offer on a communicator do not ask there for a while: each way has its own. */
static MPI_Comm exchanging[WAYS], rings[WAYS];
static enum way taken;
static int (*force_way)(const char*);

/* Blocks of one size: RANKS to send, RANKS to receive into, of words. */
struct piece {
  long runs, run; /* words of a run */
  long span;      /* of a block in memory, its last gap too */
  long* places;   /* of runs in a block */
  uint64_t *sent, *received;
  MPI_Datatype type;
};

/* Which block a rank has received as its b-th: `from` which rank, and which of that rank's. */
enum arrival { FIRST_OF_PEER, FIRST_OF_EACH, MINE_OF_EACH, FIRST_OF_PEER_IN_ITS_PLACE, BOTH_OF_PEER };

struct use {
  const char* name;
  void (*exchange)(const struct piece* p);
  int calls; /* of MPI, or messages on the way, one after the other: what an exchange's time is divided by */
  int listed;
  unsigned ways;
  enum arrival arrival;
};

/* The b-th block to send, or to receive into. */
static uint64_t* out(const struct piece* p, int b) { return p->sent + b * p->span; }
static uint64_t* in(const struct piece* p, int b) { return p->received + b * p->span; }

/* --- The uses. Where one rank is the root, both take turns, so that neither runs ahead. --- */

static void ping_pong(const struct piece* p) {
  if (rank == 0) MPI_Send(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD);
  MPI_Recv(p->received, 1, p->type, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD);
}
static void cross(const struct piece* p) {
  MPI_Request both[2];
  MPI_Irecv(p->received, 1, p->type, peer, TAG, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}
static const int one_each[RANKS] = {1, 1}, in_turn[RANKS] = {0, 1};
static void alltoall(const struct piece* p) { MPI_Alltoall(p->sent, 1, p->type, p->received, 1, p->type, MPI_COMM_WORLD); }
static void alltoallv(const struct piece* p) {
  MPI_Alltoallv(p->sent, one_each, in_turn, p->type, p->received, one_each, in_turn, p->type, exchanging[taken]);
}
static void alltoallw(const struct piece* p) {
  const int places[RANKS] = {0, (int)(p->span * WORD)};
  const MPI_Datatype types[RANKS] = {p->type, p->type};
  MPI_Alltoallw(p->sent, one_each, places, types, p->received, one_each, places, types, exchanging[taken]);
}
static void allgather(const struct piece* p) { MPI_Allgather(p->sent, 1, p->type, p->received, 1, p->type, MPI_COMM_WORLD); }
static void allgatherv(const struct piece* p) {
  MPI_Allgatherv(p->sent, 1, p->type, p->received, one_each, in_turn, p->type, exchanging[taken]);
}
static void gather(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Gather(p->sent, 1, p->type, p->received, 1, p->type, root, MPI_COMM_WORLD);
}
static void gatherv(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root)
    MPI_Gatherv(p->sent, 1, p->type, p->received, one_each, in_turn, p->type, root, exchanging[taken]);
}
static void scatter(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Scatter(p->sent, 1, p->type, in(p, root), 1, p->type, root, MPI_COMM_WORLD);
}
static void scatterv(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root)
    MPI_Scatterv(p->sent, one_each, in_turn, p->type, in(p, root), 1, p->type, root, exchanging[taken]);
}
static void bcast(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Bcast(rank == root ? p->sent : in(p, root), 1, p->type, root, MPI_COMM_WORLD);
}
static void neighbors(const struct piece* p) { MPI_Neighbor_alltoall(p->sent, 1, p->type, p->received, 1, p->type, rings[taken]); }

/* guide::MpiUse and mpi_way_serves() of lacuna/guide/mpi_ways.hpp, in their order. */
static const struct use uses[] = {
    {"send", ping_pong, 2, 1, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_PEER},
    {"later", cross, 1, 1, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_PEER},
    {"alltoall", alltoall, 1, 0, BY_HOST | BY_PACKING | BY_OFFER, MINE_OF_EACH},
    {"alltoallv", alltoallv, 1, 0, BY_HOST | BY_PACKING | BY_OFFER, MINE_OF_EACH},
    {"alltoallw", alltoallw, 1, 0, BY_HOST | BY_OFFER, MINE_OF_EACH},
    {"allgather", allgather, 1, 0, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_EACH},
    {"allgatherv", allgatherv, 1, 0, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_EACH},
    {"gather", gather, RANKS, 0, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_EACH},
    {"gatherv", gatherv, RANKS, 0, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_EACH},
    {"scatter", scatter, RANKS, 0, BY_HOST | BY_PACKING | BY_OFFER, MINE_OF_EACH},
    {"scatterv", scatterv, RANKS, 0, BY_HOST | BY_PACKING | BY_OFFER, MINE_OF_EACH},
    {"bcast", bcast, RANKS, 0, BY_HOST | BY_PACKING | BY_OFFER, FIRST_OF_PEER_IN_ITS_PLACE},
    {"neighbor", neighbors, 1, 0, BY_HOST | BY_PACKING | BY_OFFER, BOTH_OF_PEER},
};
enum { USES = sizeof uses / sizeof uses[0] };

/* --- The ways. --- */

static void take(enum way way) {
  if (force_way(way_names[way]) != 0) {
    fprintf(stderr, "the preloaded library knows no way '%s'\n", way_names[way]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  taken = way;
  larger(0);
}

/* --- What is sent. --- */

/* The k-th word of the block-th block of a rank. */
static uint64_t word(int of, int block, long k, int call) {
  return ((uint64_t)(of * RANKS + block + 1) << 56) ^ ((uint64_t)call << 48) ^ (uint64_t)k;
}

static void fill(const struct use* use, const struct piece* p, int call) {
  for (long i = 0; i < RANKS * p->span; ++i) p->sent[i] = p->received[i] = untouched;
  for (int b = 0; b < RANKS; ++b) {
    /* On a ring of two, MPIs differ in which of the peer's blocks comes first: they are alike there. */
    int number = use->arrival == BOTH_OF_PEER ? 0 : b;
    for (long i = 0; i < p->runs; ++i)
      for (long k = 0; k < p->run; ++k) out(p, b)[p->places[i] + k] = word(rank, number, i * p->run + k, call);
  }
}

/* Returns whose block comes as the b-th, or -1. */
static int origin(enum arrival arrival, int b, int* of_it) {
  *of_it = arrival == MINE_OF_EACH ? rank : 0;
  switch (arrival) {
    case FIRST_OF_PEER: return b == 0 ? peer : -1;
    case FIRST_OF_PEER_IN_ITS_PLACE: return b == peer ? peer : -1;
    case BOTH_OF_PEER: return peer;
    default: return b;
  }
}

static int right(const struct use* use, const struct piece* p, int call) {
  for (int b = 0; b < RANKS; ++b) {
    int of_it = 0, from = origin(use->arrival, b, &of_it);
    long at = 0;
    for (long i = 0; from >= 0 && i < p->runs; ++i) {
      for (; at < p->places[i]; ++at)
        if (in(p, b)[at] != untouched) return 0;
      for (long k = 0; k < p->run; ++k, ++at)
        if (in(p, b)[at] != word(from, of_it, i * p->run + k, call)) return 0;
    }
    for (; at < p->span; ++at)
      if (in(p, b)[at] != untouched) return 0;
  }
  return 1;
}

static void verify(const struct use* use, const struct piece* p, enum way way, int call) {
  fill(use, p, call);
  larger(0);
  use->exchange(p);
  int wrong = !right(use, p, call);
  if (wrong)
    fprintf(stderr, "%s of %ld bytes in runs of %ld, %s: wrong bytes\n", use->name, p->runs * p->run * WORD, p->run * WORD, way_names[way]);
  if (larger(wrong) != 0) MPI_Abort(MPI_COMM_WORLD, 1);
}

/* --- The race. --- */

/* Nanoseconds of one of so many exchanges, of the slower rank. */
static double timed(const struct use* use, const struct piece* p, int repeats) {
  larger(0);
  double start = now_ns();
  for (int i = 0; i < repeats; ++i) use->exchange(p);
  return larger((now_ns() - start) / repeats);
}

/* One way in a race. */
struct runner {
  enum way way;
  int repeats, rounds;
  double least, ns[MOST_ROUNDS];
};

/* Verifies the way, and finds how many exchanges are a batch. */
static void warm_up(const struct use* use, const struct piece* p, struct runner* r) {
  take(r->way);
  verify(use, p, r->way, 1);
  r->repeats = 1;
  for (int i = 0; i < WARM; ++i) {
    double ns = timed(use, p, r->repeats), needed = batch_ns / ns;
    if (i == 0 || ns < r->least) r->least = ns;
    r->repeats = needed < 1 ? 1 : needed < MOST_REPEATS ? (int)needed + 1 : MOST_REPEATS;
  }
}

/* A batch of the way. The first exchange after another way is not counted, unless it takes as long as a batch. */
static double turn(const struct use* use, const struct piece* p, struct runner* r) {
  take(r->way);
  if (r->repeats > 1) use->exchange(p);
  double ns = timed(use, p, r->repeats);
  r->ns[r->rounds++] = ns;
  if (ns < r->least) r->least = ns;
  return ns * r->repeats;
}

/* Nanoseconds of each way of a use; 0: the way is not there. */
static void race(const struct use* use, const struct piece* p, double milliseconds, double* found) {
  static struct runner runners[WAYS];
  int order[WAYS], n = 0;
  memset(runners, 0, sizeof runners);
  for (int way = 0; way < WAYS; ++way) {
    found[way] = 0;
    if ((use->ways >> way & 1) == 0) continue;
    order[n] = n;
    runners[n].way = (enum way)way;
    warm_up(use, p, &runners[n++]);
  }
  double spent = 0;
  for (int round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || spent < milliseconds * 1e6); ++round) {
    for (int i = n - 1; i > 0; --i) { /* in another order each time */
      int j = (int)drawn((uint32_t)i + 1), other = order[i];
      order[i] = order[j];
      order[j] = other;
    }
    for (int i = 0; i < n; ++i) {
      struct runner* r = &runners[order[i]];
      if (r->rounds < SLOW_ROUNDS || r->least < slow_ns) spent += turn(use, p, r);
    }
  }
  for (int i = 0; i < n; ++i) {
    take(runners[i].way);
    verify(use, p, runners[i].way, 2);
    found[runners[i].way] = median(runners[i].ns, runners[i].rounds) / use->calls;
  }
}

/* --- Sizes. --- */

/* Runs as far apart as they are long; or, listed, with gaps of another length each, on average a little longer. */
static void make_piece(struct piece* p, long bytes, long run, int listed) {
  p->run = run / WORD;
  p->runs = bytes / run;
  p->places = memory(p->runs * (long)sizeof *p->places);
  MPI_Aint* places = memory(p->runs * (long)sizeof *places);
  long at = 0;
  for (long i = 0; i < p->runs; ++i) {
    p->places[i] = at;
    places[i] = at * WORD;
    at += p->run + (listed ? 1 + (long)drawn((uint32_t)(2 * p->run + 1)) : p->run);
  }
  p->span = at;
  MPI_Datatype runs;
  if (listed)
    MPI_Type_create_hindexed_block((int)p->runs, (int)p->run, places, MPI_DOUBLE, &runs);
  else
    MPI_Type_vector((int)p->runs, (int)p->run, 2 * (int)p->run, MPI_DOUBLE, &runs);
  MPI_Type_create_resized(runs, 0, p->span * WORD, &p->type);
  MPI_Type_commit(&p->type);
  MPI_Type_free(&runs);
  free(places);
  p->sent = memory(RANKS * p->span * WORD);
  p->received = memory(RANKS * p->span * WORD);
}

static void free_piece(struct piece* p) {
  free(p->places);
  free(p->sent);
  free(p->received);
  MPI_Type_free(&p->type);
}

static void print_form(const char* name, const double* ns) {
  const char* between = "";
  if (rank == 0) printf("\"%s\": {", name);
  for (int way = 0; way < WAYS; ++way) {
    if (rank != 0 || ns[way] == 0) continue;
    printf("%s\"%s\": %.1f", between, way_names[way], ns[way]);
    between = ", ";
  }
  if (rank == 0) printf("}");
}

static void measure_cell(long bytes, long run, double milliseconds) {
  struct piece regular, listed;
  make_piece(&regular, bytes, run, 0);
  make_piece(&listed, bytes, run, 1);
  if (rank == 0) printf("{\"bytes\": %ld, \"run\": %ld, \"ns\": {", bytes, run);
  for (int i = 0; i < USES; ++i) {
    double ns[WAYS];
    if (rank == 0) printf("%s\"%s\": {", i > 0 ? ", " : "", uses[i].name);
    race(&uses[i], &regular, milliseconds, ns);
    print_form("regular", ns);
    if (uses[i].listed) {
      race(&uses[i], &listed, milliseconds, ns);
      if (rank == 0) printf(", ");
      print_form("listed", ns);
    }
    if (rank == 0) printf("}");
  }
  if (rank == 0) {
    printf("}}\n");
    fflush(stdout);
    nanosleep(&pause_for_reader, NULL);
  }
  free_piece(&regular);
  free_piece(&listed);
}

/* --- The job. --- */

/* A list of multiples of a word; 0: it is none. */
static int sizes_of(const char* text, long* sizes) {
  int n = 0;
  while (n < MOST_SIZES) {
    char* end;
    sizes[n] = strtol(text, &end, 10);
    if (end == text || sizes[n] <= 0 || sizes[n] % WORD != 0) return 0;
    ++n;
    if (*end == '\0') return n;
    if (*end != ',') return 0;
    text = end + 1;
  }
  return 0;
}

/* The first line of what the library says of itself, as text of JSON. */
static void print_version(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  printf("{\"version\": \"");
  for (const char* c = version; *c != '\0' && *c != '\n' && *c != '\r'; ++c) {
    if (*c == '"' || *c == '\\' || *c == '\t') putchar('\\');
    putchar(*c == '\t' ? 't' : *c);
  }
}

static int usage(const char* why) {
  fprintf(stderr, "ways MILLISECONDS BYTES,... RUN,...: %s\n", why);
  return 2;
}

int main(int argc, char** argv) {
  long bytes[MOST_SIZES], runs[MOST_SIZES];
  if (argc != 4) return usage("three arguments");
  double milliseconds = strtod(argv[1], NULL);
  batch_ns = milliseconds * 1e6 * batch_of_race;
  if (batch_ns > longest_batch_ns) batch_ns = longest_batch_ns;
  if (!(batch_ns > shortest_batch_ns)) batch_ns = shortest_batch_ns;
  int sizes = sizes_of(argv[2], bytes), lengths = sizes_of(argv[3], runs), cells = 0;
  if (sizes == 0 || lengths == 0) return usage("sizes are multiples of 8, with commas between them");
  *(void**)&force_way = dlsym(RTLD_DEFAULT, "lacuna_mpi_force_way");
  if (force_way == NULL) return usage("Lacuna's library is not preloaded, or it is of another version");
  MPI_Init(&argc, &argv);
  const int ranks = RANKS, around = 1;
  begin_two_ranks("ways");
  for (int way = 0; way < WAYS; ++way) {
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &rings[way]);
    MPI_Comm_dup(MPI_COMM_WORLD, &exchanging[way]);
  }
  for (int i = 0; i < sizes * lengths; ++i) cells += 2 * runs[i % lengths] <= bytes[i / lengths];
  if (rank == 0) {
    print_version();
    printf("\", \"cells\": %d}\n", cells);
    fflush(stdout);
  }
  for (int i = 0; i < sizes * lengths; ++i)
    if (2 * runs[i % lengths] <= bytes[i / lengths]) measure_cell(bytes[i / lengths], runs[i % lengths], milliseconds);
  if (rank == 0) printf("{\"ends\": %d}\n", cells);
  fflush(stdout);
  for (int way = 0; way < WAYS; ++way) {
    MPI_Comm_free(&rings[way]);
    MPI_Comm_free(&exchanging[way]);
  }
  MPI_Finalize();
  return 0;
}
