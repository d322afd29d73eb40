/* Processes that are no ranks of this job's world: spawned ones, with the library where this one has it, and the
 * communicators that lead to them. */
/* ranks: 1 */
#include "../check.h"

enum { TAG = 4, N = 40000 };

/* Every second number there, every third back. */
static void talk_to(MPI_Comm comm, int peer, bool first, const char* what) {
  double* data = malloc(3 * N * sizeof *data);
  if (data == NULL) give_up("no memory");
  MPI_Datatype second, third;
  MPI_Type_vector(N, 1, 2, MPI_DOUBLE, &second);
  MPI_Type_vector(N, 1, 3, MPI_DOUBLE, &third);
  MPI_Type_commit(&second);
  MPI_Type_commit(&third);
  for (int turn = 0; turn < 2; ++turn) {
    bool sends = first == (turn == 0);
    for (int i = 0; i < 3 * N; ++i) data[i] = sends ? turn * 1e6 + i : -1;
    if (sends) {
      MPI_Send(data, 1, turn == 0 ? second : third, peer, TAG, comm);
      continue;
    }
    MPI_Recv(data, 1, turn == 0 ? third : second, peer, TAG, comm, MPI_STATUS_IGNORE);
    long others = 0;
    int to = turn == 0 ? 3 : 2, from = 5 - to;
    for (int i = 0; i < 3 * N; ++i) others += data[i] != (i % to == 0 && i / to < N ? turn * 1e6 + i / to * from : -1);
    if (others > 0) wrong("%s: %ld differ", what, others);
  }
  MPI_Type_free(&second);
  MPI_Type_free(&third);
  free(data);
  say("%s", what);
}

static void with_others(MPI_Comm inter, bool child) {
  MPI_Comm all;
  int rank = 0;
  talk_to(inter, 0, !child, "between groups");
  MPI_Intercomm_merge(inter, child, &all);
  MPI_Comm_rank(all, &rank);
  talk_to(all, 1 - rank, !child, "in one group");
  MPI_Datatype second;
  double out[8], in[8];
  MPI_Type_vector(2, 1, 2, MPI_DOUBLE, &second);
  MPI_Type_commit(&second);
  for (int i = 0; i < 8; ++i) {
    out[i] = rank * 10 + i;
    in[i] = -1;
  }
  int counts[] = {1, 1}, places[] = {0, 32};
  MPI_Datatype types[] = {second, second};
  MPI_Alltoallw(out, counts, places, types, in, counts, places, types, all);
  CHECK(in[0] == rank * 4 && in[2] == rank * 4 + 2 && in[4] == 10 + rank * 4 && in[6] == 12 + rank * 4);
  CHECK(in[1] == -1 && in[3] == -1 && in[5] == -1 && in[7] == -1);
  MPI_Type_free(&second);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&inter);
}

int main(int argc, char** argv) {
  MPI_Comm inter;
  begin(&argc, &argv);
  MPI_Comm_get_parent(&inter);
  if (inter != MPI_COMM_NULL) {
    with_others(inter, true);
    int result = wrongs > 0;
    MPI_Comm_free(&talk);
    MPI_Finalize();
    return result;
  }
  /* env, since only the ranks have the library, not their launcher. */
  const char* library = getenv("LD_PRELOAD");
  char loaded[4096];
  snprintf(loaded, sizeof loaded, "LD_PRELOAD=%s", library != NULL ? library : "");
  char* arguments[] = {loaded, argv[0], NULL};
  MPI_Comm_spawn("/usr/bin/env", arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &inter, MPI_ERRCODES_IGNORE);
  with_others(inter, false);
  return finish();
}
