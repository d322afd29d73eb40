/* What the mini-applications share: two ways of the same exchange take turns, are verified, and are printed as one line
 * of JSON.
 *
 *   {"case": "halo 1024 x 1024", "ranks": 2, "bytes": 16384, "hand_us": [...], "datatype_us": [...],
 *    "send_in": "libmpi.so.40"}
 *
 * bytes: what a rank sends at most. Times are of one exchange among others that follow at once, of the slowest rank;
 * where ranks of one node share CPUs from the first rank's start to the last one's end. The i-th of both were taken one
 * after the other. */
#ifndef LACUNA_EXAMPLES_MINI_H
#define LACUNA_EXAMPLES_MINI_H

#include <mpi.h>

/* The two ways. */
enum mini_way { MINI_HAND, MINI_DATATYPE };

/* One exchange, of all ranks. */
typedef void (*mini_exchange)(void* state, enum mini_way way);
/* Writes data that differ with each call, and wipes what is received. */
typedef void (*mini_prepare)(void* state, int call);
/* Whether what was received is what had to be, and what lies beside it is as it was; in this rank. */
typedef int (*mini_check)(void* state, int call);

/* Verifies both ways, times them for about `seconds` together, verifies both again, and prints the line in rank 0. All
 * ranks. Ends the program with an error where a byte is wrong. */
void mini_race(const char* name, long bytes, double seconds, void* state, mini_exchange exchange, mini_prepare prepare, mini_check check);

/* The value of --NAME among a program's arguments, or what it is without. Ends the program where it is no number above
 * 0. */
double mini_number(int argc, char** argv, const char* name, double otherwise);

/* The library whose MPI_Send this program calls, without its folder: whether one was loaded before MPI's. For Fortran,
 * too. */
const char* mini_send_in(void);

/* malloc, or the end. */
void* mini_memory(long bytes);

#endif
