/* Any number of ranks, on one node or several: everyone sends to everyone at once, then around a ring, one step after
 * another. */
/* ranks: 3 */
#include "check.h"

enum { TAG = 9, LONGEST = 30000 };

static const int lengths[] = {1, 7, 700, 2500, LONGEST};

static double value_of(int from, int to, int place) {
  return (double)(mixed((uint64_t)from << 40 ^ (uint64_t)to << 20 ^ (uint64_t)place) >> 12);
}

static void* allocate_doubles(size_t count) {
  double* made = malloc((count + 1) * sizeof *made);
  if (made == NULL) give_up("no memory");
  return made;
}

/* Every second number goes out; it comes in as every third. */
static void fill(double* out, int length, int to) {
  for (int i = 0; i < 2 * length; ++i) out[i] = i % 2 == 0 ? value_of(me, to, i / 2) : -2;
}

static void check(const double* in, int length, int from, const char* what) {
  long others = 0;
  for (int i = 0; i < 3 * length; ++i) others += in[i] != (i % 3 == 0 ? value_of(from, me, i / 3) : -1);
  if (others > 0) wrong("%s, %d numbers from %d: %ld differ", what, length, from, others);
}

static void one_length(int length) {
  size_t room = (size_t)length * 3;
  double* out = allocate_doubles(room * (size_t)everybody);
  double* in = allocate_doubles(room * (size_t)everybody);
  MPI_Request* requests = malloc((size_t)everybody * 2 * sizeof *requests);
  if (requests == NULL) give_up("no memory");
  MPI_Datatype second, third;
  MPI_Type_vector(length, 1, 2, MPI_DOUBLE, &second);
  MPI_Type_vector(length, 1, 3, MPI_DOUBLE, &third);
  MPI_Type_commit(&second);
  MPI_Type_commit(&third);

  for (size_t i = 0; i < room * (size_t)everybody; ++i) in[i] = -1;
  for (int peer = 0; peer < everybody; ++peer) {
    fill(out + room * (size_t)peer, length, peer);
    MPI_Irecv(in + room * (size_t)peer, 1, third, peer, TAG, MPI_COMM_WORLD, &requests[peer]);
  }
  for (int k = 0; k < everybody; ++k) {
    int peer = (me + k) % everybody;
    MPI_Isend(out + room * (size_t)peer, 1, second, peer, TAG, MPI_COMM_WORLD, &requests[everybody + k]);
  }
  for (int i = 0; i < 2 * everybody; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
  for (int peer = 0; peer < everybody; ++peer) check(in + room * (size_t)peer, length, peer, "at once");

  int next = (me + 1) % everybody, last = (me + everybody - 1) % everybody;
  for (int i = 0; i < 3 * length; ++i) in[i] = -1;
  fill(out, length, next);
  MPI_Sendrecv(out, 1, second, next, TAG, in, 1, third, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  check(in, length, last, "around");

  for (int i = 0; i < 3 * length; ++i) in[i] = -1;
  /* blocking, by turns; with an odd number of ranks the last one sends alone */
  for (int turn = 0; turn < 2 && everybody > 1; ++turn) {
    if ((me % 2 == 0) == (turn == 0)) MPI_Send(out, 1, second, next, TAG, MPI_COMM_WORLD);
    if ((last % 2 == 0) == (turn == 0)) MPI_Recv(in, 1, third, last, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  if (everybody > 1) check(in, length, last, "by turns");
  say("%d numbers", length);
  MPI_Type_free(&second);
  MPI_Type_free(&third);
  free(requests);
  free(in);
  free(out);
}

/* With the argument "crowd": as many ranks as a node may have CPUs, on few; the longest message is left out. */
int main(int argc, char** argv) {
  begin(&argc, &argv);
  bool crowd = argc > 1 && strcmp(argv[1], "crowd") == 0;
  for (int i = 0; i < COUNT_OF(lengths); ++i)
    if (!crowd || lengths[i] < LONGEST) one_length(lengths[i]);
  return finish();
}
