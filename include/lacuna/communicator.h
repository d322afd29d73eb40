/* Messages between processes, registered memory, puts and gets. */
#ifndef LACUNA_COMMUNICATOR_H
#define LACUNA_COMMUNICATOR_H

#include <stddef.h>
#include <stdint.h>

#include "layout.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* --- messages ---
 * Between processes that connected, by rank. They have tags, and are matched as MPI matches them (MPI-4.1, 3.5):
 * messages of one sender do not overtake one another, a receive with wildcards takes the earliest.
 *
 * Nothing moves but inside of a call: a call that waits moves everything, lacuna_progress() moves without waiting. A
 * small send is done when it returns; a large one needs both ends to be in calls. With progress_thread a thread of the
 * library does so while the program computes.
 *
 * A connection belongs to one thread at a time; with progress_thread any thread may call. */

typedef struct lacuna_comm lacuna_comm;
typedef struct lacuna_request lacuna_request;

#define LACUNA_ANY_SOURCE (-1)
#define LACUNA_ANY_TAG (-1)

typedef struct lacuna_message {
  int source;
  int tag;
  int64_t bytes; /* of its data, packed */
} lacuna_message;

/* All 0: the defaults. */
typedef struct lacuna_connect_options {
  /* "local", "verbs", "ofi:tcp", ... NULL: LACUNA_NIC; or else "local", or, if ranks are on several machines, an RDMA
   * device, or else what libfabric has */
  const char* nic;
  double timeout_s; /* for all to come; 0: 30 */
  /* a message of up to so many bytes is sent before anybody asks for it; 0: 8192, at most 16384 */
  int64_t eager_bytes;
  int64_t unexpected_bytes; /* for each peer: small messages that wait for their receive; 0: 4 MiB */
  int progress_thread;      /* 1: a thread moves messages on while the program computes */
  /* what becomes of memory that a NIC has to know: "automatic", "copy", "leave_pinned", "pipeline",
   * "leave_pinned_pipeline" (docs/guide/registration.md). NULL: LACUNA_REGISTERING, or else "automatic" */
  const char* registering;
  /* "off", "observe", "on", "on:1000": whether one message in so many goes another way to correct the choice
   * (docs/guide/choosing.md). NULL: LACUNA_LEARN, or else "off" */
  const char* learning;
} lacuna_connect_options;

/* Meets the others; returns once all `size` have come. address: a name, for processes of one user on one machine; or
 * "host:port", where rank 0 listens, for processes that have the secret (at least 16 bytes; NULL with a name). rank: -1
 * with a name: as they come. options may be NULL. The caller frees the connection. Errors: INVALID_ARGUMENT,
 * PERMISSION, TIMEOUT (the message says who is missing), PEER_LOST, UNSUPPORTED. */
lacuna_status lacuna_connect(const char* address, int size, int rank, const char* secret, const lacuna_connect_options* options,
                             lacuna_comm** comm);
/* Waits until the peers took what was sent, 10 seconds at most. Requests end with it. NULL is allowed. */
void lacuna_comm_free(lacuna_comm* comm);
/* The rank of this process, from 0. */
int lacuna_comm_rank(const lacuna_comm* comm);
/* How many ranks there are. */
int lacuna_comm_size(const lacuna_comm* comm);

/* Sends `layout` at `base` to rank `dest` with a tag of 0 or more; returns once the memory may be used again. Errors:
 * INVALID_ARGUMENT (no such rank, a tag below 0), LIMIT, OUT_OF_MEMORY, PEER_LOST. */
lacuna_status lacuna_send(lacuna_comm* comm, const void* base, const lacuna_layout* layout, int dest, int tag);
/* Receives into `layout` at `base`. `source` and `tag` may be wildcards; message, which says what came, may be NULL.
 * Errors: as lacuna_send(); INVALID_ARGUMENT (the layout overlaps itself), TRUNCATED (the memory may hold a part),
 * MALFORMED. */
lacuna_status lacuna_recv(lacuna_comm* comm, void* base, const lacuna_layout* layout, int source, int tag, lacuna_message* message);

/* As lacuna_send(), begun only: the memory belongs to the request until it is done. The layout may be freed at once.
 * Errors: as lacuna_send(); what becomes of the message, the request tells. */
lacuna_status lacuna_isend(lacuna_comm* comm, const void* base, const lacuna_layout* layout, int dest, int tag, lacuna_request** request);
/* As lacuna_recv(), begun only. Errors: as lacuna_isend(); INVALID_ARGUMENT (the layout overlaps itself). */
lacuna_status lacuna_irecv(lacuna_comm* comm, void* base, const lacuna_layout* layout, int source, int tag, lacuna_request** request);
/* Ends a request: *request becomes NULL, whatever the status says of the message. A NULL request is done. message may
 * be NULL. Errors, of the message: TRUNCATED, PEER_LOST, MALFORMED, OUT_OF_MEMORY. */
lacuna_status lacuna_wait(lacuna_comm* comm, lacuna_request** request, lacuna_message* message);
/* *done: 1 if the request has ended, as lacuna_wait() ends it; 0: it is under way. Errors: as lacuna_wait(). */
lacuna_status lacuna_test(lacuna_comm* comm, lacuna_request** request, int* done, lacuna_message* message);
/* Waits for one of `count` requests and ends it; *index says which. NULLs are skipped. Errors: as lacuna_wait();
 * INVALID_ARGUMENT (all are NULL). */
lacuna_status lacuna_wait_any(lacuna_comm* comm, int count, lacuna_request** requests, int* index, lacuna_message* message);
/* Ends all; the status, and the message's text, are the first failed one's. messages may be NULL. */
lacuna_status lacuna_wait_all(lacuna_comm* comm, int count, lacuna_request** requests, lacuna_message* messages);
/* *cancelled: 1 if a receive that had found no message was taken back: *request is NULL then. 0: it has one. A NULL
 * request has none. */
lacuna_status lacuna_cancel(lacuna_comm* comm, lacuna_request** request, int* cancelled);
/* *found: 1 if a receive would find a message now; message says which. Errors: INVALID_ARGUMENT (no such rank),
 * PEER_LOST. */
lacuna_status lacuna_probe(lacuna_comm* comm, int source, int tag, int* found, lacuna_message* message);
/* Moves on without waiting; 1 if something moved. */
int lacuna_progress(lacuna_comm* comm);

/* Registers memory until lacuna_deregister_memory() for all messages in it: the program promises to keep it mapped
 * until then. It spares messages their registration where the system does not tell of freed memory
 * (lacuna_comm_statistics() says), and the look at it elsewhere. Errors: INVALID_ARGUMENT (no bytes, not mapped), LIMIT
 * (the memory that may be locked), OUT_OF_MEMORY. */
lacuna_status lacuna_register_memory(lacuna_comm* comm, void* base, int64_t bytes, uint32_t* number);
/* Ends what lacuna_register_memory() began. Errors: INVALID_ARGUMENT (no such number). */
lacuna_status lacuna_deregister_memory(lacuna_comm* comm, uint32_t number);

/* One-sided. The other rank's program makes no call for a put or a get, but it has to be in calls, or to have a
 * progress thread. Exposed memory is named by a few bytes, which a rank gives to others by a message. */
typedef struct lacuna_exposed {
  int32_t rank;
  uint32_t number;
  int64_t bytes;
} lacuna_exposed;

/* Lets the other ranks reach `bytes` bytes at base; *exposed names them. Errors: INVALID_ARGUMENT (no bytes, NULL),
 * OUT_OF_MEMORY. */
lacuna_status lacuna_expose(lacuna_comm* comm, void* base, int64_t bytes, lacuna_exposed* exposed);
/* No rank reaches the memory afterwards; waits for what is under way. Errors: INVALID_ARGUMENT (it is not exposed
 * here). */
lacuna_status lacuna_withdraw(lacuna_comm* comm, const lacuna_exposed* exposed);
/* Moves `src` at base into `dst`, which lies `offset` bytes behind the beginning of the exposed memory; done once the
 * bytes are there. Puts and gets that are under way together are done in any order. Errors: INVALID_ARGUMENT (sizes
 * differ, dst is not within the memory, or overlaps itself; it was withdrawn), LIMIT (the wire form of dst is longer
 * than 256 KiB), PEER_LOST. */
lacuna_status lacuna_put(lacuna_comm* comm, const void* base, const lacuna_layout* src, const lacuna_exposed* to, int64_t offset,
                         const lacuna_layout* dst);
/* Moves `src` of the exposed memory into `dst` at base. Errors: as lacuna_put(). */
lacuna_status lacuna_get(lacuna_comm* comm, void* base, const lacuna_layout* dst, const lacuna_exposed* from, int64_t offset,
                         const lacuna_layout* src);
/* As lacuna_put(), begun only. Errors: as lacuna_put(); INVALID_ARGUMENT (it was withdrawn) the request tells. */
lacuna_status lacuna_iput(lacuna_comm* comm, const void* base, const lacuna_layout* src, const lacuna_exposed* to, int64_t offset,
                          const lacuna_layout* dst, lacuna_request** request);
/* As lacuna_get(), begun only. Errors: as lacuna_iput(). */
lacuna_status lacuna_iget(lacuna_comm* comm, void* base, const lacuna_layout* dst, const lacuna_exposed* from, int64_t offset,
                          const lacuna_layout* src, lacuna_request** request);

/* What was sent and received, by which protocol and way. Writes at most size bytes with a final NUL, returns the
 * length of the whole text. */
size_t lacuna_comm_statistics(const lacuna_comm* comm, char* text, size_t size);
/* How a message would travel to `dest`. Writes as above; *needed is the length of the whole text. Errors:
 * INVALID_ARGUMENT (no such rank; the sizes differ). */
lacuna_status lacuna_comm_explain(lacuna_comm* comm, const lacuna_layout* src, const lacuna_layout* dst, int dest, char* text, size_t size,
                                  size_t* needed);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
