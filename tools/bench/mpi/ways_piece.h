/* The data whose ways `ways` times: blocks of runs at places, the datatype that means them, and what they hold, so that
 * each byte and each gap that arrives is looked at. */
#ifndef LACUNA_BENCH_MPI_WAYS_PIECE_H
#define LACUNA_BENCH_MPI_WAYS_PIECE_H

#include "two_ranks.h"

enum { WORD = sizeof(uint64_t), MOST_LOOPS = 8 };
static const unsigned char untouched = 0xa5;

/* Bytes side by side. */
struct piece_run {
  long at, bytes;
};

/* Blocks of one size: RANKS to send, RANKS to receive into. */
struct piece {
  long bytes, runs;
  long span; /* of a block in memory, its last gap too */
  struct piece_run* run;
  unsigned char *sent, *received;
  MPI_Datatype type; /* of a block */
};

/* The b-th block to send, or to receive into. */
static inline unsigned char* out(const struct piece* p, int b) { return p->sent + b * p->span; }
static inline unsigned char* in(const struct piece* p, int b) { return p->received + b * p->span; }

/* --- What they hold. --- */

/* The k-th byte of the block-th block of a rank. */
static inline unsigned char content(int of, int block, long k, int call) {
  uint64_t word = ((uint64_t)(of * RANKS + block + 1) << 56) ^ ((uint64_t)call << 48) ^ (uint64_t)(k / WORD);
  return (unsigned char)(word * 0x9e3779b97f4a7c15U >> 8 * (k % WORD));
}

static inline void fill(const struct piece* p, enum arrival arrival, int call) {
  memset(p->sent, untouched, (size_t)(RANKS * p->span));
  memset(p->received, untouched, (size_t)(RANKS * p->span));
  for (int b = 0; b < RANKS; ++b) {
    /* On a ring of two, MPIs differ in which of the peer's blocks comes first: they are alike there. */
    int number = arrival == BOTH_OF_PEER ? 0 : b;
    long k = 0;
    for (long i = 0; i < p->runs; ++i)
      for (long j = 0; j < p->run[i].bytes; ++j) out(p, b)[p->run[i].at + j] = content(rank, number, k++, call);
  }
}

/* Whether each byte is what it has to be. Takes what came out of the block, so that only gaps are left. */
static inline int right(const struct piece* p, enum arrival arrival, int call) {
  for (int b = 0; b < RANKS; ++b) {
    int of_it = 0, from = origin(arrival, b, &of_it);
    unsigned char* block = in(p, b);
    long k = 0;
    for (long i = 0; from >= 0 && i < p->runs; ++i) {
      for (long j = 0; j < p->run[i].bytes; ++j)
        if (block[p->run[i].at + j] != content(from, of_it, k++, call)) return 0;
      memset(block + p->run[i].at, untouched, (size_t)p->run[i].bytes);
    }
    for (long at = 0; at < p->span; ++at)
      if (block[at] != untouched) return 0;
  }
  return 1;
}

/* --- How they are made. --- */

static inline void add_run(struct piece* p, long at, long bytes) {
  p->run[p->runs++] = (struct piece_run){at, bytes};
  p->bytes += bytes;
  if (at + bytes > p->span) p->span = at + bytes;
}

/* The type of a block is of its span from now on, of whole words. */
static inline void finish_piece(struct piece* p, MPI_Datatype runs) {
  p->span = (p->span + WORD - 1) / WORD * WORD;
  MPI_Type_create_resized(runs, 0, p->span, &p->type);
  MPI_Type_commit(&p->type);
  MPI_Type_free(&runs);
  p->sent = memory(RANKS * p->span);
  p->received = memory(RANKS * p->span);
}

/* Runs as far apart as they are long; or, listed, with gaps of another length each, on average a little longer. A last
 * gap, too. `bytes` and `run` are of whole words. */
static inline void make_piece(struct piece* p, long bytes, long run, int listed) {
  const long count = bytes / run, words = run / WORD;
  *p = (struct piece){.run = memory(count * (long)sizeof *p->run)};
  MPI_Aint* places = memory(count * (long)sizeof *places);
  long at = 0;
  for (long i = 0; i < count; ++i) {
    add_run(p, at, run);
    places[i] = at;
    at += run + (listed ? WORD * (1 + (long)drawn((uint32_t)(2 * words + 1))) : run);
  }
  p->span = at;
  MPI_Datatype runs;
  if (listed)
    MPI_Type_create_hindexed_block((int)count, (int)words, places, MPI_DOUBLE, &runs);
  else
    MPI_Type_vector((int)count, (int)words, 2 * (int)words, MPI_DOUBLE, &runs);
  free(places);
  finish_piece(p, runs);
}

/* Without gaps, of whole words. */
static inline void make_contiguous(struct piece* p, long bytes) {
  *p = (struct piece){.run = memory((long)sizeof *p->run)};
  add_run(p, 0, bytes);
  MPI_Datatype words;
  MPI_Type_contiguous((int)(bytes / WORD), MPI_DOUBLE, &words);
  finish_piece(p, words);
}

/* Loops around runs of so many bytes, from the outside in. */
static inline int make_loops(struct piece* p, FILE* from) {
  int levels = 0;
  long count[MOST_LOOPS], stride[MOST_LOOPS], bytes = 0, runs = 1;
  if (fscanf(from, "%d", &levels) != 1 || levels < 0 || levels > MOST_LOOPS) return 0;
  for (int i = 0; i < levels; ++i) {
    if (fscanf(from, "%ld %ld", &count[i], &stride[i]) != 2 || count[i] <= 0 || stride[i] < 0) return 0;
    runs *= count[i];
  }
  if (fscanf(from, "%ld", &bytes) != 1 || bytes <= 0) return 0;
  p->run = memory(runs * (long)sizeof *p->run);
  for (long i = 0; i < runs; ++i) {
    long at = 0, left = i;
    for (int level = levels - 1; level >= 0; --level) {
      at += left % count[level] * stride[level];
      left /= count[level];
    }
    add_run(p, at, bytes);
  }
  MPI_Datatype type;
  MPI_Type_contiguous((int)bytes, MPI_BYTE, &type);
  for (int level = levels - 1; level >= 0; --level) {
    MPI_Datatype inner = type;
    MPI_Type_create_hvector((int)count[level], 1, stride[level], inner, &type);
    MPI_Type_free(&inner);
  }
  finish_piece(p, type);
  return 1;
}

/* Runs, each with its place. */
static inline int make_list(struct piece* p, FILE* from) {
  long runs = 0, at, bytes;
  if (fscanf(from, "%ld", &runs) != 1 || runs <= 0 || runs > INT32_MAX) return 0;
  p->run = memory(runs * (long)sizeof *p->run);
  MPI_Aint* places = memory(runs * (long)sizeof *places);
  int* lengths = memory(runs * (long)sizeof *lengths);
  for (long i = 0; i < runs; ++i) {
    if (fscanf(from, "%ld %ld", &at, &bytes) != 2 || at < 0 || bytes <= 0 || bytes > INT32_MAX) return 0;
    add_run(p, at, bytes);
    places[i] = at;
    lengths[i] = (int)bytes;
  }
  MPI_Datatype type;
  MPI_Type_create_hindexed((int)runs, lengths, places, MPI_BYTE, &type);
  free(places);
  free(lengths);
  finish_piece(p, type);
  return 1;
}

/* What a file says:
 *   loops LEVELS COUNT STRIDE ... BYTES      from the outside in
 *   list RUNS AT BYTES ...
 * 0: it says something else. */
static inline int make_given(struct piece* p, const char* path) {
  FILE* from = fopen(path, "r");
  char kind[8] = "";
  *p = (struct piece){.bytes = 0};
  int made = from != NULL && fscanf(from, "%7s", kind) == 1 &&
             (strcmp(kind, "loops") == 0 ? make_loops(p, from) : strcmp(kind, "list") == 0 && make_list(p, from));
  if (from != NULL) fclose(from);
  return made;
}

static inline void free_piece(struct piece* p) {
  free(p->run);
  free(p->sent);
  free(p->received);
  MPI_Type_free(&p->type);
}

#endif
