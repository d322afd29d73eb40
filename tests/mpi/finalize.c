/* What libraries do as late as they can: MPI_Finalize first ends what hangs on MPI_COMM_SELF, and messages go on until
 * then. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 5, EARLY = 6, LONG = 700 * KIB };

static struct end early; /* sent before MPI_Finalize, received within */
static MPI_Request begun = MPI_REQUEST_NULL;

/* Each to the other at once, then one after the other. */
static void exchange(int round) {
  for (int i = 0; i < SIZES; ++i) {
    MPI_Request requests[2];
    struct end out = end_with(sizes[i], (enum style)((i + round) % STYLES), (uint64_t)(round * 100 + i * 2 + me));
    struct end in = end_with(sizes[i], (enum style)((i + round + 1) % STYLES), (uint64_t)(round * 100 + 50 + i * 2 + me));
    load(&out, (uint64_t)(round * 100 + i + me));
    blank(&in);
    MPI_Irecv(in.at, in.count, in.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out.at, out.count, out.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &requests[1]);
    for (int k = 0; k < 2; ++k) MPI_Wait(&requests[k], MPI_STATUS_IGNORE);
    check_end(&in, (uint64_t)(round * 100 + i + 1 - me), sizes[i], "at once, %ld bytes", sizes[i]);
    blank(&in);
    if (me == 0) MPI_Send(out.at, out.count, out.shape.type, 1, TAG, MPI_COMM_WORLD);
    MPI_Recv(in.at, in.count, in.shape.type, 1 - me, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (me == 1) MPI_Send(out.at, out.count, out.shape.type, 0, TAG, MPI_COMM_WORLD);
    check_end(&in, (uint64_t)(round * 100 + i + 1 - me), sizes[i], "in turn, %ld bytes", sizes[i]);
    free_end(&out);
    free_end(&in);
  }
  say("round %d", round);
}

static int at_the_end(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)extra;
  const int round = *(int*)value;
  if (round == 1) {
    if (me == 1) MPI_Recv(early.at, early.count, early.shape.type, 0, EARLY, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&begun, MPI_STATUS_IGNORE);
    if (me == 1) check_end(&early, 77, LONG, "sent before");
  }
  exchange(round);
  if (round == 2) report();
  return MPI_SUCCESS;
}

/* The last one that is hung there goes first. */
int main(int argc, char** argv) {
  static int rounds[] = {2, 1};
  begin(&argc, &argv);
  for (int i = 0; i < COUNT_OF(rounds); ++i) {
    int key = 0;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, at_the_end, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &rounds[i]);
    MPI_Comm_free_keyval(&key);
  }
  exchange(0);
  early = end_with(LONG, (enum style)(me == 0 ? 1 : 2), (uint64_t)(900 + me));
  load(&early, 77);
  if (me == 1) blank(&early);
  if (me == 0) MPI_Isend(early.at, early.count, early.shape.type, 1, EARLY, MPI_COMM_WORLD, &begun);
  MPI_Finalize();
  return wrongs > 0 ? 1 : 0;
}
