/* The uses that `ways` times, and the ways that the preloaded library is told to take. */
#ifndef LACUNA_BENCH_MPI_WAYS_USES_H
#define LACUNA_BENCH_MPI_WAYS_USES_H

#include "ways_piece.h"

/* Those of guide::MpiWay; then chunks of a message to another node, of one length each. */
enum { HOST, PACKED, OFFERED, NODE_WAYS, MOST_CHUNKS = 8, WAYS = NODE_WAYS + MOST_CHUNKS };
enum { BY_HOST = 1 << HOST, BY_PACKING = 1 << PACKED, BY_OFFER = 1 << OFFERED };

/* The status with which the program then ends: launchers may lose what ranks say, but not that. */
enum { WRONG_BYTES = 33 };

static char way_names[WAYS][24] = {"host", "packed", "offered"};

/* Ranks that had nothing to offer on a communicator do not ask there for a while: each way has its own. */
static MPI_Comm exchanging[NODE_WAYS], rings[NODE_WAYS];
static int taken;
static int (*force_way)(const char*);
static double (*line_ns)(void);

struct use {
  const char* name;
  void (*exchange)(const struct piece* p);
  int calls; /* of MPI, or messages on the way, one after the other: what an exchange's time is divided by */
  int listed;
  unsigned ways;
  enum arrival arrival;
};

/* --- The uses. Where one rank is the root, both take turns, so that neither runs ahead. --- */

static inline void ping_pong(const struct piece* p) {
  if (rank == 0) MPI_Send(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD);
  MPI_Recv(p->received, 1, p->type, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD);
}
static inline void cross(const struct piece* p) {
  MPI_Request both[2];
  MPI_Irecv(p->received, 1, p->type, peer, TAG, MPI_COMM_WORLD, &both[0]);
  MPI_Isend(p->sent, 1, p->type, peer, TAG, MPI_COMM_WORLD, &both[1]);
  MPI_Waitall(2, both, MPI_STATUSES_IGNORE);
}
static inline void ping_pong_of_words(const struct piece* p) {
  const int words = (int)(p->bytes / WORD);
  if (rank == 0) MPI_Send(p->sent, words, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
  MPI_Recv(p->received, words, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(p->sent, words, MPI_DOUBLE, peer, TAG, MPI_COMM_WORLD);
}
static const int one_each[RANKS] = {1, 1}, in_turn[RANKS] = {0, 1};
static inline void alltoall(const struct piece* p) { MPI_Alltoall(p->sent, 1, p->type, p->received, 1, p->type, MPI_COMM_WORLD); }
static inline void alltoallv(const struct piece* p) {
  MPI_Alltoallv(p->sent, one_each, in_turn, p->type, p->received, one_each, in_turn, p->type, exchanging[taken]);
}
static inline void alltoallw(const struct piece* p) {
  const int places[RANKS] = {0, (int)(p->span)};
  const MPI_Datatype types[RANKS] = {p->type, p->type};
  MPI_Alltoallw(p->sent, one_each, places, types, p->received, one_each, places, types, exchanging[taken]);
}
static inline void allgather(const struct piece* p) { MPI_Allgather(p->sent, 1, p->type, p->received, 1, p->type, MPI_COMM_WORLD); }
static inline void allgatherv(const struct piece* p) {
  MPI_Allgatherv(p->sent, 1, p->type, p->received, one_each, in_turn, p->type, exchanging[taken]);
}
static inline void gather(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Gather(p->sent, 1, p->type, p->received, 1, p->type, root, MPI_COMM_WORLD);
}
static inline void gatherv(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root)
    MPI_Gatherv(p->sent, 1, p->type, p->received, one_each, in_turn, p->type, root, exchanging[taken]);
}
static inline void scatter(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Scatter(p->sent, 1, p->type, in(p, root), 1, p->type, root, MPI_COMM_WORLD);
}
static inline void scatterv(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root)
    MPI_Scatterv(p->sent, one_each, in_turn, p->type, in(p, root), 1, p->type, root, exchanging[taken]);
}
static inline void bcast(const struct piece* p) {
  for (int root = 0; root < RANKS; ++root) MPI_Bcast(rank == root ? p->sent : in(p, root), 1, p->type, root, MPI_COMM_WORLD);
}
static inline void neighbors(const struct piece* p) { MPI_Neighbor_alltoall(p->sent, 1, p->type, p->received, 1, p->type, rings[taken]); }

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

/* Of a message without gaps, of whole words. */
static const struct use contiguous = {"contiguous", ping_pong_of_words, 2, 0, BY_HOST | BY_OFFER, FIRST_OF_PEER};

static inline void begin_uses(void) {
  const int ranks = RANKS, around = 1;
  for (int way = 0; way < NODE_WAYS; ++way) {
    MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &around, 0, &rings[way]);
    MPI_Comm_dup(MPI_COMM_WORLD, &exchanging[way]);
  }
}

static inline void end_uses(void) {
  for (int way = 0; way < NODE_WAYS; ++way) {
    MPI_Comm_free(&rings[way]);
    MPI_Comm_free(&exchanging[way]);
  }
}

static inline void take(int way) {
  if (force_way(way_names[way]) != 0) {
    fprintf(stderr, "the preloaded library knows no way '%s'\n", way_names[way]);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  taken = way;
  larger(0);
}

static inline void verify(const struct use* use, const struct piece* p, int way, int call) {
  fill(p, use->arrival, call);
  larger(0);
  use->exchange(p);
  int wrong = !right(p, use->arrival, call);
  if (wrong) fprintf(stderr, "%s of %ld bytes in %ld runs, %s: wrong bytes\n", use->name, p->bytes, p->runs, way_names[way]);
  if (larger(wrong) != 0) MPI_Abort(MPI_COMM_WORLD, WRONG_BYTES);
}

#endif
