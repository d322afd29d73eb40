/* One side of a collective: blocks for each rank, of any types, at any place. Each holds the stream of a seed; nothing
 * else of the memory is touched. */
#ifndef LACUNA_TESTS_MPI_BLOCKS_H
#define LACUNA_TESTS_MPI_BLOCKS_H

#include "nests.h"

enum { MOST_RANKS = 16 };

struct block {
  struct shape shape;
  int count;
  MPI_Aint at; /* bytes */
};

struct side {
  int blocks;
  struct block block[MOST_RANKS];
  unsigned char* memory;
  size_t room;
  void* base;
  /* As MPI gets them. */
  int counts[MOST_RANKS], places[MOST_RANKS], bytes_at[MOST_RANKS];
  MPI_Aint far_at[MOST_RANKS];
  MPI_Datatype types[MOST_RANKS];
};

enum order { BEHIND_ONE_ANOTHER, ANYWHERE, BY_BYTES };

/* Elements of `doubles` doubles each. `counts` of them in each block; without BY_BYTES all of one type. */
static inline struct side side_of(struct random* random, int blocks, const int* counts, int doubles, enum order order) {
  struct side s = {.blocks = blocks};
  struct shape unit = basic(MPI_DOUBLE);
  MPI_Aint low = 0, high = 0, cursor = 0;
  /* One block alone is where its buffer begins: Open MPI 4.1 and MPICH 4.0 have some of them there, wherever they
   * belong. */
  int element = order == ANYWHERE && blocks > 1 ? below(random, 3) : 0, turn = order == ANYWHERE ? below(random, 16) : 0;
  for (int k = 0; k < blocks; ++k) {
    int i = (k + turn) % blocks; /* their order in memory */
    struct block* b = &s.block[i];
    b->count = counts[i];
    if (order == BY_BYTES || k == 0) {
      b->shape = below(random, 5) == 0 ? copies(random, CONTIGUOUS, doubles, &unit) : nest(random, &unit, doubles, 1 + below(random, 2));
#ifdef I_MPI_VERSION /* it frees an address that it has moved, in gathering what does not begin where its buffer does */
      while (b->shape.low != 0 || b->shape.lb != 0) replace(&b->shape, nest(random, &unit, doubles, 1 + below(random, 2)));
#endif
      MPI_Type_commit(&b->shape.type);
    } else {
      b->shape = s.block[turn % blocks].shape;
    }
    MPI_Aint extent = extent_of(&b->shape), last = b->count > 0 ? (b->count - 1) * extent : 0;
    MPI_Aint from = b->shape.low + (last < 0 ? last : 0), to = b->shape.high + (last > 0 ? last : 0);
    if (order == BY_BYTES) {
      b->at = blocks == 1 ? 0 : cursor > from ? round_up(cursor - from, 16) : (cursor - from) / 16 * 16;
      cursor = b->at + to;
    } else {
      s.places[i] = element;
      b->at = element * extent;
      element += b->count + (order == ANYWHERE ? below(random, 3) : 0);
    }
    if (b->at + from < low) low = b->at + from;
    if (b->at + to > high) high = b->at + to;
    s.counts[i] = b->count;
    s.types[i] = b->shape.type;
    s.far_at[i] = b->at;
    s.bytes_at[i] = (int)b->at;
  }
  MPI_Aint before = round_up(MARGIN - low, 64);
  s.room = (size_t)(before + high + MARGIN);
  s.memory = allocate(s.room);
  s.base = s.memory + before;
  write_stream(s.memory, s.room, GAPS);
  return s;
}

static inline void write_block(const struct side* s, unsigned char* memory, int i, uint64_t seed) {
  const struct block* b = &s->block[i];
  struct end one = {.shape = b->shape, .count = b->count};
  long bytes = b->shape.size * b->count;
  unsigned char* stream = allocate((size_t)bytes);
  write_stream(stream, (size_t)bytes, seed);
  scatter(&one, memory + ((unsigned char*)s->base - s->memory) + b->at, stream, bytes);
  free(stream);
}

enum { NO_SEED = 0 };

/* Gaps, and the blocks that have a seed. */
static inline void fill(const struct side* s, unsigned char* memory, const uint64_t* seeds) {
  write_stream(memory, s->room, GAPS);
  for (int i = 0; i < s->blocks; ++i)
    if (seeds[i] != NO_SEED) write_block(s, memory, i, seeds[i]);
}

static inline void check_side(const struct side* s, const uint64_t* seeds, const char* what) {
  unsigned char* wanted = allocate(s->room);
  fill(s, wanted, seeds);
  if (memcmp(wanted, s->memory, s->room) != 0) {
    size_t first = 0;
    while (wanted[first] == s->memory[first]) ++first;
    wrong("%s: byte %ld differs", what, (long)(s->memory + first - (unsigned char*)s->base));
  }
  free(wanted);
}

static inline void free_side(struct side* s) {
  for (int i = 0; i < s->blocks; ++i) {
    bool shared = false;
    for (int k = 0; k < i; ++k) shared = shared || s->block[k].shape.run == s->block[i].shape.run;
    if (shared) s->block[i].shape = nothing();
  }
  for (int i = 0; i < s->blocks; ++i) free_shape(&s->block[i].shape);
  free(s->memory);
}

#endif
