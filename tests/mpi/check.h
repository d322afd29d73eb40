/* What the test programs share. Each runs plain and with Lacuna loaded before its MPI, and prints the same both times:
 * nothing that depends on time, and nothing that MPI leaves open. Ranks collect lines; rank 0 prints them all at the
 * end. */
#ifndef LACUNA_TESTS_MPI_CHECK_H
#define LACUNA_TESTS_MPI_CHECK_H

#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT_OF(array) ((int)(sizeof(array) / sizeof(array)[0]))

enum { DESCRIPTOR = 253, KIB = 1024, MIB = 1024 * 1024 };

/* Around the limits between ways that a message may take; DESCRIPTOR is as long as what may travel in a message's
 * place. */
static const long sizes[] = {0, 1, DESCRIPTOR - 1, DESCRIPTOR, DESCRIPTOR + 1, 256, KIB, 2 * KIB, 8 * KIB, 64 * KIB, 513 * KIB, 3 * MIB};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static int me, everybody; /* this rank, and how many there are, in MPI_COMM_WORLD */
static int wrongs;
static char lines[1 << 20];
static size_t lines_used;
static MPI_Comm talk;      /* for the lines alone */
static uint64_t variation; /* of all random numbers: LACUNA_CHECK_SEED */

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Into a file: of what a rank says as it dies, launchers lose parts. */
static inline void dump_lines(const char* why) {
  char text[200];
  int length = snprintf(text, sizeof text, "rank-%d.txt", me);
  int file = open(text, O_WRONLY | O_CREAT | O_TRUNC, 0666);
  length = snprintf(text, sizeof text, "rank %d gave up: %s\n", me, why);
  if (file < 0 || write(file, lines, lines_used) < 0 || write(file, text, (size_t)length) < 0) _exit(4);
  if (write(STDERR_FILENO, text, (size_t)length) < 0) _exit(4);
}

static inline void give_up(const char* why) {
  dump_lines(why);
  MPI_Abort(MPI_COMM_WORLD, 3);
  _exit(3);
}

static inline void add_line(const char* start, const char* format, va_list values) {
  char* at = lines + lines_used;
  size_t room = sizeof lines - lines_used;
  int length = snprintf(at, room, "%s", start);
  length += vsnprintf(at + length, room - (size_t)length, format, values);
  if ((size_t)length + 1 >= room) give_up("too many lines");
  at[length] = '\n';
  lines_used += (size_t)length + 1;
}

/* Not for two threads at once. */
__attribute__((format(printf, 1, 2))) static inline void say(const char* format, ...) {
  va_list values;
  va_start(values, format);
  add_line("", format, values);
  va_end(values);
}

__attribute__((format(printf, 1, 2))) static inline void wrong(const char* format, ...) {
  va_list values;
  va_start(values, format);
  add_line("WRONG ", format, values);
  va_end(values);
  ++wrongs;
}

#define CHECK(condition) ((condition) ? (void)0 : wrong("line %d: %s", __LINE__, #condition))

static inline uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

static inline void on_signal(int number) {
  dump_lines(number == SIGALRM ? "out of time" : strsignal(number));
  _exit(3);
}

static inline void on_error(MPI_Comm* comm, int* code, ...) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  (void)comm;
  MPI_Error_string(*code, text, &length);
  give_up(text);
}

/* Every program ends by itself, some time before whoever runs it loses patience. */
static inline void watch(void) {
  static const int fatal[] = {SIGALRM, SIGTERM, SIGSEGV, SIGBUS, SIGFPE, SIGABRT};
  const char* seconds = getenv("LACUNA_CHECK_SECONDS");
  const char* seed = getenv("LACUNA_CHECK_SEED");
  variation = seed != NULL ? mixed(strtoull(seed, NULL, 10)) : 0;
  for (int i = 0; i < COUNT_OF(fatal); ++i) signal(fatal[i], on_signal);
  alarm(seconds != NULL ? (unsigned)atoi(seconds) : 50);
}

static inline int begin_with_threads(int* argc, char*** argv, int wanted) {
  int provided = 0;
  MPI_Errhandler handler;
  watch();
  MPI_Init_thread(argc, argv, wanted, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &everybody);
  MPI_Comm_create_errhandler(on_error, &handler);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
#ifndef SELF_HAS_NO_HANDLER
  MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
#endif
  MPI_Errhandler_free(&handler);
  MPI_Comm_dup(MPI_COMM_WORLD, &talk);
  return provided;
}

static inline void begin(int* argc, char*** argv) { begin_with_threads(argc, argv, MPI_THREAD_SINGLE); }

/* Prints what all ranks said; 1 if one of them was wrong. */
static inline int report(void) {
  MPI_Allreduce(MPI_IN_PLACE, &wrongs, 1, MPI_INT, MPI_SUM, talk);
  if (me != 0) {
    MPI_Send(&lines_used, (int)sizeof lines_used, MPI_BYTE, 0, 0, talk);
    MPI_Send(lines, (int)lines_used, MPI_BYTE, 0, 0, talk);
  }
  for (int rank = 0; me == 0 && rank < everybody; ++rank) {
    if (rank > 0) {
      MPI_Recv(&lines_used, (int)sizeof lines_used, MPI_BYTE, rank, 0, talk, MPI_STATUS_IGNORE);
      MPI_Recv(lines, (int)lines_used, MPI_BYTE, rank, 0, talk, MPI_STATUS_IGNORE);
    }
    printf("--- rank %d\n", rank);
    fwrite(lines, 1, lines_used, stdout);
  }
  fflush(stdout);
  MPI_Comm_free(&talk);
  return wrongs > 0 ? 1 : 0;
}

static inline int finish(void) {
  int result = report();
  MPI_Finalize();
  return result;
}

/* --- what a user sees --------------------------------------------------------------------------------------------- */

static inline const char* number_text(char* text, size_t room, long long number) {
  snprintf(text, room, number == MPI_UNDEFINED ? "undefined" : "%lld", number);
  return text;
}

static inline const char* status_text(char* text, size_t room, const MPI_Status* status, MPI_Datatype type) {
  char count[24], bytes[24], elements[24];
  int counted = -1, counted_bytes = -1, counted_elements = -1;
  MPI_Get_count(status, type, &counted);
  MPI_Get_count(status, MPI_BYTE, &counted_bytes);
  MPI_Get_elements(status, type, &counted_elements);
  snprintf(text, room, "source %d tag %d count %s bytes %s elements %s", status->MPI_SOURCE, status->MPI_TAG,
           number_text(count, sizeof count, counted), number_text(bytes, sizeof bytes, counted_bytes),
           number_text(elements, sizeof elements, counted_elements));
  return text;
}

/* Of a receive. Of a send only whether it was cancelled means anything, and of a probe all but that. */
__attribute__((format(printf, 3, 4))) static inline void say_status(const MPI_Status* status, MPI_Datatype type, const char* format, ...) {
  char what[160], text[160];
  int cancelled = -1;
  va_list values;
  va_start(values, format);
  vsnprintf(what, sizeof what, format, values);
  va_end(values);
  MPI_Test_cancelled(status, &cancelled);
  say("%s: %s cancelled %d", what, status_text(text, sizeof text, status, type), cancelled);
}

__attribute__((format(printf, 3, 4))) static inline void say_probed(const MPI_Status* status, MPI_Datatype type, const char* format, ...) {
  char what[160], text[160];
  va_list values;
  va_start(values, format);
  vsnprintf(what, sizeof what, format, values);
  va_end(values);
  say("%s: %s", what, status_text(text, sizeof text, status, type));
}

/* Before a call that is to fill it in: what it leaves out shows. */
static inline void soil(MPI_Status* statuses, int count) { memset(statuses, 0x55, (size_t)count * sizeof *statuses); }

static inline MPI_Status soiled(void) {
  MPI_Status status;
  soil(&status, 1);
  return status;
}

/* --- random numbers ----------------------------------------------------------------------------------------------- */

struct random {
  uint64_t state;
};

static inline uint64_t draw(struct random* random) { return mixed((random->state += 0x9e3779b97f4a7c15U) ^ variation); }

/* 0 up to `limit` - 1. */
static inline int below(struct random* random, int limit) { return (int)(draw(random) % (uint64_t)limit); }

/* The bytes that `seed` stands for, which both ends know. */
static inline void write_stream(unsigned char* to, size_t bytes, uint64_t seed) {
  struct random random = {mixed(seed + 1)};
  while (bytes > 0) {
    uint64_t word = draw(&random);
    size_t some = bytes < sizeof word ? bytes : sizeof word;
    memcpy(to, &word, some);
    to += some;
    bytes -= some;
  }
}

static inline void* allocate(size_t bytes) {
  void* memory = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (memory == NULL) give_up("out of memory");
  return memory;
}

#endif
