/* Datatypes that are drawn: constructors over constructors, as programs nest them, beside the runs of bytes that they
 * mean by MPI's rules. So what arrives is verified without the MPI's help. */
#ifndef LACUNA_BENCH_MPI_DRAWN_TYPE_H
#define LACUNA_BENCH_MPI_DRAWN_TYPE_H

#include "two_ranks.h"

enum { LEAST_LOG = 6, MOST_LOG = 20, WORD = 8, LEVELS = 3 };

/* Bytes side by side, in the order in which they are sent. */
struct run {
  long at, bytes;
};

struct drawn_type {
  MPI_Datatype type;
  long extent, bytes, runs, room;
  struct run* run;
  int levels;
  const char* names[LEVELS + 1]; /* from the inside out: "int", "struct", "vector" */
};

static inline void add_run(struct drawn_type* t, long at, long bytes) {
  struct run* last = t->runs > 0 ? &t->run[t->runs - 1] : NULL;
  t->bytes += bytes;
  if (last != NULL && last->at + last->bytes == at) {
    last->bytes += bytes;
    return;
  }
  if (t->runs == t->room) {
    t->room = t->room * 2 + 64;
    t->run = realloc(t->run, (size_t)t->room * sizeof *t->run);
    if (t->run == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  }
  t->run[t->runs++] = (struct run){at, bytes};
}

static inline void add_copies(struct drawn_type* t, const struct drawn_type* old, long at, long copies) {
  for (long k = 0; k < copies; ++k)
    for (long i = 0; i < old->runs; ++i) add_run(t, at + k * old->extent + old->run[i].at, old->run[i].bytes);
}

/* "vector of struct of int" */
static inline void print_name(FILE* to, const struct drawn_type* t) {
  for (int level = t->levels; level >= 0; --level) fprintf(to, "%s%s", t->names[level], level > 0 ? " of " : "");
}

static inline void free_type(struct drawn_type* t) {
  MPI_Type_free(&t->type);
  free(t->run);
}

/* Takes the place of `old`, over which it was made. */
static inline void finish_type(struct drawn_type* t, struct drawn_type* old, const char* name) {
  MPI_Aint lb = 0, extent = 0;
  MPI_Type_get_extent(t->type, &lb, &extent);
  t->extent = (long)extent;
  t->levels = old->levels + 1;
  memcpy(t->names, old->names, sizeof t->names);
  t->names[t->levels] = name;
  free_type(old);
  *old = *t;
}

/* --- Constructors, each of about `count` copies of the type before. --- */

static inline long least(long a, long b) { return a < b ? a : b; }

static inline void make_vector(struct drawn_type* old, long count, int in_bytes) {
  struct drawn_type t = {.runs = 0};
  long block = 1 + drawn((uint32_t)least(count, 8)), blocks = (count + block - 1) / block;
  long stride = (block + drawn((uint32_t)block + 2)) * old->extent + (in_bytes ? WORD * (long)drawn(5) : 0);
  for (long i = 0; i < blocks; ++i) add_copies(&t, old, i * stride, block);
  if (in_bytes)
    MPI_Type_create_hvector((int)blocks, (int)block, stride, old->type, &t.type);
  else
    MPI_Type_vector((int)blocks, (int)block, (int)(stride / old->extent), old->type, &t.type);
  finish_type(&t, old, in_bytes ? "hvector" : "vector");
}

/* Blocks of any length; a third of the lists are out of order. */
static inline void make_indexed(struct drawn_type* old, long count, int in_bytes) {
  struct drawn_type t = {.runs = 0};
  long longest = 1 + drawn((uint32_t)least(count, 16)), blocks = 0, at = 0;
  int* lengths = memory(count * (long)sizeof *lengths);
  int* indices = memory(count * (long)sizeof *indices);
  int* order = memory(count * (long)sizeof *order);
  MPI_Aint* places = memory(count * (long)sizeof *places);
  for (long left = count; left > 0; left -= lengths[blocks++]) {
    lengths[blocks] = (int)least(1 + drawn((uint32_t)longest), left);
    order[blocks] = (int)blocks;
    indices[blocks] = (int)at;
    at += lengths[blocks] + drawn((uint32_t)longest + 1);
  }
  /* The first one stays, so that nothing lies before the type's beginning. */
  if (blocks > 2 && drawn(3) == 0) shuffle(order + 1, (int)blocks - 1);
  int* of = memory(blocks * (long)sizeof *of);
  int* from = memory(blocks * (long)sizeof *from);
  for (long i = 0; i < blocks; ++i) {
    of[i] = lengths[order[i]];
    from[i] = indices[order[i]];
    places[i] = from[i] * old->extent;
    add_copies(&t, old, places[i], of[i]);
  }
  if (in_bytes)
    MPI_Type_create_hindexed((int)blocks, of, places, old->type, &t.type);
  else
    MPI_Type_indexed((int)blocks, of, from, old->type, &t.type);
  void* lists[] = {lengths, indices, order, places, of, from};
  for (int i = 0; i < 6; ++i) free(lists[i]);
  finish_type(&t, old, in_bytes ? "hindexed" : "indexed");
}

/* A number, and two blocks. */
static inline void make_struct(struct drawn_type* old, long count) {
  struct drawn_type t = {.runs = 0};
  long first = 1 + drawn((uint32_t)count), second = count - first, gap = WORD * (long)drawn(8);
  const int lengths[] = {1, (int)first, (int)second};
  const MPI_Aint places[] = {0, WORD, WORD + first * old->extent + gap};
  const MPI_Datatype types[] = {MPI_INT, old->type, old->type};
  add_run(&t, 0, sizeof(int));
  add_copies(&t, old, places[1], first);
  add_copies(&t, old, places[2], second);
  MPI_Type_create_struct(second > 0 ? 3 : 2, lengths, places, types, &t.type);
  finish_type(&t, old, "struct");
}

static inline void make_subarray(struct drawn_type* old, long count) {
  struct drawn_type t = {.runs = 0};
  int columns = 1 + (int)drawn((uint32_t)least(count, 64)), rows = (int)((count + columns - 1) / columns);
  int starts[] = {(int)drawn(3), (int)drawn((uint32_t)columns + 1)}, sizes[] = {rows, columns};
  int whole[] = {rows + starts[0] + (int)drawn(2), columns + starts[1] + (int)drawn((uint32_t)columns + 1)};
  for (int row = 0; row < rows; ++row) add_copies(&t, old, ((long)(starts[0] + row) * whole[1] + starts[1]) * old->extent, columns);
  MPI_Type_create_subarray(2, whole, sizes, starts, MPI_ORDER_C, old->type, &t.type);
  finish_type(&t, old, "subarray");
}

/* Copies side by side, each with a gap behind it. */
static inline void make_resized(struct drawn_type* old, long count) {
  struct drawn_type t = {.runs = 0};
  MPI_Datatype wider;
  MPI_Type_create_resized(old->type, 0, old->extent + WORD * (1 + (long)drawn(8)), &wider);
  MPI_Aint lb, extent;
  MPI_Type_get_extent(wider, &lb, &extent);
  MPI_Type_contiguous((int)count, wider, &t.type);
  MPI_Type_free(&wider);
  for (long i = 0; i < count; ++i) add_copies(&t, old, i * (long)extent, 1);
  finish_type(&t, old, "resized");
}

static inline void make_level(struct drawn_type* old, long count) {
  switch (drawn(7)) {
    case 0: make_vector(old, count, 0); return;
    case 1: make_vector(old, count, 1); return;
    case 2: make_indexed(old, count, 0); return;
    case 3: make_indexed(old, count, 1); return;
    case 4: make_struct(old, count); return;
    case 5: make_subarray(old, count); return;
    default: make_resized(old, count); return;
  }
}

/* --- The whole. --- */

static inline struct drawn_type draw_leaf(void) {
  static const struct {
    MPI_Datatype type;
    const char* name;
  } leaves[] = {{MPI_DOUBLE, "double"}, {MPI_DOUBLE, "double"}, {MPI_INT, "int"},
                {MPI_FLOAT, "float"},   {MPI_SHORT, "short"},   {MPI_CHAR, "char"}};
  int which = (int)drawn(sizeof leaves / sizeof leaves[0]), size = 0;
  struct drawn_type t = {.runs = 0};
  MPI_Type_dup(leaves[which].type, &t.type);
  MPI_Type_size(t.type, &size);
  t.extent = size;
  add_run(&t, 0, size);
  t.names[0] = leaves[which].name;
  return t;
}

/* The number-th type of a seed, committed: of 64 B to about 1 MiB, with a gap at least. Copies lie side by side. */
static inline struct drawn_type draw_type(uint64_t seed, int number) {
  drawing = seed * 0x9e3779b97f4a7c15U + (uint64_t)number * 0xbf58476d1ce4e5b9U + 1;
  for (int i = 0; i < 8; ++i) drawn(2);
  struct drawn_type t;
  do {
    t = draw_leaf();
    int log = LEAST_LOG + (int)drawn(MOST_LOG - LEAST_LOG + 1);
    long bytes = (1L << log) - (log > LEAST_LOG ? (long)drawn(1U << (log - 1)) : 0);
    for (int level = 1 + (int)drawn(LEVELS); level > 0; --level) {
      long left = bytes / t.bytes, count = left;
      if (left < 1) break;
      for (int halves = level > 1 ? (int)drawn(12) : 0; halves > 0 && count > 3; --halves) count = (count + 1) / 2;
      make_level(&t, count);
    }
    if (t.runs > 1) break;
    free_type(&t);
  } while (1);
  struct drawn_type whole = t;
  whole.extent = (t.extent + WORD - 1) / WORD * WORD + WORD * (long)drawn(9);
  MPI_Type_create_resized(t.type, 0, whole.extent, &whole.type);
  MPI_Type_commit(&whole.type);
  MPI_Type_free(&t.type);
  return whole;
}

#endif
