/* Exchanges: what all ranks do together. */
#ifndef LACUNA_EXCHANGE_H
#define LACUNA_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include "communicator.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* --- exchanges: what all ranks do together ---
 * All ranks make these calls, in the same order; as long as one makes none, the others wait for it. Before anything
 * moves the ranks agree: what is asked for, whether each message has as many bytes at both ends, and the schedule. So
 * what does not fit is an error on every rank, and no memory was written. Blocks that are received into must not
 * overlap one another, nor what is sent. */

typedef struct lacuna_exchange lacuna_exchange;

/* All 0: the defaults. All ranks the same. */
typedef struct lacuna_exchange_options {
  /* "at_once", "pairwise", "forward" (neighbours have none); NULL: "automatic", what is expected to be fastest */
  const char* schedule;
  int window;       /* of pairwise: sends, and receives, under way at once; 0: 8 */
  double timeout_s; /* of lacuna_exchange_wait(), for the other ranks; 0: for ever */
} lacuna_exchange_options;

/* A matrix of rows x columns elements, whose rows are spread over the ranks in blocks, and its transpose, whose rows
 * (the columns) are, too. */
typedef struct lacuna_matrix {
  int64_t rows, columns;
  int64_t element_bytes;
  const int64_t* row_blocks;    /* rows of each rank before; NULL: as even as can be, the first ones have one more */
  const int64_t* column_blocks; /* columns of each rank, its rows afterwards; NULL: the same */
  int64_t leading_before;       /* elements from one row of the memory to the next; 0: columns */
  int64_t leading_after;        /* 0: rows */
} lacuna_matrix;

/* Errors of the calls that wait or test, on all ranks, with nothing moved: INVALID_ARGUMENT (arguments of a rank that
 * cannot be; sizes, calls, schedules or matrices that differ between ranks), LIMIT, OVERFLOW. With memory written in
 * part, and the connection good for no more than its end: PEER_LOST (a rank is gone), TIMEOUT, OUT_OF_MEMORY,
 * MALFORMED. */

/* send_layouts[i] at send_bases[i] goes to rank i, and what comes from rank i goes to receive_layouts[i] at
 * receive_bases[i]; one of each for each rank, the own one included. A NULL layout is empty. options may be NULL. */
lacuna_status lacuna_alltoallw(lacuna_comm* comm, const void* const* send_bases, const lacuna_layout* const* send_layouts,
                               void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                               const lacuna_exchange_options* options);
/* Messages to and from any ranks, also several of one; the i-th message of one rank to another goes into the i-th
 * receive from it. */
lacuna_status lacuna_neighbor_exchange(lacuna_comm* comm, int send_count, const int* destinations, const void* const* send_bases,
                                       const lacuna_layout* const* send_layouts, int receive_count, const int* sources,
                                       void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                       const lacuna_exchange_options* options);
/* before: this rank's block of rows; after: its block of rows of the transpose. */
lacuna_status lacuna_transpose(lacuna_comm* comm, const lacuna_matrix* matrix, const void* before, void* after,
                               const lacuna_exchange_options* options);

/* The same to be started again and again: the ranks agree once. No rank is waited for, and errors of arguments come
 * out of the calls that wait or test. The layouts may be freed at once. The caller frees the exchange, before the
 * connection. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY. */
lacuna_status lacuna_alltoallw_init(lacuna_comm* comm, const void* const* send_bases, const lacuna_layout* const* send_layouts,
                                    void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                    const lacuna_exchange_options* options, lacuna_exchange** exchange);
/* lacuna_neighbor_exchange(), to be started again and again; errors as lacuna_alltoallw_init(). */
lacuna_status lacuna_neighbor_exchange_init(lacuna_comm* comm, int send_count, const int* destinations, const void* const* send_bases,
                                            const lacuna_layout* const* send_layouts, int receive_count, const int* sources,
                                            void* const* receive_bases, const lacuna_layout* const* receive_layouts,
                                            const lacuna_exchange_options* options, lacuna_exchange** exchange);
/* lacuna_transpose(), to be started again and again; errors as lacuna_alltoallw_init(). */
lacuna_status lacuna_transpose_init(lacuna_comm* comm, const lacuna_matrix* matrix, const void* before, void* after,
                                    const lacuna_exchange_options* options, lacuna_exchange** exchange);
/* Begins, without waiting; the memory belongs to the exchange until it is done. Errors: INVALID_ARGUMENT (it is under
 * way). */
lacuna_status lacuna_exchange_start(lacuna_exchange* exchange);
/* Moves on. *done: 1 if it is done, or was never started. Errors: those of exchanges, above. */
lacuna_status lacuna_exchange_test(lacuna_exchange* exchange, int* done);
/* Waits until it is done. Errors: those of exchanges, above. */
lacuna_status lacuna_exchange_wait(lacuna_exchange* exchange);
/* The exchange as this rank has it, the schedule, and why it. Writes at most size bytes with a final NUL, returns the
 * length of the whole text. */
size_t lacuna_exchange_explain(const lacuna_exchange* exchange, char* text, size_t size);
/* One that is under way is given up, as if this rank were gone. NULL is allowed. */
void lacuna_exchange_free(lacuna_exchange* exchange);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
