/* Collective operations of blocks with gaps: every kind, blocking, with a request and persistent, in place, on several
 * communicators. */
/* ranks: 4 */
#include "blocks.h"

/* MPICH 4.0 counts the uses of a persistent operation's datatypes wrong. */
#if (MPI_VERSION >= 4 && !(defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000)) || \
    (defined(OMPI_MAJOR_VERSION) && OMPI_MAJOR_VERSION >= 5)
#define HAS_PERSISTENT 1
#else
#define HAS_PERSISTENT 0
#endif

enum mode { NOW, LATER, PERSISTENT, MODES };
static const char* const mode_names[] = {"", " with a request", " persistent"};

static MPI_Comm comm;
static int rank, size, round_number;
static enum mode mode;
static struct random shared; /* the same on all ranks */
static struct random own;
static const char* where;

static uint64_t seed_of(int from, int to) { return mixed((uint64_t)(round_number * 10000 + from * 100 + to)) | 1; }

static void wait_for(MPI_Request* request) {
  int flag = 0;
  if (round_number % 3 == 0) MPI_Wait(request, MPI_STATUS_IGNORE);
  if (round_number % 3 == 1) MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
  while (round_number % 3 == 2 && !flag) MPI_Test(request, &flag, MPI_STATUS_IGNORE);
}

#if HAS_PERSISTENT
#define RUN_PERSISTENT(name, ...)                                  \
  do {                                                             \
    MPI_##name##_init(__VA_ARGS__, comm, MPI_INFO_NULL, &request); \
    for (int turn = 0; turn < 3; ++turn) {                         \
      MPI_Start(&request);                                         \
      wait_for(&request);                                          \
    }                                                              \
    MPI_Request_free(&request);                                    \
  } while (false)
#else
#define RUN_PERSISTENT(name, ...) MPI_##name(__VA_ARGS__, comm)
#endif

#define RUN(name, later, ...)                   \
  do {                                          \
    MPI_Request request;                        \
    if (mode == NOW) {                          \
      MPI_##name(__VA_ARGS__, comm);            \
    } else if (mode == LATER) {                 \
      MPI_##later(__VA_ARGS__, comm, &request); \
      wait_for(&request);                       \
    } else {                                    \
      RUN_PERSISTENT(name, __VA_ARGS__);        \
    }                                           \
  } while (false)

static void done(const char* what, struct side* s, const uint64_t* seeds) {
  char text[100];
  snprintf(text, sizeof text, "%s%s, %s", what, mode_names[mode], where);
  if (s != NULL) check_side(s, seeds, text);
  say("checked %s", text);
}

static void fill_side(struct side* s, const uint64_t* seeds) { fill(s, s->memory, seeds); }

/* How many elements go from one rank to another; symmetric, so that it can be done in place. */
static int counts_of[MOST_RANKS][MOST_RANKS];
static int doubles;

static void choose(bool even) {
  static const int lengths[] = {1, 3, 16, 100, 800, 3000};
  doubles = lengths[below(&shared, COUNT_OF(lengths))];
  int all = 1 + below(&shared, 3);
  for (int i = 0; i < MOST_RANKS; ++i)
    for (int k = 0; k <= i; ++k) counts_of[i][k] = counts_of[k][i] = even ? all : below(&shared, 4);
}

static void seeds_to(uint64_t* seeds) {
  for (int i = 0; i < size; ++i) seeds[i] = seed_of(rank, i);
}
static void seeds_from(uint64_t* seeds) {
  for (int i = 0; i < size; ++i) seeds[i] = seed_of(i, rank);
}

static void everyone_to_everyone(void) {
  uint64_t to[MOST_RANKS], from[MOST_RANKS];
  seeds_to(to);
  seeds_from(from);
  for (int in_place = 0; in_place < 2; ++in_place) {
    for (int kind = 0; kind < 3; ++kind) {
      static const char* const names[] = {"Alltoall",          "Alltoallv",          "Alltoallw",
                                          "Alltoall in place", "Alltoallv in place", "Alltoallw in place"};
#ifdef OPEN_MPI /* not tried in place with a request */
      if (in_place && mode != NOW) continue;
#endif
      choose(kind == 0);
      enum order order = kind == 0 ? BEHIND_ONE_ANOTHER : kind == 1 ? ANYWHERE : BY_BYTES;
      struct side out = side_of(&own, size, counts_of[rank], doubles, order);
      struct random same = shared; /* in place, both ends of a message have the same type */
      struct side in = side_of(in_place ? &same : &own, size, counts_of[rank], doubles, order == BY_BYTES && in_place ? ANYWHERE : order);
      fill_side(&out, to);
      fill_side(&in, in_place ? to : (uint64_t[MOST_RANKS]){NO_SEED});
      const void* sent = in_place ? MPI_IN_PLACE : out.base;
      if (kind == 0) RUN(Alltoall, Ialltoall, sent, out.counts[0], out.types[0], in.base, in.counts[0], in.types[0]);
      if (kind == 1) RUN(Alltoallv, Ialltoallv, sent, out.counts, out.places, out.types[0], in.base, in.counts, in.places, in.types[0]);
      if (kind == 2) RUN(Alltoallw, Ialltoallw, sent, out.counts, out.bytes_at, out.types, in.base, in.counts, in.bytes_at, in.types);
      done(names[kind + 3 * in_place], &in, from);
      free_side(&out);
      free_side(&in);
      ++round_number;
      seeds_to(to);
      seeds_from(from);
    }
  }
}

static void everyone_to_all(void) {
  for (int kind = 0; kind < 2; ++kind) {
    for (int in_place = 0; in_place < 2; ++in_place) {
#ifdef OPEN_MPI
      if (in_place && mode == PERSISTENT) continue; /* Open MPI 5.0 never ends those */
#endif
      choose(kind == 0);
      uint64_t all[MOST_RANKS], mine[MOST_RANKS] = {NO_SEED};
      for (int i = 0; i < size; ++i) all[i] = seed_of(i, 0);
      struct side out = side_of(&own, 1, counts_of[0] + rank, doubles, BEHIND_ONE_ANOTHER);
      struct side in = side_of(&own, size, counts_of[0], doubles, kind == 0 ? BEHIND_ONE_ANOTHER : ANYWHERE);
      fill_side(&out, all + rank);
      mine[rank] = in_place ? all[rank] : NO_SEED;
      fill_side(&in, mine);
      const void* sent = in_place ? MPI_IN_PLACE : out.base;
      if (kind == 0) RUN(Allgather, Iallgather, sent, out.counts[0], out.types[0], in.base, in.counts[0], in.types[0]);
      if (kind == 1) RUN(Allgatherv, Iallgatherv, sent, out.counts[0], out.types[0], in.base, in.counts, in.places, in.types[0]);
      done(kind == 0 ? "Allgather" : "Allgatherv", &in, all);
      free_side(&out);
      free_side(&in);
      ++round_number;
    }
  }
}

static void to_one_and_back(void) {
  for (int kind = 0; kind < 2; ++kind) {
    for (int in_place = 0; in_place < 2; ++in_place) {
      choose(kind == 0);
      int root = below(&shared, size);
      uint64_t all[MOST_RANKS], before[MOST_RANKS] = {NO_SEED};
      for (int i = 0; i < size; ++i) all[i] = seed_of(i, 0);
      enum order order = kind == 0 ? BEHIND_ONE_ANOTHER : ANYWHERE;
      struct side one = side_of(&own, 1, counts_of[0] + rank, doubles, BEHIND_ONE_ANOTHER);
      struct side many = side_of(&own, size, counts_of[0], doubles, order);
      if (in_place && rank == root) before[rank] = all[rank];
      fill_side(&one, all + rank);
      fill_side(&many, before);
      const void* sent = in_place && rank == root ? MPI_IN_PLACE : one.base;
      if (kind == 0) RUN(Gather, Igather, sent, one.counts[0], one.types[0], many.base, many.counts[0], many.types[0], root);
      if (kind == 1) RUN(Gatherv, Igatherv, sent, one.counts[0], one.types[0], many.base, many.counts, many.places, many.types[0], root);
      done(kind == 0 ? "Gather" : "Gatherv", &many, rank == root ? all : before);

      ++round_number;
      for (int i = 0; i < size; ++i) all[i] = seed_of(i, 0);
      fill_side(&many, all);
      fill_side(&one, (uint64_t[MOST_RANKS]){NO_SEED});
      void* into = in_place && rank == root ? MPI_IN_PLACE : one.base;
      if (kind == 0) RUN(Scatter, Iscatter, many.base, many.counts[0], many.types[0], into, one.counts[0], one.types[0], root);
      if (kind == 1) RUN(Scatterv, Iscatterv, many.base, many.counts, many.places, many.types[0], into, one.counts[0], one.types[0], root);
      done(kind == 0 ? "Scatter" : "Scatterv", &one, into == MPI_IN_PLACE ? (uint64_t[MOST_RANKS]){NO_SEED} : all + rank);
      free_side(&one);
      free_side(&many);
      ++round_number;
    }
  }
  choose(true);
  int root = below(&shared, size);
  uint64_t seed[] = {seed_of(root, 0)};
  struct side all = side_of(&own, 1, counts_of[0], doubles, BEHIND_ONE_ANOTHER);
  fill_side(&all, rank == root ? seed : (uint64_t[MOST_RANKS]){NO_SEED});
  RUN(Bcast, Ibcast, all.base, all.counts[0], all.types[0], root);
  done("Bcast", &all, seed);
  free_side(&all);
  ++round_number;
}

static void all_kinds(const char* name, MPI_Comm in) {
  where = name;
  comm = in;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  for (mode = NOW; mode < MODES; ++mode) {
    everyone_to_everyone();
    everyone_to_all();
    to_one_and_back();
  }
}

/* --- neighbours --------------------------------------------------------------------------------------------------- */

/* A ring, or a line, whose ends have nobody beyond: what would come from there stays as it was. */
static void neighbors(const char* name, MPI_Comm in, bool ring, int to_left, int from_left) {
  where = name;
  comm = in;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  int left = rank > 0 || ring ? (rank + size - 1) % size : -1, right = rank < size - 1 || ring ? (rank + 1) % size : -1;
  int out_to[2], in_from[2];
  out_to[to_left] = left;
  out_to[1 - to_left] = right;
  in_from[from_left] = left;
  in_from[1 - from_left] = right;
  for (mode = NOW; mode < MODES; ++mode) {
    for (int kind = 0; kind < 5; ++kind) {
      static const char* const names[] = {"Neighbor_alltoall", "Neighbor_alltoallv", "Neighbor_alltoallw", "Neighbor_allgather",
                                          "Neighbor_allgatherv"};
      choose(kind == 0 || kind == 3);
      bool gathers = kind > 2;
      /* Which of two messages between the same ranks comes into which block depends on the direction: its seed and
       * length say it. */
      uint64_t to[2], from[2];
      int out_counts[2], in_counts[2];
      for (int k = 0; k < 2; ++k) {
        bool goes_left = out_to[k] == left && k == to_left, comes_from_left = k == from_left;
        to[k] = gathers ? seed_of(rank, 50) : seed_of(rank, goes_left ? 60 : 61);
        from[k] = in_from[k] < 0 ? NO_SEED : gathers ? seed_of(in_from[k], 50) : seed_of(in_from[k], comes_from_left ? 61 : 60);
        out_counts[k] = gathers ? counts_of[0][rank] : counts_of[0][goes_left ? 1 : 2];
        in_counts[k] = gathers ? counts_of[0][in_from[k] < 0 ? 0 : in_from[k]] : counts_of[0][comes_from_left ? 2 : 1];
      }
      enum order order = kind == 2 ? BY_BYTES : kind == 1 || kind == 4 ? ANYWHERE : BEHIND_ONE_ANOTHER;
      struct side out = side_of(&own, gathers ? 1 : 2, out_counts, doubles, gathers ? BEHIND_ONE_ANOTHER : order);
      struct side all = side_of(&own, 2, in_counts, doubles, order);
      fill_side(&out, to);
      fill_side(&all, (uint64_t[]){NO_SEED, NO_SEED});
      if (kind == 0)
        RUN(Neighbor_alltoall, Ineighbor_alltoall, out.base, out.counts[0], out.types[0], all.base, all.counts[0], all.types[0]);
      if (kind == 1)
        RUN(Neighbor_alltoallv, Ineighbor_alltoallv, out.base, out.counts, out.places, out.types[0], all.base, all.counts, all.places,
            all.types[0]);
      if (kind == 2)
        RUN(Neighbor_alltoallw, Ineighbor_alltoallw, out.base, out.counts, out.far_at, out.types, all.base, all.counts, all.far_at,
            all.types);
      if (kind == 3)
        RUN(Neighbor_allgather, Ineighbor_allgather, out.base, out.counts[0], out.types[0], all.base, all.counts[0], all.types[0]);
      if (kind == 4)
        RUN(Neighbor_allgatherv, Ineighbor_allgatherv, out.base, out.counts[0], out.types[0], all.base, all.counts, all.places,
            all.types[0]);
      done(names[kind], &all, from);
      free_side(&out);
      free_side(&all);
      ++round_number;
    }
  }
}

static void topologies(void) {
  MPI_Comm made;
  int dims[] = {everybody}, periods[] = {1};
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made);
  neighbors("a ring", made, true, 0, 0);
  MPI_Comm_free(&made);
  periods[0] = 0;
  MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, 0, &made);
  neighbors("a line", made, false, 0, 0);
  MPI_Comm_free(&made);
  int left = (me + everybody - 1) % everybody, right = (me + 1) % everybody;
  const int weights[] = {1, 1};
  MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 2, (int[]){right, left}, weights, 2, (int[]){left, right}, weights, MPI_INFO_NULL, 0,
                                 &made);
  neighbors("a graph", made, true, 0, 1);
  MPI_Comm_free(&made);
}

/* Two ranks with one edge, and others without any: all of them call, again and again. */
static void with_ranks_alone(void) {
  enum { CELLS = 4096, ROUNDS = 3 };
  MPI_Comm made;
  MPI_Datatype column;
  int ends[MOST_RANKS], edges[] = {1, 0};
  for (int i = 0; i < everybody; ++i) ends[i] = i == 0 ? 1 : 2;
  MPI_Graph_create(MPI_COMM_WORLD, everybody, ends, edges, 0, &made);
  MPI_Type_vector(CELLS, 1, 2, MPI_DOUBLE, &column);
  MPI_Type_commit(&column);
  double* out = allocate(2 * CELLS * sizeof *out);
  double* in = allocate(2 * CELLS * sizeof *in);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < 2 * CELLS; ++i) {
      out[i] = 100000.0 * me + i + round;
      in[i] = -1;
    }
    MPI_Neighbor_alltoall(out, 1, column, in, 1, column, made);
    for (int i = 0; i < 2 * CELLS; ++i)
      if (in[i] != (me < 2 && i % 2 == 0 ? 100000.0 * (1 - me) + i + round : -1)) wrong("a graph with ranks alone: double %d", i);
  }
  say("checked a graph with ranks alone");
  free(out);
  free(in);
  MPI_Type_free(&column);
  MPI_Comm_free(&made);
}

/* --- between groups ----------------------------------------------------------------------------------------------- */

static void between_groups(void) {
  MPI_Comm half, inter;
  int low = everybody / 2;
  MPI_Comm_split(MPI_COMM_WORLD, me < low, me, &half);
  MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, me < low ? low : 0, 5, &inter);
  comm = inter;
  mode = NOW;
  where = "between groups";
  MPI_Comm_rank(half, &rank);
  MPI_Comm_remote_size(inter, &size);
  choose(true);
  uint64_t to[MOST_RANKS], from[MOST_RANKS];
  for (int i = 0; i < size; ++i) {
    to[i] = seed_of(me, 70 + i);
    from[i] = seed_of((me < low ? low : 0) + i, 70 + rank);
  }
  struct side out = side_of(&own, size, counts_of[0], doubles, BEHIND_ONE_ANOTHER);
  struct side in = side_of(&own, size, counts_of[0], doubles, BEHIND_ONE_ANOTHER);
  fill_side(&out, to);
  MPI_Alltoall(out.base, out.counts[0], out.types[0], in.base, in.counts[0], in.types[0], inter);
  done("Alltoall", &in, from);
  free_side(&out);
  free_side(&in);
  MPI_Comm_free(&inter);
  MPI_Comm_free(&half);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  shared.state = 1;
  own.state = (uint64_t)me + 100;
  MPI_Comm backwards, some;
  MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &backwards);
  MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &some);
  all_kinds("world", MPI_COMM_WORLD);
  all_kinds("backwards", backwards);
  all_kinds("every other rank", some);
  all_kinds("self", MPI_COMM_SELF);
  topologies();
  with_ranks_alone();
  between_groups();
  MPI_Comm_free(&backwards);
  MPI_Comm_free(&some);
  return finish();
}
