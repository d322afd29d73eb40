/* Memory that begins and ends where nothing else may be touched, that cannot be written to, and that is the message's
 * own. */
/* ranks: 2 */
#include <sys/mman.h>

#include "nests.h"

enum { TAG = 6, PAGE = 4096 };

static const char constant[200 * KIB] = {1, 2, 3};

/* An end between two pages that must not be touched: as near to one of them as it can be. */
static void fence_in(struct end* e, bool at_end) {
  MPI_Aint last = e->count > 0 ? (e->count - 1) * extent_of(&e->shape) : 0;
  MPI_Aint low = e->shape.low + (last < 0 ? last : 0), high = e->shape.high + (last > 0 ? last : 0);
  size_t pages = (size_t)((e->count > 0 ? high - low : 0) + PAGE - 1) / PAGE;
  unsigned char* area = mmap(NULL, (pages + 2) * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) give_up("no memory");
  if (pages > 0 && mprotect(area + PAGE, pages * PAGE, PROT_READ | PROT_WRITE) != 0) give_up("no protection");
  free(e->memory);
  e->memory = area + PAGE;
  e->room = pages * PAGE;
  e->at = at_end ? e->memory + e->room - high : e->memory - low;
}

static void unfence(struct end* e) {
  munmap(e->memory - PAGE, e->room + 2 * PAGE);
  e->memory = NULL;
  free_end(e);
}

static void fenced(void) {
  for (int size = 0; size < SIZES; ++size)
    for (int style = 0; style < STYLES; ++style)
      for (int at_end = 0; at_end < 2; ++at_end) {
        uint64_t seed = (uint64_t)(size * 100 + style * 10 + at_end);
        struct end e = end_with(sizes[size], (enum style)((style + me * at_end) % STYLES), seed * 2 + (uint64_t)me);
        MPI_Status status = soiled();
        int room = 0, packed_bytes = 0, done = 0;
        fence_in(&e, at_end == 1);
        if (me == 0) {
          load(&e, seed);
          mprotect(e.memory, e.room, PROT_READ); /* a sender has no business to write */
          if (style % 2) MPI_Send(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
          if (style % 2 == 0) MPI_Ssend(e.at, e.count, e.shape.type, 1, TAG, MPI_COMM_WORLD);
        } else {
          blank(&e);
          MPI_Recv(e.at, e.count, e.shape.type, 0, TAG, MPI_COMM_WORLD, &status);
          check_end(&e, seed, sizes[size], "%ld between fences", sizes[size]);
          say_status(&status, e.shape.type, "%ld between fences", sizes[size]);
        }
        MPI_Pack_size(e.count, e.shape.type, MPI_COMM_WORLD, &room);
        struct end packed = end_of(basic(MPI_BYTE), (int)bytes_of(&e));
        if (room == packed.count) { /* nobody adds anything of his own */
          fence_in(&packed, at_end == 1);
          MPI_Pack(e.at, e.count, e.shape.type, packed.at, room, &packed_bytes, MPI_COMM_WORLD);
          mprotect(e.memory, e.room, PROT_READ | PROT_WRITE);
          if (packed.room > 0) mprotect(packed.memory, packed.room, PROT_READ);
          blank(&e);
          MPI_Unpack(packed.at, packed_bytes, &done, e.at, e.count, e.shape.type, MPI_COMM_WORLD);
          check_end(&e, seed, sizes[size], "%ld packed between fences", sizes[size]);
          unfence(&packed);
        } else {
          free_end(&packed);
        }
        unfence(&e);
      }
}

/* Sent from memory that was never writable, and from a mapping that both ranks have. */
static void constants(void) {
  char* into = allocate(sizeof constant);
  MPI_Datatype every_other;
  MPI_Type_vector(sizeof constant / 32, 16, 32, MPI_BYTE, &every_other);
  MPI_Type_commit(&every_other);
  for (int gaps = 0; gaps < 2; ++gaps) {
    int bytes = gaps ? sizeof constant / 2 : sizeof constant;
    if (me == 0 && gaps) MPI_Send(constant, 1, every_other, 1, TAG, MPI_COMM_WORLD);
    if (me == 0 && !gaps) MPI_Send(constant, bytes, MPI_BYTE, 1, TAG, MPI_COMM_WORLD);
    if (me == 1) {
      memset(into, -1, sizeof constant);
      MPI_Recv(into, bytes, MPI_BYTE, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      CHECK(into[0] == 1 && into[1] == 2 && into[2] == 3 && into[3] == 0 && into[bytes - 1] == 0);
      CHECK(gaps ? into[bytes] == -1 : memcmp(into, constant, sizeof constant) == 0);
    }
  }
  MPI_Type_free(&every_other);
  free(into);
  say("ok constants");
}

/* What MPI itself allocates. */
static void allocated(void) {
  for (int size = 0; size < SIZES; ++size) {
    double* data = NULL;
    int n = (int)(sizes[size] / 8);
    MPI_Alloc_mem((MPI_Aint)(3 * n + 3) * 8, MPI_INFO_NULL, &data);
    MPI_Datatype type;
    MPI_Type_vector(n, 1, 2 + me, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    for (int i = 0; i < 3 * n; ++i) data[i] = me == 0 ? i : -1;
    if (me == 0) MPI_Send(data, 1, type, 1, TAG, MPI_COMM_WORLD);
    if (me == 1) MPI_Recv(data, 1, type, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    int others = 0;
    for (int i = 0; i < 3 * n && me == 1; ++i) others += data[i] != (i % 3 == 0 ? i / 3 * 2 : -1);
    if (others > 0) wrong("%ld allocated by MPI: %d differ", sizes[size], others);
    MPI_Type_free(&type);
    MPI_Free_mem(data);
  }
  say("ok allocated");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  fenced();
  constants();
  allocated();
  return finish();
}
