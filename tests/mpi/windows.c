/* One-sided operations with types of the program's, while large messages are under way. */
/* ranks: 2 */
#include "nests.h"

enum { TAG = 3, N = 60000 };

static MPI_Win window;
static double* exposed;

/* Every third double of ours into every other of theirs. */
static void put(int kind, MPI_Datatype own, MPI_Datatype theirs, double* data) {
  for (int i = 0; i < 3 * N; ++i) exposed[i] = -1;
  for (int i = 0; i < 3 * N; ++i) data[i] = me * 1e6 + i;
  MPI_Win_fence(0, window);
  if (kind == 0) MPI_Put(data, 1, own, 1 - me, 0, 1, theirs, window);
  if (kind == 1) MPI_Accumulate(data, 1, own, 1 - me, 0, 1, theirs, MPI_SUM, window);
  MPI_Win_fence(0, window);
  int others = 0;
  for (int i = 0; i < 3 * N; ++i) {
    double wanted = i % 2 == 0 && i / 2 < N ? (1 - me) * 1e6 + i / 2 * 3 - (kind == 1) : -1;
    others += exposed[i] != wanted;
  }
  CHECK(others == 0);
  say("%s", kind == 0 ? "put" : "accumulated");
}

static void get(MPI_Datatype own, MPI_Datatype theirs, double* data) {
  for (int i = 0; i < 3 * N; ++i) exposed[i] = me * 1e6 + i;
  for (int i = 0; i < 3 * N; ++i) data[i] = -1;
  MPI_Win_fence(0, window);
  MPI_Get(data, 1, own, 1 - me, 0, 1, theirs, window);
  MPI_Win_fence(0, window);
  int others = 0;
  for (int i = 0; i < 3 * N; ++i) others += data[i] != (i % 3 == 0 ? (1 - me) * 1e6 + i / 3 * 2 : -1);
  CHECK(others == 0);
  say("got");
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  double* data = allocate(3L * N * sizeof *data);
  MPI_Datatype own, theirs;
  MPI_Win_allocate(3L * N * 8, 8, MPI_INFO_NULL, MPI_COMM_WORLD, &exposed, &window);
  MPI_Type_vector(N, 1, 3, MPI_DOUBLE, &own);
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &theirs);
  MPI_Type_commit(&own);
  MPI_Type_commit(&theirs);
  for (int size = SIZES - 3; size < SIZES; ++size) {
    struct end out = end_with(sizes[size], (enum style)(1 + me), (uint64_t)me), in = end_with(sizes[size], NESTED, (uint64_t)me + 2);
    MPI_Request requests[2];
    MPI_Status statuses[2];
    soil(statuses, 2);
    load(&out, (uint64_t)me);
    blank(&in);
    MPI_Isend(out.at, out.count, out.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &requests[0]);
    put(0, own, theirs, data);
    MPI_Irecv(in.at, in.count, in.shape.type, 1 - me, TAG, MPI_COMM_WORLD, &requests[1]);
    put(1, own, theirs, data);
    get(own, theirs, data);
    MPI_Waitall(2, requests, statuses);
    check_end(&in, (uint64_t)(1 - me), sizes[size], "beside a window, %ld", sizes[size]);
    say_status(&statuses[1], in.shape.type, "beside a window, %ld", sizes[size]);
    free_end(&out);
    free_end(&in);
  }
  MPI_Type_free(&own);
  MPI_Type_free(&theirs);
  MPI_Win_free(&window);
  free(data);
  return finish();
}
