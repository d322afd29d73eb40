/* MPI datatypes beside what they mean: every constructor is done twice, by MPI and as a list of runs by the rules of
 * its standard. So what arrives is checked without any MPI's help, data and gaps alike. */
#ifndef LACUNA_TESTS_MPI_SHAPES_H
#define LACUNA_TESTS_MPI_SHAPES_H

#include "check.h"

/* Bytes side by side, in the order in which they are sent. */
struct run {
  MPI_Aint at, bytes;
};

struct shape {
  MPI_Datatype type;
  bool own;            /* not one of MPI's, and to be freed */
  MPI_Aint lb, ub;     /* as MPI counts them */
  MPI_Aint low, high;  /* the bytes it reaches */
  MPI_Aint alignment;  /* of what it consists of */
  long size, elements; /* elements: of MPI's own types */
  long runs, room;
  struct run* run;
};

static inline MPI_Aint extent_of(const struct shape* s) { return s->ub - s->lb; }

/* --- runs --------------------------------------------------------------------------------------------------------- */

static inline void add_run(struct shape* s, MPI_Aint at, MPI_Aint bytes) {
  if (bytes == 0) return;
  if (s->size == 0 || at < s->low) s->low = at;
  if (s->size == 0 || at + bytes > s->high) s->high = at + bytes;
  s->size += bytes;
  struct run* last = s->runs > 0 ? &s->run[s->runs - 1] : NULL;
  if (last != NULL && last->at + last->bytes == at) {
    last->bytes += bytes;
    return;
  }
  if (s->runs == s->room) {
    s->room = s->room * 2 + 8;
    s->run = realloc(s->run, (size_t)s->room * sizeof *s->run);
    if (s->run == NULL) give_up("out of memory");
  }
  s->run[s->runs++] = (struct run){at, bytes};
}

/* A copy of `old` at a displacement, with its bounds. */
static inline void add_shape(struct shape* s, const struct shape* old, MPI_Aint at) {
  bool first = s->elements == 0;
  if (first || at + old->lb < s->lb) s->lb = at + old->lb;
  if (first || at + old->ub > s->ub) s->ub = at + old->ub;
  if (first || old->alignment > s->alignment) s->alignment = old->alignment;
  s->elements += old->elements;
  for (long i = 0; i < old->runs; ++i) add_run(s, at + old->run[i].at, old->run[i].bytes);
}

static inline struct shape nothing(void) {
  struct shape s = {.type = MPI_DATATYPE_NULL, .own = true, .alignment = 1};
  return s;
}

static inline void free_shape(struct shape* s) {
  if (s->own && s->type != MPI_DATATYPE_NULL) MPI_Type_free(&s->type);
  free(s->run);
  *s = nothing();
}

static inline void replace(struct shape* s, struct shape next) {
  free_shape(s);
  *s = next;
}

/* --- types -------------------------------------------------------------------------------------------------------- */

static inline struct shape basic(MPI_Datatype type) {
  struct shape s = nothing();
  int size = 0;
  MPI_Type_size(type, &size);
  s.type = type;
  s.own = false;
  add_run(&s, 0, size);
  s.ub = size;
  s.alignment = size;
  s.elements = 1;
  return s;
}

/* MPI_SHORT_INT and its like: a value of `bytes`, and an int at `at`. */
static inline struct shape pair(MPI_Datatype type, MPI_Aint bytes, MPI_Aint at) {
  struct shape s = nothing();
  s.type = type;
  s.own = false;
  add_run(&s, 0, bytes);
  add_run(&s, at, (MPI_Aint)sizeof(int));
  MPI_Type_get_extent(type, &s.lb, &s.ub);
  s.alignment = s.ub;
  s.elements = 2;
  return s;
}

/* What MPI says of a type that has just been made. `padded`: its upper bound may be rounded up. */
static inline void compare_bounds(struct shape* s, const char* what, bool padded) {
  MPI_Aint lb = 0, extent = 0, true_lb = 0, true_extent = 0;
  int size = 0;
  MPI_Type_size(s->type, &size);
  MPI_Type_get_extent(s->type, &lb, &extent);
  MPI_Type_get_true_extent(s->type, &true_lb, &true_extent);
  if (padded && lb == s->lb && extent >= extent_of(s)) s->ub = lb + extent;
  bool same = size == s->size && lb == s->lb && extent == extent_of(s);
  if (s->size > 0) same = same && true_lb == s->low && true_lb + true_extent == s->high;
  if (same) return;
  wrong("%s: size %d for %ld, bounds %ld %ld for %ld %ld, true bounds %ld %ld for %ld %ld", what, size, s->size, (long)lb,
        (long)(lb + extent), (long)s->lb, (long)s->ub, (long)true_lb, (long)(true_lb + true_extent), (long)s->low, (long)s->high);
}

static inline struct shape resized(const struct shape* old, MPI_Aint lb, MPI_Aint extent) {
  struct shape s = nothing();
  add_shape(&s, old, 0);
  s.lb = lb;
  s.ub = lb + extent;
  MPI_Type_create_resized(old->type, lb, extent, &s.type);
  compare_bounds(&s, "resized", false);
  return s;
}

/* Members of different types. */
static inline struct shape structure(int count, const int* lengths, const MPI_Aint* displacements, const struct shape* members) {
  struct shape s = nothing();
  MPI_Datatype* types = allocate((size_t)count * sizeof *types);
  for (int i = 0; i < count; ++i) {
    types[i] = members[i].type;
    for (int k = 0; k < lengths[i]; ++k) add_shape(&s, &members[i], displacements[i] + k * extent_of(&members[i]));
  }
  MPI_Type_create_struct(count, lengths, displacements, types, &s.type);
  free(types);
  compare_bounds(&s, "struct", true);
  return s;
}

static inline MPI_Aint round_up(MPI_Aint bytes, MPI_Aint alignment) { return (bytes + alignment - 1) / alignment * alignment; }

/* Copies of it, an extent apart, must not overlap. */
static inline bool is_solid(const struct shape* s) { return labs(extent_of(s)) >= s->high - s->low; }

static inline void make_solid(struct shape* s) {
  if (!is_solid(s)) replace(s, resized(s, round_up(s->low, s->alignment), round_up(s->high - s->low, s->alignment)));
}

/* --- memory of one end of a message ------------------------------------------------------------------------------- */

struct end {
  struct shape shape;
  int count;
  unsigned char* memory;
  size_t room;
  void* at; /* what MPI gets */
};

enum { MARGIN = 64, GAPS = 0x6a70 };

/* Owns `shape`, which is committed. */
static inline struct end end_of(struct shape shape, int count) {
  struct end e = {.shape = shape, .count = count};
  MPI_Aint last = count > 0 ? (count - 1) * extent_of(&shape) : 0;
  MPI_Aint low = shape.low + (last < 0 ? last : 0);
  MPI_Aint high = shape.high + (last > 0 ? last : 0);
  MPI_Aint before = round_up(MARGIN + (low < 0 ? -low : 0), 64);
  e.room = (size_t)(before + (high > 0 ? high : 0) + MARGIN);
  e.memory = allocate(e.room);
  e.at = e.memory + before;
  if (shape.own) MPI_Type_commit(&e.shape.type);
  return e;
}

static inline long bytes_of(const struct end* e) { return e->shape.size * e->count; }

static inline void scatter(const struct end* e, unsigned char* base, const unsigned char* data, long bytes) {
  for (int copy = 0; copy < e->count; ++copy) {
    unsigned char* to = base + copy * extent_of(&e->shape);
    for (long i = 0; i < e->shape.runs && bytes > 0; ++i) {
      long some = e->shape.run[i].bytes < bytes ? e->shape.run[i].bytes : bytes;
      memcpy(to + e->shape.run[i].at, data, (size_t)some);
      data += some;
      bytes -= some;
    }
  }
}

/* The first `bytes` of the stream of `seed`, between gaps that hold what they always do. */
static inline void write_end(const struct end* e, unsigned char* memory, uint64_t seed, long bytes) {
  unsigned char* stream = allocate((size_t)bytes);
  write_stream(memory, e->room, GAPS);
  write_stream(stream, (size_t)bytes, seed);
  scatter(e, memory + ((unsigned char*)e->at - e->memory), stream, bytes);
  free(stream);
}

/* For a sender. */
static inline void load(const struct end* e, uint64_t seed) { write_end(e, e->memory, seed, bytes_of(e)); }

/* For a receiver. */
static inline void blank(const struct end* e) { write_stream(e->memory, e->room, GAPS); }

static inline bool holds(const struct end* e, uint64_t seed, long bytes) {
  unsigned char* wanted = allocate(e->room);
  write_end(e, wanted, seed, bytes);
  bool same = memcmp(wanted, e->memory, e->room) == 0;
  free(wanted);
  return same;
}

/* Says where the first byte is that should be another. */
__attribute__((format(printf, 4, 5))) static inline void check_end(const struct end* e, uint64_t seed, long bytes, const char* format,
                                                                   ...) {
  if (holds(e, seed, bytes)) return;
  char what[160];
  va_list values;
  va_start(values, format);
  vsnprintf(what, sizeof what, format, values);
  va_end(values);
  unsigned char* wanted = allocate(e->room);
  write_end(e, wanted, seed, bytes);
  size_t first = 0, others = 0;
  while (wanted[first] == e->memory[first]) ++first;
  for (size_t i = first; i < e->room; ++i) others += wanted[i] != e->memory[i];
  wrong("%s: %zu bytes differ, first that at %ld", what, others, (long)(e->memory + first - (unsigned char*)e->at));
  free(wanted);
}

static inline void free_end(struct end* e) {
  free_shape(&e->shape);
  free(e->memory);
  e->memory = NULL;
}

#endif
