/* How much came: fewer elements than were asked for, parts of an element, and messages of no fitting length. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 1 };

static void say_counts(const MPI_Status* status, MPI_Datatype type, const char* what, long n) {
  MPI_Count elements = -1;
  say_probed(status, type, "%s, %ld", what, n);
  MPI_Get_elements_x(status, type, &elements);
  char text[24];
  say("Get_elements_x %s", number_text(text, sizeof text, (long long)elements));
}

/* Every size into receives of at least that much, by one large type, by many small ones, and by probes. */
static void fewer(void) {
  for (int size = 0; size < SIZES; ++size)
    for (int more = 0; more < 3 && size + more < SIZES; ++more) {
      long sent = sizes[size], room = sizes[size + more];
      struct shape byte = basic(MPI_BYTE);
      struct random random = {(uint64_t)(size * 10 + more)};
      struct end e;
      if (me == 0 || room == 0) {
        e = end_of(byte, (int)sent);
      } else {
        struct shape block = copies(&random, VECTOR, room % KIB == 0 ? 256 : 1, &byte);
        e = end_of(copies(&random, more == 0 ? HINDEXED : SUBARRAY_C, (int)(room / block.size), &block), 1);
        free_shape(&block);
      }
      if (me == 0) {
        load(&e, (uint64_t)(size + more));
        MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
      } else {
        MPI_Status status = soiled();
        blank(&e);
        MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
        say_counts(&status, e.shape.type, "probed", room);
        MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
        say_counts(&status, e.shape.type, "received", room);
        check_end(&e, (uint64_t)(size + more), sent, "%ld of %ld", sent, room);
      }
      free_end(&e);
    }
}

/* Ints into threes of them, with gaps: the last one may be incomplete. */
static void threes(void) {
  static const int lengths[] = {0, 1, 2, 3, 4, 5, 15, 16, 1000, 3000, 100000, 100001, 100002};
  for (int i = 0; i < COUNT_OF(lengths); ++i) {
    int n = lengths[i];
    struct shape unit = basic(MPI_INT);
    struct shape three = nothing();
    for (int k = 0; k < 3; ++k) add_shape(&three, &unit, (k < 2 ? k : 4) * 4);
    MPI_Type_create_struct(2, (int[]){2, 1}, (MPI_Aint[]){0, 16}, (MPI_Datatype[]){MPI_INT, MPI_INT}, &three.type);
    replace(&three, resized(&three, 0, 24));
    struct end e = me == 0 ? end_of(unit, n) : end_of(three, 40000);
    if (me == 0) {
      load(&e, (uint64_t)i);
      MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
      free_shape(&three);
    } else {
      MPI_Status status = soiled();
      blank(&e);
      MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
      say_counts(&status, e.shape.type, "threes", n);
      say_counts(&status, MPI_INT, "ints", n);
      check_end(&e, (uint64_t)i, 4L * n, "%d ints in threes", n);
      free_shape(&unit);
    }
    free_end(&e);
  }
}

/* Records of an int and two doubles, of which a part comes. */
static void records(void) {
  static const int lengths[] = {0, 1, 2, 3, 4, 5, 6, 7, 3000, 3001, 90001, 90002, 90003};
  for (int i = 0; i < COUNT_OF(lengths); ++i) {
    int n = lengths[i]; /* members */
    MPI_Datatype record, whole, parts;
    MPI_Type_create_struct(2, (int[]){1, 2}, (MPI_Aint[]){0, 8}, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &record);
    MPI_Type_contiguous(n / 3, record, &whole);
    int rest = n % 3;
    MPI_Type_create_struct(3, (int[]){1, rest > 0, rest > 1}, (MPI_Aint[]){0, n / 3 * 24, n / 3 * 24 + 8},
                           (MPI_Datatype[]){whole, MPI_INT, MPI_DOUBLE}, &parts);
    MPI_Type_free(&whole);
    MPI_Type_commit(&record);
    MPI_Type_commit(&parts);
    struct member {
      int number;
      double values[2];
    }* data = allocate(40000 * sizeof *data);
    for (int k = 0; k < 40000; ++k) data[k] = me == 0 ? (struct member){k, {k + 0.25, k + 0.5}} : (struct member){-1, {-1, -1}};
    if (me == 0) {
      MPI_Send(data, 1, parts, 1, TAG, MPI_COMM_WORLD);
    } else {
      MPI_Status status = soiled();
      int others = 0;
      MPI_Recv(data, 40000, record, 0, TAG, MPI_COMM_WORLD, &status);
      say_counts(&status, record, "members", n);
      for (int k = 0; k < 40000; ++k) {
        others += data[k].number != (3 * k < n ? k : -1);
        for (int v = 0; v < 2; ++v) others += data[k].values[v] != (3 * k + 1 + v < n ? k + 0.25 * (v + 1) : -1);
      }
      if (others > 0) wrong("%d members of records: %d differ", n, others);
    }
    MPI_Type_free(&record);
    MPI_Type_free(&parts);
    free(data);
  }
}

/* What the program itself says in a status. */
static void own_status(void) {
  MPI_Status status = soiled();
  memset(&status, 0, sizeof status);
  status.MPI_SOURCE = 3;
  status.MPI_TAG = 4;
  MPI_Status_set_cancelled(&status, 1);
  MPI_Status_set_elements_x(&status, MPI_DOUBLE, (MPI_Count)5000000000);
  MPI_Count elements = 0;
  int count = 0, cancelled = 0;
  MPI_Get_elements_x(&status, MPI_DOUBLE, &elements);
  MPI_Get_count(&status, MPI_DOUBLE, &count);
  MPI_Test_cancelled(&status, &cancelled);
  say("own status: elements %lld count %s cancelled %d", (long long)elements, count == MPI_UNDEFINED ? "undefined" : "defined", cancelled);
}

#if MPI_VERSION >= 4
/* The calls whose counts are MPI_Count. */
static void large_counts(void) {
  for (int i = 0; i < SIZES; ++i) {
    struct end e = end_with(sizes[i], (enum style)((i + me) % STYLES), (uint64_t)(50 + 2 * i + me));
    MPI_Request request;
    MPI_Status status = soiled();
    MPI_Count count = -1, elements = -1;
    for (int blocking = 0; blocking < 2; ++blocking) {
      me == 0 ? load(&e, (uint64_t)i) : blank(&e);
      if (me == 0 && blocking) MPI_Send_c(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
      if (me == 0 && !blocking) MPI_Isend_c(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD, &request);
      if (me == 1 && blocking) MPI_Recv_c(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
      if (me == 1 && !blocking) MPI_Irecv_c(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &request);
      if (!blocking) MPI_Wait(&request, &status);
      if (me == 0) continue;
      check_end(&e, (uint64_t)i, sizes[i], "%ld by large counts", sizes[i]);
      MPI_Get_count_c(&status, e.shape.type, &count);
      MPI_Get_elements_c(&status, e.shape.type, &elements);
      say("%ld by large counts: count %lld elements %lld", sizes[i], (long long)count, (long long)elements);
    }
    MPI_Count room = 0, at = 0, done = 0;
    load(&e, (uint64_t)i);
    MPI_Pack_size_c(e.count, e.shape.type, MPI_COMM_WORLD, &room);
    char* packed = allocate((size_t)room);
    MPI_Pack_c(e.at, e.count, e.shape.type, packed, room, &at, MPI_COMM_WORLD);
    blank(&e);
    MPI_Unpack_c(packed, at, &done, e.at, e.count, e.shape.type, MPI_COMM_WORLD);
    check_end(&e, (uint64_t)i, sizes[i], "%ld packed by large counts", sizes[i]);
    say("room %lld packed %lld unpacked %lld", (long long)room, (long long)at, (long long)done);
    free(packed);
    free_end(&e);
  }
}

/* A type made by a call of that kind. */
static void large_types(void) {
  enum { N = 50000 };
  double* data = allocate(3L * N * sizeof *data);
  MPI_Datatype type;
  for (int k = 0; k < 3 * N; ++k) data[k] = me == 0 ? k : -1;
  if (me == 0) MPI_Type_vector_c(N, 2, 3, MPI_DOUBLE, &type);
  if (me == 1) MPI_Type_create_hindexed_block_c(2, N, (MPI_Count[]){N * 8L, 0}, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  if (me == 0) MPI_Send(data, 1, type, 1, TAG, MPI_COMM_WORLD);
  if (me == 1) {
    MPI_Recv(data, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int others = 0;
    for (int k = 0; k < 3 * N; ++k) {
      int nth = (k + N) % (2 * N);
      others += data[k] != (k < 2 * N ? nth / 2 * 3 + nth % 2 : -1);
    }
    CHECK(others == 0);
    say("ok types by large counts");
  }
  MPI_Type_free(&type);
  free(data);
}
#endif

int main(int argc, char** argv) {
  begin(&argc, &argv);
  fewer();
  threes();
  records();
  own_status();
#if MPI_VERSION >= 4
  large_counts();
  large_types();
#endif
  return finish();
}
