/* Packing and unpacking in one piece and in several, and packed messages that meet typed ones. */
/* ranks: 2 */
#include "nests.h"
#include "units.h"

enum { TAG = 3 };

static struct end some_end(struct random* random, enum unit unit, bool other, int kind, int n, int count) {
  struct shape u = unit_of(unit, other);
  int inner = small_divisor(random, n / count);
  struct shape s = nest(random, &u, inner, 1);
  replace(&s, copies(random, (enum kind)kind, n / count / inner, &s));
  free_shape(&u);
  return end_of(s, count);
}

static int pack_size(const struct end* e, int count) {
  int bytes = -1;
  MPI_Pack_size(count, e->shape.type, MPI_COMM_WORLD, &bytes);
  return bytes;
}

/* Copy by copy out of one type, and by other portions into another. */
static void in_pieces(void) {
  static const int lengths[] = {6, 60, 1020, 18000};
  for (int unit = 0; unit < UNITS; ++unit)
    for (int kind = 0; kind < KINDS; ++kind) {
      int n = lengths[(unit + kind) % 4];
      uint64_t seed = (uint64_t)(unit * 100 + kind);
      struct random random = {seed};
      struct end from = some_end(&random, (enum unit)unit, false, kind, n, 6);
      struct end to = some_end(&random, (enum unit)unit, true, (kind + 3) % KINDS, n, 3);
      load(&from, seed);
      blank(&to);
      int room = pack_size(&from, 6), at = 0, done = 0;
      CHECK(room >= bytes_of(&from));
      char* packed = allocate((size_t)room);
      for (int copy = 0; copy < 6; copy += 1 + copy % 2) { /* 0, 1 and 2, 3 and 4, 5 */
        int count = copy % 2 ? 2 : 1;
        char* start = (char*)from.at + copy * extent_of(&from.shape);
        if (copy == 5) count = 1;
        MPI_Pack(start, count, from.shape.type, packed, room, &at, MPI_COMM_WORLD);
      }
      for (int copy = 0; copy < 3; copy += 2) {
        char* start = (char*)to.at + copy * extent_of(&to.shape);
        MPI_Unpack(packed, at, &done, start, copy == 0 ? 2 : 1, to.shape.type, MPI_COMM_WORLD);
      }
      check_end(&from, seed, bytes_of(&from), "what was packed: %d of %s", n, unit_names[unit]);
      check_end(&to, seed, bytes_of(&to), "%d of %s, %s to %s", n, unit_names[unit], kind_names[kind], kind_names[(kind + 3) % KINDS]);
      say("%d of %s from %s: room %d, packed %d, unpacked %d", n, unit_names[unit], kind_names[kind], room, at, done);
      free(packed);
      free_end(&from);
      free_end(&to);
    }
}

/* Several types in one buffer, sent as MPI_PACKED. */
static void several_types(void) {
  static const int lengths[] = {1, 20, 300, 9000, 70000};
  for (int i = 0; i < COUNT_OF(lengths); ++i) {
    int n = lengths[i], room = 0, at = 0;
    struct random random = {(uint64_t)i};
    struct end ends[3];
    for (int k = 0; k < 3; ++k) {
      ends[k] = some_end(&random, (enum unit)((k + i) % UNITS), me == 1, below(&random, KINDS), n, 1);
      room += pack_size(&ends[k], 1);
    }
    room += pack_size(&(struct end){.shape = {.type = MPI_INT}}, 1);
    char* packed = allocate((size_t)room);
    if (me == 0) {
      MPI_Pack(&n, 1, MPI_INT, packed, room, &at, MPI_COMM_WORLD);
      for (int k = 0; k < 3; ++k) {
        load(&ends[k], (uint64_t)(i + k));
        MPI_Pack(ends[k].at, 1, ends[k].shape.type, packed, room, &at, MPI_COMM_WORLD);
      }
      MPI_Send(packed, at, MPI_PACKED, 1, TAG, MPI_COMM_WORLD);
    } else {
      MPI_Status status = soiled();
      int told = 0, bytes = 0;
      MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
      say_probed(&status, MPI_PACKED, "packed: %d of three types", n);
      MPI_Recv(packed, room, MPI_PACKED, 0, TAG, MPI_COMM_WORLD, &status);
      MPI_Get_count(&status, MPI_PACKED, &bytes);
      MPI_Unpack(packed, bytes, &at, &told, 1, MPI_INT, MPI_COMM_WORLD);
      CHECK(told == n);
      for (int k = 0; k < 3; ++k) {
        blank(&ends[k]);
        MPI_Unpack(packed, bytes, &at, ends[k].at, 1, ends[k].shape.type, MPI_COMM_WORLD);
        check_end(&ends[k], (uint64_t)(i + k), bytes_of(&ends[k]), "%d of the type number %d", n, k);
      }
      CHECK(at == bytes);
    }
    free(packed);
    for (int k = 0; k < 3; ++k) free_end(&ends[k]);
  }
}

/* Typed at one end and packed at the other. */
static void packed_and_typed(void) {
  for (int i = 0; i < SIZES; ++i)
    for (int packs = 0; packs < 2; ++packs) {
      enum style style = (enum style)((i + packs + 2 * me) % STYLES);
      struct end e = end_with(sizes[i], style, (uint64_t)(i * 4 + packs * 2 + me));
      int room = pack_size(&e, e.count), at = 0;
      char* packed = allocate((size_t)room);
      if (me == 0) {
        load(&e, (uint64_t)i);
        if (packs) {
          MPI_Pack(e.at, e.count, e.shape.type, packed, room, &at, MPI_COMM_WORLD);
          MPI_Send(packed, at, MPI_PACKED, 1, TAG, MPI_COMM_WORLD);
        } else {
          MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
        }
      } else {
        MPI_Status status = soiled();
        int bytes = 0;
        blank(&e);
        if (packs) {
          MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
          say_status(&status, e.shape.type, "%ld bytes, packed to typed", sizes[i]);
        } else {
          MPI_Recv(packed, room, MPI_PACKED, 0, TAG, MPI_COMM_WORLD, &status);
          say_status(&status, MPI_PACKED, "%ld bytes, typed to packed", sizes[i]);
          MPI_Get_count(&status, MPI_PACKED, &bytes);
          MPI_Unpack(packed, bytes, &at, e.at, e.count, e.shape.type, MPI_COMM_WORLD);
        }
        check_end(&e, (uint64_t)i, sizes[i], "%ld bytes, packed at one end", sizes[i]);
      }
      free(packed);
      free_end(&e);
    }
}

/* The format that all MPIs share: big-endian. */
static void external(void) {
  int from[30], to[30] = {0};
  unsigned char packed[64];
  MPI_Aint bytes = 0, at = 0, done = 0;
  MPI_Datatype every_other;
  for (int i = 0; i < 30; ++i) from[i] = 0x01020304 * (i + 1);
  MPI_Type_vector(15, 1, 2, MPI_INT, &every_other);
  MPI_Type_commit(&every_other);
  MPI_Pack_external_size("external32", 1, every_other, &bytes);
  CHECK(bytes == 60);
  MPI_Pack_external("external32", from, 1, every_other, packed, sizeof packed, &at);
  CHECK(at == 60 && packed[0] == 1 && packed[3] == 4 && packed[4] == 3);
  MPI_Unpack_external("external32", packed, at, &done, to, 1, every_other);
  for (int i = 0; i < 30; ++i) CHECK(to[i] == (i % 2 == 0 ? from[i] : 0));
  MPI_Type_free(&every_other);
  say("ok external32");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  if (me == 0) in_pieces();
  several_types();
  packed_and_typed();
  external();
  return finish();
}
