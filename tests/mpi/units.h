/* What types consist of: MPI's own types, pairs, and records that two ends lay out differently. */
#ifndef LACUNA_TESTS_MPI_UNITS_H
#define LACUNA_TESTS_MPI_UNITS_H

#include "shapes.h"

enum unit { U_BYTE, U_INT, U_DOUBLE, U_COMPLEX, U_SHORT_INT, U_DOUBLE_INT, U_RECORD, UNITS };

static const char* const unit_names[] = {"byte", "int", "double", "complex", "short_int", "double_int", "record"};

/* The same members at other places. */
static inline struct shape two_members(MPI_Datatype first, MPI_Datatype second, MPI_Aint first_at, MPI_Aint second_at) {
  struct shape members[] = {basic(first), basic(second)};
  struct shape s = structure(2, (int[]){1, 1}, (MPI_Aint[]){first_at, second_at}, members);
  free_shape(&members[0]);
  free_shape(&members[1]);
  return s;
}

static inline struct shape record(bool other) {
  struct shape members[] = {basic(MPI_CHAR), basic(MPI_INT), basic(MPI_DOUBLE)};
  struct shape s = structure(3, (int[]){3, 1, 2}, other ? (MPI_Aint[]){29, 16, 0} : (MPI_Aint[]){0, 4, 8}, members);
  for (int i = 0; i < 3; ++i) free_shape(&members[i]);
  replace(&s, resized(&s, other ? -8 : 0, other ? 48 : 24));
  return s;
}

/* `other`: with the same signature, laid out in another way if there is one. */
static inline struct shape unit_of(enum unit unit, bool other) {
  switch (unit) {
    case U_BYTE: return basic(MPI_BYTE);
    case U_INT: return basic(MPI_INT);
    case U_DOUBLE: return basic(MPI_DOUBLE);
    case U_COMPLEX: return basic(MPI_C_DOUBLE_COMPLEX);
    case U_SHORT_INT: return other ? two_members(MPI_SHORT, MPI_INT, 8, 0) : pair(MPI_SHORT_INT, 2, 4);
    case U_DOUBLE_INT: return other ? two_members(MPI_DOUBLE, MPI_INT, 0, 12) : pair(MPI_DOUBLE_INT, 8, 8);
    default: return record(other);
  }
}

#endif
