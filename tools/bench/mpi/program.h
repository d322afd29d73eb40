/* What programs of an MPI that measure share: arguments by name, where MPI_Send is, and times. */
#ifndef LACUNA_BENCH_MPI_PROGRAM_H
#define LACUNA_BENCH_MPI_PROGRAM_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The number behind a name; ends the program if there is none. */
static inline double argument(int argc, char** argv, const char* name) {
  for (int i = 1; i + 1 < argc; i += 2) {
    char* end;
    double value = strtod(argv[i + 1], &end);
    if (strcmp(argv[i], name) == 0 && end != argv[i + 1] && *end == '\0' && value >= 0) return value;
  }
  fprintf(stderr, "%s: %s takes a number of 0 or more\n", argv[0], name);
  exit(2);
}

/* The library whose MPI_Send is called, without its folder: what the loader does not take is only a line on stderr. */
static inline const char* send_in(void) {
  Dl_info found;
  void* send = dlsym(RTLD_DEFAULT, "MPI_Send");
  if (send == NULL || dladdr(send, &found) == 0) return "";
  const char* folder = strrchr(found.dli_fname, '/');
  return folder == NULL ? found.dli_fname : folder + 1;
}

static inline double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static inline int compare_times(const void* a, const void* b) {
  double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}
static inline double median(double* times, int n) {
  qsort(times, (size_t)n, sizeof *times, compare_times);
  return n % 2 == 1 ? times[n / 2] : (times[n / 2 - 1] + times[n / 2]) / 2;
}

#endif
