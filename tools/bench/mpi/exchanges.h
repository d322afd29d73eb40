/* The ways in which a program with two ranks moves blocks with gaps: messages and collectives, each by the functions
 * that it is told to call. Where one rank is the root, both take turns, so that neither runs ahead. */
#ifndef LACUNA_BENCH_MPI_EXCHANGES_H
#define LACUNA_BENCH_MPI_EXCHANGES_H

#include "two_ranks.h"

/* RANKS blocks to send, RANKS to receive into, one behind the other. A block is `count` elements of a type, whose
 * extent is `span` / `count` bytes. */
struct blocks {
  int count;
  long span; /* bytes of a block in memory, its last gap too */
  char *sent, *received;
  MPI_Datatype type;
  MPI_Comm ring;       /* a circle of both ranks */
  MPI_Comm exchanging; /* of MPI_Alltoallw: ranks that had nothing to offer there do not ask there for a while */
};

typedef void (*exchange)(const struct blocks* b, const struct calls* mpi);

/* The b-th block to send, or to receive into. */
static inline char* out(const struct blocks* b, int number) { return b->sent + number * b->span; }
static inline char* in(const struct blocks* b, int number) { return b->received + number * b->span; }

static inline void ping_pong(const struct blocks* b, const struct calls* mpi) {
  if (rank == 0) mpi->Send(b->sent, b->count, b->type, peer, TAG, MPI_COMM_WORLD);
  mpi->Recv(b->received, b->count, b->type, peer, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) mpi->Send(b->sent, b->count, b->type, peer, TAG, MPI_COMM_WORLD);
}
static inline void cross(const struct blocks* b, const struct calls* mpi) {
  MPI_Request both[2];
  mpi->Irecv(b->received, b->count, b->type, peer, TAG, MPI_COMM_WORLD, &both[0]);
  mpi->Isend(b->sent, b->count, b->type, peer, TAG, MPI_COMM_WORLD, &both[1]);
  mpi->Waitall(2, both, MPI_STATUSES_IGNORE);
}
static inline void alltoall(const struct blocks* b, const struct calls* mpi) {
  mpi->Alltoall(b->sent, b->count, b->type, b->received, b->count, b->type, MPI_COMM_WORLD);
}
static inline void alltoallv(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count}, places[RANKS] = {0, b->count};
  mpi->Alltoallv(b->sent, counts, places, b->type, b->received, counts, places, b->type, MPI_COMM_WORLD);
}
static inline void alltoallw(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count}, places[RANKS] = {0, (int)b->span};
  const MPI_Datatype types[RANKS] = {b->type, b->type};
  mpi->Alltoallw(b->sent, counts, places, types, b->received, counts, places, types, b->exchanging);
}
static inline void allgather(const struct blocks* b, const struct calls* mpi) {
  mpi->Allgather(b->sent, b->count, b->type, b->received, b->count, b->type, MPI_COMM_WORLD);
}
static inline void allgatherv(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count}, places[RANKS] = {0, b->count};
  mpi->Allgatherv(b->sent, b->count, b->type, b->received, counts, places, b->type, MPI_COMM_WORLD);
}
static inline void gather(const struct blocks* b, const struct calls* mpi) {
  for (int root = 0; root < RANKS; ++root) mpi->Gather(b->sent, b->count, b->type, b->received, b->count, b->type, root, MPI_COMM_WORLD);
}
static inline void gatherv(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count}, places[RANKS] = {0, b->count};
  for (int root = 0; root < RANKS; ++root)
    mpi->Gatherv(b->sent, b->count, b->type, b->received, counts, places, b->type, root, MPI_COMM_WORLD);
}
static inline void scatter(const struct blocks* b, const struct calls* mpi) {
  for (int root = 0; root < RANKS; ++root) mpi->Scatter(b->sent, b->count, b->type, in(b, root), b->count, b->type, root, MPI_COMM_WORLD);
}
static inline void scatterv(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count}, places[RANKS] = {0, b->count};
  for (int root = 0; root < RANKS; ++root)
    mpi->Scatterv(b->sent, counts, places, b->type, in(b, root), b->count, b->type, root, MPI_COMM_WORLD);
}
static inline void bcast(const struct blocks* b, const struct calls* mpi) {
  for (int root = 0; root < RANKS; ++root) mpi->Bcast(rank == root ? b->sent : in(b, root), b->count, b->type, root, MPI_COMM_WORLD);
}
static inline void neighbor_alltoall(const struct blocks* b, const struct calls* mpi) {
  mpi->Neighbor_alltoall(b->sent, b->count, b->type, b->received, b->count, b->type, b->ring);
}
static inline void neighbor_alltoallw(const struct blocks* b, const struct calls* mpi) {
  const int counts[RANKS] = {b->count, b->count};
  const MPI_Aint places[RANKS] = {0, b->span};
  const MPI_Datatype types[RANKS] = {b->type, b->type};
  mpi->Neighbor_alltoallw(b->sent, counts, places, types, b->received, counts, places, types, b->ring);
}
static inline void neighbor_allgather(const struct blocks* b, const struct calls* mpi) {
  mpi->Neighbor_allgather(b->sent, b->count, b->type, b->received, b->count, b->type, b->ring);
}

/* Nanoseconds of one of so many exchanges, of the slower rank. */
static inline double timed(exchange of, const struct blocks* b, const struct calls* mpi, int repeats) {
  larger(0);
  double start = now_ns();
  for (int i = 0; i < repeats; ++i) of(b, mpi);
  return larger((now_ns() - start) / repeats);
}

#endif
