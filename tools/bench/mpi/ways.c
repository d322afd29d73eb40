/* Times the ways in which data travels between two ranks of an MPI program: by the MPI's own datatypes, packed by
 * Lacuna, through memory that both ranks reach, in chunks to another node. The preloaded library is told which. For
 * `lacuna guide --mpi` and `lacuna explain --measure`.
 *
 *   mpirun -n 2 env LD_PRELOAD=liblacuna_mpi_ABI.so LACUNA_MPI_DECODE=1 ./ways MILLISECONDS WHAT
 *
 * MILLISECONDS: about how long the ways of one use race at one size. WHAT is one of
 *
 *   node BYTES,... RUN,... CONTIGUOUS,...   two ranks of a node: every use at each size, then messages without gaps
 *   nodes BYTES,... RUN CHUNK,...           of two nodes: messages, packed and in chunks
 *   given FILE                              of a node: every use of what a file says (ways_piece.h)
 *
 * Rank 0 prints a line of JSON about the MPI, one for each size, and a last one:
 *
 *   {"version": "Open MPI v5.0.11", "cells": 35}
 *   {"bytes": 256, "run": 8, "ns": {"send": {"regular": {"host": 812.5, "packed": 640.1}, ...}, ...}, "line_ns": 20.0}
 *   {"bytes": 1048576, "run": 0, "ns": {"contiguous": {"regular": {"host": 41e3, "offered": 33e3}}}, "line_ns": 20.0}
 *   {"ends": 35}
 *
 * A time is the median of batches, of the slower rank, for one message or one call. `line_ns` is what the preloaded
 * library needs for reading a line that the other rank has written; 0: that is not known. */
#define _GNU_SOURCE
#include "ways_uses.h"

enum { MOST_SIZES = 64 };
enum { FEWEST_ROUNDS = 5, SLOW_ROUNDS = 3, MOST_ROUNDS = 51, MOST_REPEATS = 200, WARM = 2 };

/* Of a batch about, so that what ranks leave a barrier apart is little of it. A fraction of a race, within bounds. */
static const double batch_of_race = 1 / 400.0, shortest_batch_ns = 20e3, longest_batch_ns = 100e3;
static double batch_ns, milliseconds;
/* A way whose fastest exchange takes so long has few rounds: one that took so long once lost its CPU. */
static const double slow_ns = 50e6;
/* After a line, for its reader: on two CPUs the reader belongs to the measurement. */
static const struct timespec pause_for_reader = {0, 20000000};

/* --- The race. --- */

/* Nanoseconds of one of so many exchanges, of the slower rank. */
static double timed(const struct use* use, const struct piece* p, int repeats) {
  larger(0);
  double start = now_ns();
  for (int i = 0; i < repeats; ++i) use->exchange(p);
  return larger((now_ns() - start) / repeats);
}

/* One way in a race. */
struct runner {
  int way;
  int repeats, rounds;
  double least, ns[MOST_ROUNDS];
};

/* Verifies the way, and finds how many exchanges are a batch. */
static void warm_up(const struct use* use, const struct piece* p, struct runner* r) {
  take(r->way);
  verify(use, p, r->way, 1);
  r->repeats = 1;
  for (int i = 0; i < WARM; ++i) {
    double ns = timed(use, p, r->repeats), needed = batch_ns / ns;
    if (i == 0 || ns < r->least) r->least = ns;
    r->repeats = needed < 1 ? 1 : needed < MOST_REPEATS ? (int)needed + 1 : MOST_REPEATS;
  }
}

/* A batch of the way. The first exchange after another way is not counted, unless it takes as long as a batch. */
static double turn(const struct use* use, const struct piece* p, struct runner* r) {
  take(r->way);
  if (r->repeats > 1) use->exchange(p);
  double ns = timed(use, p, r->repeats);
  r->ns[r->rounds++] = ns;
  if (ns < r->least) r->least = ns;
  return ns * r->repeats;
}

/* Nanoseconds of each way of a use; 0: the way is not there. */
static void race(const struct use* use, const struct piece* p, double* found) {
  static struct runner runners[WAYS];
  int order[WAYS], n = 0;
  memset(runners, 0, sizeof runners);
  for (int way = 0; way < WAYS; ++way) {
    found[way] = 0;
    if ((use->ways >> way & 1) == 0) continue;
    order[n] = n;
    runners[n].way = way;
    warm_up(use, p, &runners[n++]);
  }
  double spent = 0;
  for (int round = 0; round < MOST_ROUNDS && (round < FEWEST_ROUNDS || spent < milliseconds * 1e6); ++round) {
    for (int i = n - 1; i > 0; --i) { /* in another order each time */
      int j = (int)drawn((uint32_t)i + 1), other = order[i];
      order[i] = order[j];
      order[j] = other;
    }
    for (int i = 0; i < n; ++i) {
      struct runner* r = &runners[order[i]];
      if (r->rounds < SLOW_ROUNDS || r->least < slow_ns) spent += turn(use, p, r);
    }
  }
  for (int i = 0; i < n; ++i) {
    take(runners[i].way);
    verify(use, p, runners[i].way, 2);
    found[runners[i].way] = median(runners[i].ns, runners[i].rounds) / use->calls;
  }
}

/* --- Sizes. --- */

/* The times of the ways of a form: {"host": 812.5, ...}. */
static void print_form(const char* name, const double* ns) {
  const char* between = "";
  if (rank == 0) printf("\"%s\": {", name);
  for (int way = 0; way < WAYS; ++way) {
    if (rank != 0 || ns[way] == 0) continue;
    printf("%s\"%s\": %.1f", between, way_names[way], ns[way]);
    between = ", ";
  }
  if (rank == 0) printf("}");
}

static void measure_form(const struct use* use, const struct piece* p, const char* form) {
  double ns[WAYS];
  race(use, p, ns);
  print_form(form, ns);
}

/* Every use of a piece, and those that a list can have of one that is listed, if there is one. */
static void measure_uses(const struct use* of, int n, const struct piece* regular, const struct piece* listed) {
  for (int i = 0; i < n; ++i) {
    if (rank == 0) printf("%s\"%s\": {", i > 0 ? ", " : "", of[i].name);
    measure_form(&of[i], regular, "regular");
    if (of[i].listed && listed != NULL) {
      if (rank == 0) printf(", ");
      measure_form(&of[i], listed, "listed");
    }
    if (rank == 0) printf("}");
  }
}

static void begin_line(long bytes, long run) {
  if (rank == 0) printf("{\"bytes\": %ld, \"run\": %ld, \"ns\": {", bytes, run);
}

static void end_line(void) {
  if (rank != 0) return;
  printf("}, \"line_ns\": %.1f}\n", line_ns());
  fflush(stdout);
  nanosleep(&pause_for_reader, NULL);
}

static void measure_cell(const struct use* of, int n, long bytes, long run) {
  struct piece regular, listed;
  make_piece(&regular, bytes, run, 0);
  make_piece(&listed, bytes, run, 1);
  begin_line(bytes, run);
  measure_uses(of, n, &regular, &listed);
  end_line();
  free_piece(&regular);
  free_piece(&listed);
}

static void measure_contiguous(long bytes) {
  struct piece p;
  make_contiguous(&p, bytes);
  begin_line(bytes, 0);
  measure_uses(&contiguous, 1, &p, NULL);
  end_line();
  free_piece(&p);
}

/* --- The job. --- */

/* A list of multiples of a word; 0: it is none. */
static int sizes_of(const char* text, long* sizes) {
  int n = 0;
  while (n < MOST_SIZES) {
    char* end;
    sizes[n] = strtol(text, &end, 10);
    if (end == text || sizes[n] <= 0 || sizes[n] % WORD != 0) return 0;
    ++n;
    if (*end == '\0') return n;
    if (*end != ',') return 0;
    text = end + 1;
  }
  return 0;
}

/* The first line of what the library says of itself, as text of JSON. */
static void print_version(void) {
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  MPI_Get_library_version(version, &length);
  printf("{\"version\": \"");
  for (const char* c = version; *c != '\0' && *c != '\n' && *c != '\r'; ++c) {
    if (*c == '"' || *c == '\\' || *c == '\t') putchar('\\');
    putchar(*c == '\t' ? 't' : *c);
  }
}

static int usage(const char* why) {
  fprintf(stderr, "ways MILLISECONDS node BYTES,... RUN,... CONTIGUOUS,... | nodes BYTES,... RUN CHUNK,... | given FILE: %s\n", why);
  return 2;
}

/* What is measured. */
struct plan {
  enum { ON_NODE, BETWEEN_NODES, GIVEN } what;
  long bytes[MOST_SIZES], runs[MOST_SIZES], last[MOST_SIZES]; /* `last`: contiguous sizes, or chunks */
  int sizes, lengths, lasts, cells;
  struct piece given;
};

/* Null: it is understood. */
static const char* understand(struct plan* plan, int argc, char** argv) {
  if (argc == 4 && strcmp(argv[2], "given") == 0) {
    plan->what = GIVEN;
    plan->cells = 1;
    return NULL;
  }
  if (argc != 6) return "too few arguments, or too many";
  if (strcmp(argv[2], "node") != 0 && strcmp(argv[2], "nodes") != 0) return "it measures node, nodes or given";
  plan->what = strcmp(argv[2], "node") == 0 ? ON_NODE : BETWEEN_NODES;
  plan->sizes = sizes_of(argv[3], plan->bytes);
  plan->lengths = sizes_of(argv[4], plan->runs);
  plan->lasts = sizes_of(argv[5], plan->last);
  if (plan->sizes == 0 || plan->lengths == 0 || plan->lasts == 0) return "sizes are multiples of 8, with commas between them";
  if (plan->what == BETWEEN_NODES && plan->lasts > MOST_CHUNKS) return "there are too many chunks";
  for (int i = 0; i < plan->sizes * plan->lengths; ++i) plan->cells += 2 * plan->runs[i % plan->lengths] <= plan->bytes[i / plan->lengths];
  if (plan->what == ON_NODE) plan->cells += plan->lasts;
  return NULL;
}

/* Messages to another node: packed, or in chunks of each length. */
static struct use between_nodes(const struct plan* plan) {
  struct use made = uses[0];
  made.ways = BY_PACKING;
  for (int i = 0; i < plan->lasts; ++i) {
    snprintf(way_names[NODE_WAYS + i], sizeof way_names[0], "chunked %ld", plan->last[i]);
    made.ways |= 1U << (NODE_WAYS + i);
  }
  return made;
}

static void measure(const struct plan* plan) {
  const int of_nodes = plan->what == BETWEEN_NODES;
  const struct use remote = of_nodes ? between_nodes(plan) : uses[0];
  if (plan->what == GIVEN) {
    begin_line(plan->given.bytes, 0);
    measure_uses(uses, USES, &plan->given, NULL);
    end_line();
    return;
  }
  for (int i = 0; i < plan->sizes * plan->lengths; ++i) {
    const long bytes = plan->bytes[i / plan->lengths], run = plan->runs[i % plan->lengths];
    if (2 * run <= bytes) measure_cell(of_nodes ? &remote : uses, of_nodes ? 1 : USES, bytes, run);
  }
  for (int i = 0; !of_nodes && i < plan->lasts; ++i) measure_contiguous(plan->last[i]);
}

int main(int argc, char** argv) {
  static struct plan plan;
  const char* why = argc < 4 ? "too few arguments" : understand(&plan, argc, argv);
  if (why != NULL) return usage(why);
  milliseconds = strtod(argv[1], NULL);
  batch_ns = milliseconds * 1e6 * batch_of_race;
  if (batch_ns > longest_batch_ns) batch_ns = longest_batch_ns;
  if (!(batch_ns > shortest_batch_ns)) batch_ns = shortest_batch_ns;
  *(void**)&force_way = dlsym(RTLD_DEFAULT, "lacuna_mpi_force_way");
  *(void**)&line_ns = dlsym(RTLD_DEFAULT, "lacuna_mpi_line_ns");
  if (force_way == NULL || line_ns == NULL) return usage("Lacuna's library is not preloaded, or it is of another version");
  MPI_Init(&argc, &argv);
  begin_two_ranks("ways");
  begin_uses();
  if (plan.what == GIVEN && !make_given(&plan.given, argv[3])) {
    fprintf(stderr, "%s says nothing of loops or of a list\n", argv[3]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (rank == 0) {
    print_version();
    printf("\", \"cells\": %d}\n", plan.cells);
    fflush(stdout);
  }
  measure(&plan);
  if (rank == 0) printf("{\"ends\": %d}\n", plan.cells);
  fflush(stdout);
  if (plan.what == GIVEN) free_piece(&plan.given);
  end_uses();
  MPI_Finalize();
  return 0;
}
