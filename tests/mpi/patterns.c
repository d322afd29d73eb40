/* How programs use large messages. Argument: isend_many, thousands, halo, or big. */
/* ranks: 2 */
#include "check.h"

enum { TAG = 1 };

static double value_of(long place, int salt) { return (double)(mixed((uint64_t)place * 4 + (uint64_t)salt) >> 12); }

/* --- many sends at once, received from the last to the first ------------------------------------------------------ */

static void isend_many(int many, int doubles) {
  double* data = allocate((3 * (size_t)doubles + (size_t)many) * sizeof *data);
  MPI_Request* requests = allocate((size_t)many * sizeof(MPI_Request));
  MPI_Datatype every_third, pairs;
  long bytes = 0;
  MPI_Type_vector(doubles, 1, 3, MPI_DOUBLE, &every_third);
  MPI_Type_vector(doubles / 2, 2, 3, MPI_DOUBLE, &pairs);
  MPI_Type_commit(&every_third);
  MPI_Type_commit(&pairs);
  for (long i = 0; i < 3L * doubles + many; ++i) data[i] = me == 0 ? value_of(i, 0) : -1;
  for (int i = 0; i < many && me == 0; ++i) MPI_Isend(data + i, 1, every_third, 1, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = many - 1; i >= 0 && me == 1; --i) {
    MPI_Status status = soiled();
    long others = 0;
    int count = 0;
    MPI_Recv(data, 1, pairs, 0, i, MPI_COMM_WORLD, &status);
    for (long k = 0; k < doubles; ++k) others += data[k / 2 * 3 + k % 2] != value_of(i + 3 * k, 0);
    for (long k = 0; k < doubles / 2; ++k) others += data[3 * k + 2] != -1;
    if (others > 0) wrong("message %d of %d: %ld differ", i, many, others);
    MPI_Get_count(&status, MPI_BYTE, &count);
    bytes += count;
  }
  if (me == 0) MPI_Waitall(many, requests, MPI_STATUSES_IGNORE);
  say("%d messages, %ld bytes", many, bytes);
  MPI_Type_free(&every_third);
  MPI_Type_free(&pairs);
  free(requests);
  free(data);
}

/* --- a periodic field on two times two ranks ---------------------------------------------------------------------- */

enum { N = 400, WIDTH = 12, ROW = N + 2 * WIDTH, SIDES = 8, STEPS = 6 };

static const int sides[SIDES][2] = {{-1, -1}, {-1, 0}, {-1, 1}, {0, -1}, {0, 1}, {1, -1}, {1, 0}, {1, 1}};

/* The strip of the field on one side, within it or in the halo around it. */
static MPI_Datatype strip(const int* side, bool halo) {
  MPI_Datatype type;
  int part[2], start[2];
  for (int d = 0; d < 2; ++d) {
    part[d] = side[d] == 0 ? N : WIDTH;
    start[d] = side[d] <= 0 ? WIDTH : N;
    if (halo && side[d] != 0) start[d] = side[d] < 0 ? 0 : N + WIDTH;
  }
  MPI_Type_create_subarray(2, (int[]){ROW, ROW}, part, start, MPI_ORDER_C, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  return type;
}

static void halo(void) {
  double (*field)[ROW] = allocate(sizeof(double[ROW][ROW]));
  MPI_Comm grid;
  MPI_Datatype out[SIDES], in[SIDES];
  MPI_Request requests[2 * SIDES];
  int own[2], peers[SIDES];
  MPI_Cart_create(MPI_COMM_WORLD, 2, (int[]){2, 2}, (int[]){1, 1}, 1, &grid);
  int rank;
  MPI_Comm_rank(grid, &rank);
  MPI_Cart_coords(grid, rank, 2, own);
  for (int i = 0; i < SIDES; ++i) {
    MPI_Cart_rank(grid, (int[]){own[0] + sides[i][0], own[1] + sides[i][1]}, &peers[i]);
    out[i] = strip(sides[i], false);
    in[i] = strip(sides[i], true);
    MPI_Send_init(field, 1, out[i], peers[i], i, grid, &requests[i]);
    MPI_Recv_init(field, 1, in[i], peers[i], SIDES - 1 - i, grid, &requests[SIDES + i]);
  }
  for (int step = 0; step < STEPS; ++step) {
    for (int y = 0; y < ROW; ++y)
      for (int x = 0; x < ROW; ++x) {
        bool inside = y >= WIDTH && y < N + WIDTH && x >= WIDTH && x < N + WIDTH;
        field[y][x] = inside ? value_of((own[0] * N + y - WIDTH) * 2L * N + own[1] * N + x - WIDTH, step) : -1;
      }
    if (step % 3 == 0) {
      MPI_Request now[2 * SIDES];
      for (int i = 0; i < SIDES; ++i) MPI_Irecv(field, 1, in[i], peers[i], SIDES - 1 - i, grid, &now[i]);
      for (int i = 0; i < SIDES; ++i) MPI_Isend(field, 1, out[i], peers[i], i, grid, &now[SIDES + i]);
      MPI_Waitall(2 * SIDES, now, MPI_STATUSES_IGNORE);
    } else if (step % 3 == 1) {
      MPI_Startall(2 * SIDES, requests);
      MPI_Waitall(2 * SIDES, requests, MPI_STATUSES_IGNORE);
    } else {
      for (int i = 0; i < SIDES; ++i) { /* what goes out on one side comes in on the other */
        int opposite = SIDES - 1 - i;
        MPI_Sendrecv(field, 1, out[i], peers[i], i, field, 1, in[opposite], peers[opposite], i, grid, MPI_STATUS_IGNORE);
      }
    }
    long others = 0;
    for (int y = 0; y < ROW; ++y)
      for (int x = 0; x < ROW; ++x) {
        long row = (own[0] * N + y - WIDTH + 2 * N) % (2 * N), column = (own[1] * N + x - WIDTH + 2 * N) % (2 * N);
        others += field[y][x] != value_of(row * 2 * N + column, step);
      }
    if (others > 0) wrong("halo, step %d: %ld differ", step, others);
    say("step %d", step);
  }
  for (int i = 0; i < SIDES; ++i) {
    MPI_Type_free(&out[i]);
    MPI_Type_free(&in[i]);
    MPI_Request_free(&requests[i]);
    MPI_Request_free(&requests[SIDES + i]);
  }
  MPI_Comm_free(&grid);
  free(field);
}

/* --- 70 MiB, beside short messages -------------------------------------------------------------------------------- */

enum { BIG = 70 * MIB / 8 };

/* Of every `of` doubles `width` are data. */
static void big_message(int from, int width, int of, int to_width, int to_of) {
  int own_width = me == from ? width : to_width, own_of = me == from ? of : to_of;
  long room = (long)BIG / own_width * own_of;
  double* data = allocate((size_t)room * sizeof *data);
  MPI_Datatype type;
  MPI_Request request;
  MPI_Status status = soiled();
  char text[DESCRIPTOR];
  MPI_Type_vector(BIG / own_width, own_width, own_of, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  for (long i = 0; i < room; ++i) data[i] = me == from ? (double)i : -1;
  if (me == from) MPI_Isend(data, 1, type, 1 - me, TAG, MPI_COMM_WORLD, &request);
  if (me != from) MPI_Irecv(data, 1, type, 1 - me, TAG, MPI_COMM_WORLD, &request);
  for (int i = 0; i < 50; ++i) {
    memset(text, me == from ? i : -1, sizeof text);
    if (me == from) MPI_Send(text, sizeof text, MPI_BYTE, 1 - me, TAG + 1, MPI_COMM_WORLD);
    if (me != from) MPI_Recv(text, sizeof text, MPI_BYTE, 1 - me, TAG + 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CHECK(text[0] == i && text[DESCRIPTOR - 1] == i);
    int flag;
    if (request != MPI_REQUEST_NULL) MPI_Test(&request, &flag, &status);
  }
  if (request != MPI_REQUEST_NULL) MPI_Wait(&request, &status);
  long others = 0;
  for (long i = 0; i < room && me != from; ++i) {
    long nth = i / own_of * own_width + i % own_of;
    others += data[i] != (i % own_of < own_width ? (double)(nth / width * of + nth % width) : -1);
  }
  if (others > 0) wrong("70 MiB: %ld differ", others);
  if (me != from) say_status(&status, type, "70 MiB, %d of %d into %d of %d", width, of, to_width, to_of);
  MPI_Type_free(&type);
  free(data);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  const char* what = argc > 1 ? argv[1] : "isend_many";
  if (strcmp(what, "isend_many") == 0) isend_many(200, 300 * KIB / 8);
  if (strcmp(what, "thousands") == 0) isend_many(3000, 10 * KIB / 8);
  if (strcmp(what, "halo") == 0) halo();
  if (strcmp(what, "big") == 0) {
    big_message(0, 2, 3, 5, 7);
    big_message(1, 1, 1, 1, 1);
  }
  return finish();
}
