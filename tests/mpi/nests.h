/* Random datatypes: any constructor over any other, of as many elements as asked for. */
#ifndef LACUNA_TESTS_MPI_NESTS_H
#define LACUNA_TESTS_MPI_NESTS_H

#include "shapes.h"

enum kind {
  CONTIGUOUS,
  VECTOR,
  HVECTOR,
  INDEXED,
  HINDEXED,
  INDEXED_BLOCK,
  HINDEXED_BLOCK,
  STRUCT,
  SUBARRAY_C,
  SUBARRAY_FORTRAN,
  DARRAY_C,
  DARRAY_FORTRAN,
  RESIZED,
  DUP,
  KINDS
};

static const char* const kind_names[] = {"contiguous",    "vector",         "hvector", "indexed",    "hindexed",
                                         "indexed_block", "hindexed_block", "struct",  "subarray C", "subarray Fortran",
                                         "darray C",      "darray Fortran", "resized", "dup"};

/* One that leaves many. */
static inline int small_divisor(struct random* random, int n) {
  for (int i = 0; i < 16; ++i) {
    int divisor = 1 + below(random, n < 64 ? n : 64);
    if (n % divisor == 0) return divisor;
  }
  return 1;
}

/* --- lists of pieces ---------------------------------------------------------------------------------------------- */

struct pieces {
  int count;
  int* length;
  MPI_Aint* place; /* in extents of the old type, or in bytes */
  int* index;      /* the same, where they fit an int */
};

/* `n` copies in pieces of `block`, or of any length if that is 0. A copy takes `step`; gaps are multiples of `gap`. */
static inline struct pieces cut(struct random* random, int n, int block, MPI_Aint step, MPI_Aint gap) {
  int longest = block > 0 ? block : 1 + below(random, n < 100 ? n : n / 20);
  struct pieces p = {.length = allocate(((size_t)n + 1) * sizeof(int)), .place = allocate(((size_t)n + 1) * sizeof(MPI_Aint))};
  MPI_Aint at = gap * (below(random, 7) - 3);
  for (int left = n; left > 0; left -= p.length[p.count++]) {
    int length = block > 0 ? block : below(random, longest + 1); /* now and then none */
    if (p.count == n || length > left) length = left;
    p.length[p.count] = length;
    p.place[p.count] = at + (step < 0 && length > 0 ? (length - 1) * -step : 0);
    at += length * labs(step) + gap * below(random, 3);
  }
  for (int i = p.count - 1; i > 0 && n % 2 == 0; --i) { /* half of them out of order */
    int k = below(random, i + 1);
    int length = p.length[i];
    MPI_Aint place = p.place[i];
    p.length[i] = p.length[k];
    p.place[i] = p.place[k];
    p.length[k] = length;
    p.place[k] = place;
  }
  p.index = allocate(((size_t)n + 1) * sizeof(int));
  for (int i = 0; i < p.count; ++i) p.index[i] = (int)p.place[i];
  return p;
}

static inline struct shape pieces_of(struct random* random, enum kind kind, int n, const struct shape* old) {
  struct shape s = nothing();
  bool in_bytes = kind == HINDEXED || kind == HINDEXED_BLOCK || kind == STRUCT;
  int block = kind == INDEXED_BLOCK || kind == HINDEXED_BLOCK ? small_divisor(random, n) : 0;
  struct pieces p = cut(random, n, block, in_bytes ? extent_of(old) : 1, in_bytes ? old->alignment : 1);
  for (int i = 0; i < p.count; ++i)
    for (int k = 0; k < p.length[i]; ++k) add_shape(&s, old, p.place[i] * (in_bytes ? 1 : extent_of(old)) + k * extent_of(old));
  if (kind == INDEXED) MPI_Type_indexed(p.count, p.length, p.index, old->type, &s.type);
  if (kind == HINDEXED) MPI_Type_create_hindexed(p.count, p.length, p.place, old->type, &s.type);
  if (kind == INDEXED_BLOCK) MPI_Type_create_indexed_block(p.count, block, p.index, old->type, &s.type);
  if (kind == HINDEXED_BLOCK) MPI_Type_create_hindexed_block(p.count, block, p.place, old->type, &s.type);
  if (kind == STRUCT) {
    MPI_Datatype* types = allocate(((size_t)n + 1) * sizeof *types);
    for (int i = 0; i < p.count; ++i) types[i] = old->type;
    MPI_Type_create_struct(p.count, p.length, p.place, types, &s.type);
    free(types);
  }
  free(p.length);
  free(p.place);
  free(p.index);
  return s;
}

/* --- arrays ------------------------------------------------------------------------------------------------------- */

enum { DIMENSIONS = 3 };

/* The elements of an array that `chosen` has in each dimension, in the array's order. */
static inline void section(struct shape* s, const struct shape* old, const int* size, const int* counts, int* const* chosen, bool fortran) {
  int fastest = fortran ? 0 : DIMENSIONS - 1, slowest = DIMENSIONS - 1 - fastest;
  for (int i = 0; i < counts[slowest]; ++i)
    for (int j = 0; j < counts[1]; ++j)
      for (int k = 0; k < counts[fastest]; ++k)
        add_shape(s, old, (((MPI_Aint)chosen[slowest][i] * size[1] + chosen[1][j]) * size[fastest] + chosen[fastest][k]) * extent_of(old));
  s->lb = 0;
  s->ub = (MPI_Aint)size[0] * size[1] * size[2] * extent_of(old);
}

static inline struct shape array_of(struct random* random, enum kind kind, int n, const struct shape* old) {
  struct shape s = nothing();
  bool fortran = kind == SUBARRAY_FORTRAN || kind == DARRAY_FORTRAN;
  int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  int counts[DIMENSIONS], size[DIMENSIONS], first[DIMENSIONS], grid[DIMENSIONS], how[DIMENSIONS], block[DIMENSIONS];
  int* chosen[DIMENSIONS];
  counts[0] = small_divisor(random, n);
  counts[1] = small_divisor(random, n / counts[0]);
  counts[2] = n / counts[0] / counts[1];
  int ranks = 1, rank = 0;
  for (int d = 0; d < DIMENSIONS; ++d) {
    bool is_subarray = kind == SUBARRAY_C || kind == SUBARRAY_FORTRAN;
    chosen[d] = allocate((size_t)counts[d] * sizeof(int));
    int gap = counts[d] > 4 || n * extent_of(old) < 4 * KIB ? 3 : 1; /* large ones are to stay affordable */
    first[d] = below(random, gap);
    size[d] = first[d] + counts[d] + below(random, gap);
    grid[d] = ranks == 1 ? 1 + below(random, 3) : 1 + below(random, gap) % 2;
    block[d] = small_divisor(random, counts[d]);
    how[d] = grid[d] == 1 ? MPI_DISTRIBUTE_NONE : below(random, 2) ? MPI_DISTRIBUTE_BLOCK : MPI_DISTRIBUTE_CYCLIC;
#ifdef I_MPI_VERSION /* Intel MPI 2021.19 misplaces cyclic blocks in every dimension but the one that runs fastest */
    if (d != (fortran ? 0 : DIMENSIONS - 1)) block[d] = 1;
#endif
    if (how[d] != MPI_DISTRIBUTE_CYCLIC) block[d] = counts[d];
    if (!is_subarray) size[d] = counts[d] * grid[d];
    int place = below(random, grid[d]);
    ranks *= grid[d];
    rank = rank * grid[d] + place;
    for (int i = 0; i < counts[d]; ++i)
      chosen[d][i] = is_subarray ? first[d] + i : (i / block[d] * grid[d] + place) * block[d] + i % block[d];
  }
  section(&s, old, size, counts, chosen, fortran);
  if (kind == SUBARRAY_C || kind == SUBARRAY_FORTRAN)
    MPI_Type_create_subarray(DIMENSIONS, size, counts, first, order, old->type, &s.type);
  else {
    for (int d = 0; d < DIMENSIONS; ++d)
      if (how[d] == MPI_DISTRIBUTE_NONE) block[d] = MPI_DISTRIBUTE_DFLT_DARG;
    MPI_Type_create_darray(ranks, rank, DIMENSIONS, size, how, block, grid, order, old->type, &s.type);
  }
  for (int d = 0; d < DIMENSIONS; ++d) free(chosen[d]);
  return s;
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

/* `n` copies of `old`, which do not overlap if it is solid. */
static inline struct shape copies(struct random* random, enum kind kind, int n, const struct shape* old) {
  struct shape s = nothing();
  int block = small_divisor(random, n), count = n / block;
  int sign = below(random, 3) == 0 ? -1 : 1, gap = below(random, 3);
  MPI_Datatype flat;
#ifdef OPEN_MPI /* takes a stride of -1 byte for one that was not given */
  if (labs(extent_of(old)) == 1) sign = 1;
#endif
  MPI_Aint stride = sign * (block * labs(extent_of(old)) + gap * old->alignment);
#ifdef MPI_H_ABI /* MPICH 5.0's library for the standard's ABI takes its distributions for others */
  if (kind == DARRAY_C || kind == DARRAY_FORTRAN) kind = SUBARRAY_C;
#endif
#ifdef I_MPI_VERSION /* it writes outside its memory in an array of what runs backwards */
  if ((kind == DARRAY_C || kind == DARRAY_FORTRAN) && extent_of(old) < 0) kind = SUBARRAY_C;
#endif
  switch (kind) {
    case CONTIGUOUS:
      for (int i = 0; i < n; ++i) add_shape(&s, old, i * extent_of(old));
      MPI_Type_contiguous(n, old->type, &s.type);
      break;
    case VECTOR:
      for (int i = 0; i < n; ++i) add_shape(&s, old, ((MPI_Aint)(i / block) * sign * (block + gap) + i % block) * extent_of(old));
      MPI_Type_vector(count, block, sign * (block + gap), old->type, &s.type);
      break;
    case HVECTOR:
      for (int i = 0; i < n; ++i) add_shape(&s, old, i / block * stride + i % block * extent_of(old));
      MPI_Type_create_hvector(count, block, stride, old->type, &s.type);
      break;
    case SUBARRAY_C:
    case SUBARRAY_FORTRAN:
    case DARRAY_C:
    case DARRAY_FORTRAN: s = array_of(random, kind, n, old); break;
    case RESIZED:
    case DUP:
      for (int i = 0; i < n; ++i) add_shape(&s, old, i * extent_of(old));
      MPI_Type_contiguous(n, old->type, &flat);
      if (kind == RESIZED) {
        s.lb = s.low + (below(random, 9) - 4) * s.alignment;
        s.ub = s.lb + sign * (round_up(s.high - s.low, s.alignment) + below(random, 4) * s.alignment);
        MPI_Type_create_resized(flat, s.lb, extent_of(&s), &s.type);
      } else {
        MPI_Type_dup(flat, &s.type);
      }
      MPI_Type_free(&flat);
      break;
    default: s = pieces_of(random, kind, n, old); break;
  }
  compare_bounds(&s, kind_names[kind], kind == STRUCT);
  make_solid(&s);
  return s;
}

/* `n` copies of `unit`, by random constructors over one another. */
static inline struct shape nest(struct random* random, const struct shape* unit, int n, int depth) {
  int inner = depth > 1 ? small_divisor(random, n) : n;
  struct shape s = copies(random, (enum kind)below(random, KINDS), inner, unit);
  for (int left = n / inner; depth > 1; --depth) {
    int part = depth > 2 ? small_divisor(random, left) : left;
    replace(&s, copies(random, (enum kind)below(random, KINDS), part, &s));
    left /= part;
  }
  return s;
}

/* --- ends of messages that all programs use ----------------------------------------------------------------------- */

/* FLAT is one of MPI's types; the others have gaps: blocks of one length, anything, and several of a small type. */
enum style { FLAT, STRIDED, NESTED, SEVERAL, STYLES };

static inline MPI_Datatype unit_type(long bytes) {
  if (bytes % 8 == 0) return MPI_DOUBLE;
  if (bytes % 4 == 0) return MPI_INT;
  return bytes % 2 == 0 ? MPI_SHORT : MPI_BYTE;
}

/* Of `bytes`, with a signature that depends on nothing else: ends of one size fit together, whatever their style and
 * seed. */
static inline struct end end_with(long bytes, enum style style, uint64_t seed) {
  struct random random = {seed};
  struct shape unit = basic(unit_type(bytes));
  int n = (int)(bytes / unit.size);
  if (style == FLAT) return end_of(unit, n);
  int block = n > 0 ? small_divisor(&random, n) : 1;
  int outer = n > 0 ? n / block : 1;
  struct shape s = nothing();
  if (style == NESTED) {
    s = nest(&random, &unit, n > 0 ? n : 1, 2 + below(&random, 2));
  } else {
    int count = style == STRIDED ? outer : 1;
    MPI_Aint stride = unit.size * (block + 1 + below(&random, 3));
    for (int i = 0; i < count * block; ++i) add_shape(&s, &unit, i / block * stride + i % block * unit.size);
    MPI_Type_create_hvector(count, block, stride, unit.type, &s.type);
    replace(&s, resized(&s, 0, style == STRIDED ? s.high : stride));
  }
  free_shape(&unit);
  return end_of(s, n == 0 ? 0 : style == SEVERAL ? outer : 1);
}

#endif
