/* Every constructor sent into every other, over all kinds of elements; several counts, absolute addresses, nothing at
 * all. */
/* ranks: 2 */
#include "nests.h"
#include "units.h"

enum { TAG = 7 };

/* `n` elements, in `count` copies of a type with `kind` outermost; FLAT_END is the unit itself. */
enum { FLAT_END = -1 };

static struct end one_end(enum unit unit, bool other, int kind, int n, int count, uint64_t seed) {
  struct random random = {seed};
  struct shape u = unit_of(unit, other);
  if (kind == FLAT_END) return end_of(u, n);
  int inner = small_divisor(&random, n / count);
  struct shape s = inner == 1 ? resized(&u, 0, extent_of(&u)) : nest(&random, &u, inner, 1);
  replace(&s, copies(&random, (enum kind)kind, n / count / inner, &s));
  free_shape(&u);
  return end_of(s, count);
}

/* From rank 0 to rank 1, then fifty back, and so on. */
static void exchange(enum unit unit, int send_kind, int receive_kind, int n, int send_count, int receive_count) {
  static uint64_t number = 0;
  uint64_t seed = 1000 * ++number;
  bool sends = (number / 50 % 2 == 0) == (me == 0);
  struct end e = sends ? one_end(unit, false, send_kind, n, send_count, seed + 1)
                       : one_end(unit, number % 3 != 0, receive_kind, n, receive_count, seed + 2);
  if (sends) {
    load(&e, seed);
    MPI_Send(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD);
    check_end(&e, seed, bytes_of(&e), "the sender's buffer of message %d", (int)number);
  } else {
    MPI_Status status = soiled();
    blank(&e);
    MPI_Recv(e.at, e.count, e.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &status);
    const char* from = send_kind == FLAT_END ? "flat" : kind_names[send_kind];
    const char* to = receive_kind == FLAT_END ? "flat" : kind_names[receive_kind];
    check_end(&e, seed, bytes_of(&e), "message %d, %d of %s, %s to %s", (int)number, n, unit_names[unit], from, to);
    char what[128];
    snprintf(what, sizeof what, "%d of %s, %d of %s to %d of %s", n, unit_names[unit], send_count, from, receive_count, to);
#ifdef MPICH /* MPI_Get_elements aborts there for arrays of several types */
    int count = -1;
    MPI_Get_count(&status, e.shape.type, &count);
    if (unit >= U_SHORT_INT)
      say("%s: source %d tag %d count %d", what, status.MPI_SOURCE, status.MPI_TAG, count);
    else
#endif
      say_status(&status, e.shape.type, "%s", what);
  }
  free_end(&e);
}

static void all_kinds(void) {
  static const int lengths[] = {1, 60, DESCRIPTOR, 1020};
  for (int unit = 0; unit < UNITS; ++unit)
    for (int kind = 0; kind < KINDS; ++kind)
      for (int i = 0; i < COUNT_OF(lengths); ++i) {
        int n = lengths[i], other = (kind * 5 + unit + i) % KINDS;
        int count = n % 3 == 0 ? 3 : 1;
        switch ((kind + unit + i) % 4) {
          case 0: exchange((enum unit)unit, kind, other, n, 1, count); break;
          case 1: exchange((enum unit)unit, kind, FLAT_END, n, count, 1); break;
          case 2: exchange((enum unit)unit, FLAT_END, kind, n, 1, count); break;
          default: exchange((enum unit)unit, other, kind, n, count, 1); break;
        }
      }
  for (int kind = 0; kind < KINDS; ++kind) exchange(kind % 2 ? U_DOUBLE : U_RECORD, kind, KINDS - 1 - kind, 120000, 2, 3);
}

/* Two arrays by their addresses. */
static void absolute_addresses(void) {
  static const int lengths[] = {1, 15, 500, 70000};
  for (int i = 0; i < COUNT_OF(lengths); ++i) {
    int n = lengths[i];
    int* first = allocate((size_t)n * 2 * sizeof *first);
    double* second = allocate((size_t)n * 3 * sizeof *second);
    for (int k = 0; k < 2 * n; ++k) first[k] = me == 0 ? k * 3 + 1 : -1;
    for (int k = 0; k < 3 * n; ++k) second[k] = me == 0 ? k * 0.5 : -1;
    MPI_Aint addresses[2];
    MPI_Datatype parts[2], both;
    MPI_Get_address(first + me, &addresses[0]);
    MPI_Get_address(second + 1 - me, &addresses[1]);
    MPI_Type_vector(n, 1, 2, MPI_INT, &parts[0]);
    MPI_Type_vector(n, 1, me == 0 ? 3 : 1, MPI_DOUBLE, &parts[1]);
    MPI_Type_create_struct(2, (int[]){1, 1}, addresses, parts, &both);
    MPI_Type_free(&parts[0]);
    MPI_Type_free(&parts[1]);
    MPI_Type_commit(&both);
    if (me == 0) {
      MPI_Send(MPI_BOTTOM, 1, both, 1, TAG, MPI_COMM_WORLD);
    } else {
      MPI_Status status = soiled();
      MPI_Recv(MPI_BOTTOM, 1, both, 0, TAG, MPI_COMM_WORLD, &status);
      int others = 0;
      for (int k = 0; k < n; ++k) others += first[2 * k + 1] != 6 * k + 1 || first[2 * k] != -1 || second[k] != (3 * k + 1) * 0.5;
      for (int k = n; k < 3 * n; ++k) others += second[k] != -1;
      if (others > 0) wrong("%d pairs by address: %d differ", n, others);
      say_status(&status, both, "%d pairs by address", n);
    }
    MPI_Type_free(&both);
    free(first);
    free(second);
  }
}

/* By value: a part of these bytes means nothing. */
static void long_doubles(void) {
  struct {
    int number;
    long double value;
  } into[500];
  struct {
    long double value;
    int number;
  } from[500 * 2];
  MPI_Datatype every_other, members, swapped;
  MPI_Type_vector(500, 1, 2, MPI_LONG_DOUBLE_INT, &every_other);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){16, 0}, (MPI_Datatype[]){MPI_LONG_DOUBLE, MPI_INT}, &members);
  MPI_Type_create_resized(members, 0, sizeof into[0], &swapped);
  MPI_Type_free(&members);
  MPI_Type_commit(&every_other);
  MPI_Type_commit(&swapped);
  for (int i = 0; i < 1000; ++i) from[i].value = from[i].number = i;
  for (int i = 0; i < 1000; ++i) from[i].value /= 3;
  for (int i = 0; i < 500; ++i) into[i].number = -1;
  if (me == 0) {
    MPI_Send(from, 1, every_other, 1, TAG, MPI_COMM_WORLD);
    MPI_Send(from + 1, 7, MPI_LONG_DOUBLE_INT, 1, TAG, MPI_COMM_WORLD);
  } else {
    MPI_Recv(into, 500, swapped, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int others = 0;
    for (int i = 0; i < 500; ++i) others += into[i].number != 2 * i || into[i].value != from[2 * i].value;
    MPI_Recv(into, 500, swapped, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 7; ++i) others += into[i].number != i + 1 || into[i].value != from[i + 1].value;
    CHECK(others == 0);
    say("ok long doubles");
  }
  MPI_Type_free(&every_other);
  MPI_Type_free(&swapped);
}

/* Counts of 0, and types without any data. */
static void nothing_at_all(void) {
  MPI_Datatype types[5];
  MPI_Type_contiguous(0, MPI_DOUBLE, &types[0]);
  MPI_Type_vector(0, 3, 5, MPI_INT, &types[1]);
  MPI_Type_create_struct(0, NULL, NULL, NULL, &types[2]);
  MPI_Type_create_hindexed(2, (int[]){0, 0}, (MPI_Aint[]){8, 16}, MPI_INT, &types[3]);
  MPI_Type_vector(100, 1, 2, MPI_DOUBLE, &types[4]);
  double unused[200];
  for (int i = 0; i < COUNT_OF(types); ++i) MPI_Type_commit(&types[i]);
  for (int i = 0; i < COUNT_OF(types); ++i) {
    int count = i == 4 ? 0 : 5;
    if (me == 0) {
      MPI_Send(unused, count, types[i], 1, TAG + i, MPI_COMM_WORLD);
      MPI_Send(NULL, 0, types[i], 1, TAG + i, MPI_COMM_WORLD);
    } else {
      MPI_Status status = soiled();
      MPI_Recv(unused, count, types[(i + 1) % 4], 0, TAG + i, MPI_COMM_WORLD, &status);
      say("nothing of type %d: source %d tag %d", i, status.MPI_SOURCE, status.MPI_TAG);
      MPI_Recv(unused, 2, types[4], 0, TAG + i, MPI_COMM_WORLD, &status);
      say_status(&status, types[4], "none of type %d", i);
    }
  }
  for (int i = 0; i < COUNT_OF(types); ++i) MPI_Type_free(&types[i]);
}

/* A sender may send bytes twice. */
static void overlaps(void) {
  static const int lengths[] = {20, 1000, 100000};
  for (int i = 0; i < COUNT_OF(lengths); ++i) {
    int n = lengths[i];
    int* data = allocate((size_t)n * 3 * sizeof *data);
    if (me == 0) {
      MPI_Datatype windows, steps;
      for (int k = 0; k < n + 2; ++k) data[k] = k % 30011;
      MPI_Type_vector(n, 3, 1, MPI_INT, &windows);
      MPI_Type_create_resized(MPI_INT, 0, 0, &steps);
      MPI_Type_commit(&windows);
      MPI_Type_commit(&steps);
      MPI_Send(data, 1, windows, 1, TAG, MPI_COMM_WORLD);
      MPI_Send(data + 5, n, steps, 1, TAG, MPI_COMM_WORLD);
      MPI_Type_free(&windows);
      MPI_Type_free(&steps);
    } else {
      int others = 0;
      MPI_Recv(data, 3 * n, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < 3 * n; ++k) others += data[k] != (k / 3 + k % 3) % 30011;
      MPI_Recv(data, n, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int k = 0; k < n; ++k) others += data[k] != 5;
      if (others > 0) wrong("%d overlapping windows: %d differ", n, others);
      say("ok %d overlapping windows", n);
    }
    free(data);
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  all_kinds();
  absolute_addresses();
  long_doubles();
  nothing_at_all();
  overlaps();
  return finish();
}
