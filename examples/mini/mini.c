#define _GNU_SOURCE
#include "mini.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_ROUNDS = 1001, FEWEST_ROUNDS = 5, WARM = 2, MOST_REPEATS = 200, MOST_OF_CROWD = 5000 };

/* Microseconds that a sample takes at least, so that what ranks leave a barrier apart does not count. Ranks that share
 * CPUs leave it some time slices apart. */
static const double shortest_sample = 200, shortest_of_crowd = 20000;

const char* mini_send_in(void) {
  Dl_info found;
  void* address = dlsym(RTLD_DEFAULT, "MPI_Send");
  if (address == NULL || dladdr(address, &found) == 0) return "";
  const char* folder = strrchr(found.dli_fname, '/');
  return folder == NULL ? found.dli_fname : folder + 1;
}

void* mini_memory(long bytes) {
  void* memory = malloc(bytes > 0 ? (size_t)bytes : 1);
  if (memory == NULL) {
    fprintf(stderr, "no memory for %ld bytes\n", bytes);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  return memory;
}

double mini_number(int argc, char** argv, const char* name, double otherwise) {
  for (int i = 1; i < argc; i += 2) {
    if (strncmp(argv[i], "--", 2) != 0 || i + 1 == argc) {
      fprintf(stderr, "%s: arguments are pairs of --NAME NUMBER\n", argv[0]);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (strcmp(argv[i] + 2, name) != 0) continue;
    char* end;
    double value = strtod(argv[i + 1], &end);
    if (*end == '\0' && value > 0) return value;
    fprintf(stderr, "%s: %s %s: not a number above 0\n", argv[0], argv[i], argv[i + 1]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return otherwise;
}

static void verify(const char* name, void* state, mini_exchange exchange, mini_prepare prepare, mini_check check, int call) {
  for (int way = MINI_HAND; way <= MINI_DATATYPE; ++way) {
    prepare(state, call + way);
    exchange(state, (enum mini_way)way);
    int right = check(state, call + way), all = 0;
    MPI_Allreduce(&right, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (all) continue;
    fprintf(stderr, "%s, %s: wrong bytes\n", name, way == MINI_HAND ? "packed by hand" : "by datatype");
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
}

/* Whether all ranks are on one node, and may run on fewer CPUs; the same in all. */
static int crowded(void) {
  MPI_Comm node;
  cpu_set_t own, all;
  int ranks, of_node;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &of_node);
  MPI_Comm_free(&node);
  if (sched_getaffinity(0, sizeof own, &own) != 0) CPU_ZERO(&own);
  MPI_Allreduce(&own, &all, sizeof own, MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
  return of_node == ranks && CPU_COUNT(&all) < ranks;
}

/* Of the node. */
static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Microseconds of one of `repeats` exchanges, the same in all ranks: of the slowest rank. In a crowd from the first
 * rank's start to the last one's end: a rank that gets a CPU late finds much done. */
static double timed(void* state, mini_exchange exchange, enum mini_way way, int repeats, int crowd) {
  MPI_Barrier(MPI_COMM_WORLD);
  double start = now_us();
  for (int i = 0; i < repeats; ++i) exchange(state, way);
  double end = now_us(), own[2] = {crowd ? end : end - start, crowd ? -start : 0}, most[2];
  MPI_Allreduce(own, most, 2, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return (most[0] + most[1]) / repeats;
}

static void print_times(const char* way, const double* us, int rounds) {
  printf("\"%s_us\": [", way);
  for (int i = 0; i < rounds; ++i) printf("%s%.3f", i > 0 ? ", " : "", us[i]);
  printf("], ");
}

void mini_race(const char* name, long bytes, double seconds, void* state, mini_exchange exchange, mini_prepare prepare, mini_check check) {
  static double us[2][MOST_ROUNDS];
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  verify(name, state, exchange, prepare, check, 1);
  double spent = 0;
  int rounds = 0, repeats[2] = {1, 1}, crowd = crowded(), most_repeats = crowd ? MOST_OF_CROWD : MOST_REPEATS;
  for (int warm = 0; warm < (crowd ? 2 * WARM : WARM); ++warm)
    for (int way = MINI_HAND; way <= MINI_DATATYPE; ++way) {
      double took = timed(state, exchange, (enum mini_way)way, repeats[way], crowd);
      double needed = (crowd ? shortest_of_crowd : shortest_sample) / took;
      repeats[way] = needed < 1 ? 1 : needed < most_repeats ? (int)needed + 1 : most_repeats;
    }
  while (rounds < MOST_ROUNDS && (rounds < FEWEST_ROUNDS || spent < seconds * 1e6)) {
    for (int turn = 0; turn < 2; ++turn) { /* neither always comes first */
      int way = (turn + rounds) % 2;
      us[way][rounds] = timed(state, exchange, (enum mini_way)way, repeats[way], crowd);
      spent += us[way][rounds] * repeats[way];
    }
    ++rounds;
  }
  verify(name, state, exchange, prepare, check, 3);
  long most = 0;
  MPI_Allreduce(&bytes, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("{\"case\": \"%s\", \"ranks\": %d, \"bytes\": %ld, ", name, ranks, most);
  print_times("hand", us[MINI_HAND], rounds);
  print_times("datatype", us[MINI_DATATYPE], rounds);
  printf("\"send_in\": \"%s\"}\n", mini_send_in());
  fflush(stdout);
}
