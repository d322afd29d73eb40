/* The guide: which way of moving data is the fastest here, and why. */
#ifndef LACUNA_GUIDE_H
#define LACUNA_GUIDE_H

#include <stddef.h>

#include "layout.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* --- choosing a way, and saying why ---
 * A guide belongs to one thread at a time. LACUNA_METHOD and LACUNA_PATH force a choice. */

typedef struct lacuna_guide lacuna_guide;

typedef enum lacuna_objective { LACUNA_LATENCY = 0, LACUNA_BANDWIDTH = 1, LACUNA_CPU = 2 } lacuna_objective;

typedef struct lacuna_choice {
  const char* method; /* names that live as long as the program */
  const char* path;
  const char* notify;
  double latency_us; /* expected */
  double cpu_us[2];  /* of the sender, of the receiver */
} lacuna_choice;

/* Where the data is, and what the transfer is for. All 0: memory that Lacuna allocated, in a cache, lowest latency,
 * the receiver learns of it. */
typedef struct lacuna_placement {
  int objective; /* a lacuna_objective */
  /* 1: the source is memory that Lacuna did not allocate, which paths over shared memory do not reach */
  int src_private;
  int dst_private; /* 1: so is the destination */
  int cold;        /* 1: neither is in a cache */
  int untold;      /* 1: the end that does nothing need not learn that the transfer is over */
  double uses;     /* transfers for which an indirect key stays bound; 0: so many that binding costs nothing */
} lacuna_placement;

/* Chooses by the profile that `lacuna guide` wrote for this NIC ("local", "model:PLATFORM"), or else by the usual
 * prices. message_us: what a message of 16 KiB takes to the peer, one way; 0 if that is not known. The caller frees the
 * guide. Errors: INVALID_ARGUMENT (no such NIC or platform; LACUNA_METHOD or LACUNA_PATH is none that there is),
 * OUT_OF_MEMORY. */
lacuna_status lacuna_guide_open(const char* nic, double message_us, lacuna_guide** guide);
/* NULL is allowed. */
void lacuna_guide_free(lacuna_guide* guide);

/* objective: a lacuna_objective. The best way to move src into dst, for memory that Lacuna allocated. Remembered:
 * asking again is cheap. Errors: INVALID_ARGUMENT (the sizes differ; no such objective), UNSUPPORTED (nothing can
 * move it; the message says why each cannot). */
lacuna_status lacuna_guide_choose(lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective,
                                  lacuna_choice* choice);
/* Why: every way with its stages, what it lost by and where it would win, as `lacuna explain` prints it. Writes at
 * most size bytes with a final NUL; *needed, which must not be NULL, is the length that the whole text has. Errors: as
 * lacuna_guide_choose(). */
lacuna_status lacuna_guide_explain(const lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst, int objective, char* text,
                                   size_t size, size_t* needed);
/* As lacuna_guide_choose(), for other placements, with the same errors. */
lacuna_status lacuna_guide_choose_placed(lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst,
                                         const lacuna_placement* placement, lacuna_choice* choice);
/* As lacuna_guide_explain(), for other placements, with the same errors. */
lacuna_status lacuna_guide_explain_placed(const lacuna_guide* guide, const lacuna_layout* src, const lacuna_layout* dst,
                                          const lacuna_placement* placement, char* text, size_t size, size_t* needed);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
