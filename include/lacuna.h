/* lacuna.h: Lacuna for C programs. Layouts, the CPU's copies, the guide, messages between processes, and exchanges among all of them.
 *
 * Every function that can fail returns a lacuna_status; outputs come last and are set only on success. A pointer may be
 * NULL only where its function says so.
 * lacuna_error_message() then tells the calling thread what went wrong, where, and the limit. Layouts are immutable and
 * may be used from several threads at once.
 *
 * Counts, strides and displacements mean what they mean in MPI (MPI-4.1, section 5.1); all are 64-bit. Bytes have no
 * type, so there is no alignment padding: use lacuna_layout_resized() where an extent is padded.
 */
#ifndef LACUNA_H
#define LACUNA_H

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum lacuna_status {
  LACUNA_OK = 0,
  LACUNA_ERR_INVALID_ARGUMENT = 1, /* the input breaks a rule that the message names */
  LACUNA_ERR_OVERFLOW = 2,         /* an offset or size is beyond 2^60 bytes */
  LACUNA_ERR_LIMIT = 3,            /* a limit; the message holds it */
  LACUNA_ERR_MALFORMED = 4,        /* a wire form is not one */
  LACUNA_ERR_OUT_OF_MEMORY = 5,
  LACUNA_ERR_OTHER = 6,
  LACUNA_ERR_UNSUPPORTED = 7, /* this NIC, path or placement cannot do it; the message says why */
  LACUNA_ERR_TRUNCATED = 8,   /* a message is longer than its receive */
  LACUNA_ERR_PEER_LOST = 9,   /* a peer died, left, or broke the rules */
  LACUNA_ERR_TIMEOUT = 10,
  LACUNA_ERR_PERMISSION = 11 /* the operating system or a peer refused: another user's process, a wrong secret */
} lacuna_status;

/* Which index of an array is the slowest: the first, or the last. */
typedef enum lacuna_order { LACUNA_ORDER_C = 0, LACUNA_ORDER_FORTRAN = 1 } lacuna_order;
/* How one dimension of an array is spread over processes. */
typedef enum lacuna_distribution {
  LACUNA_DISTRIBUTE_NONE = 0,
  LACUNA_DISTRIBUTE_BLOCK = 1,
  LACUNA_DISTRIBUTE_CYCLIC = 2
} lacuna_distribution;
#define LACUNA_DISTRIBUTE_DEFAULT (-1) /* a block size: as even as can be, or 1 where it is cyclic */

/* Which bytes, in which order, relative to a base address. */
typedef struct lacuna_layout lacuna_layout;

/* "0.1.0" */
const char* lacuna_version(void);

/* What the last failed call of this thread has to say; valid until its next failed call. */
const char* lacuna_error_message(void);

/* --- constructors: the caller frees each *layout with lacuna_layout_free() ---
 * `old` is what a layout is made of; it may be freed afterwards. Lists have `count` entries each, and are copied.
 * Errors: INVALID_ARGUMENT (a count or length below 0), OVERFLOW (an offset or size beyond 2^60 bytes), OUT_OF_MEMORY. */

/* `count` contiguous bytes. Errors: as of all constructors. */
lacuna_status lacuna_layout_bytes(int64_t count, lacuna_layout** layout);
/* `count` times `old`, each at the end of the one before. Errors: as of all constructors. */
lacuna_status lacuna_layout_contiguous(int64_t count, const lacuna_layout* old, lacuna_layout** layout);
/* `count` blocks of `blocklength` times `old`; a block begins `stride` extents of `old` behind the one before. Errors:
 * as of all constructors. */
lacuna_status lacuna_layout_vector(int64_t count, int64_t blocklength, int64_t stride, const lacuna_layout* old, lacuna_layout** layout);
/* As lacuna_layout_vector(), with the stride in bytes. Errors: as of all constructors. */
lacuna_status lacuna_layout_hvector(int64_t count, int64_t blocklength, int64_t stride_bytes, const lacuna_layout* old,
                                    lacuna_layout** layout);
/* Block i has blocklengths[i] times `old` and begins displacements[i] extents of `old` behind the base. Errors: as of
 * all constructors. */
lacuna_status lacuna_layout_indexed(int64_t count, const int64_t* blocklengths, const int64_t* displacements, const lacuna_layout* old,
                                    lacuna_layout** layout);
/* As lacuna_layout_indexed(), with one length for all blocks. Errors: as of all constructors. */
lacuna_status lacuna_layout_indexed_block(int64_t count, int64_t blocklength, const int64_t* displacements, const lacuna_layout* old,
                                          lacuna_layout** layout);
/* As lacuna_layout_indexed(), with displacements in bytes. Errors: as of all constructors. */
lacuna_status lacuna_layout_hindexed(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                     const lacuna_layout* old, lacuna_layout** layout);
/* As lacuna_layout_hindexed(), with one length for all blocks. Errors: as of all constructors. */
lacuna_status lacuna_layout_hindexed_block(int64_t count, int64_t blocklength, const int64_t* byte_displacements, const lacuna_layout* old,
                                           lacuna_layout** layout);
/* Block i has blocklengths[i] times members[i] and begins byte_displacements[i] bytes behind the base. Errors: as of all
 * constructors. */
lacuna_status lacuna_layout_struct(int64_t count, const int64_t* blocklengths, const int64_t* byte_displacements,
                                   const lacuna_layout* const* members, lacuna_layout** layout);
/* A box of an array: sizes, subsizes and starts have `dims` entries each, in elements `old`. Errors: as of all
 * constructors; INVALID_ARGUMENT where the box is not within the array. */
lacuna_status lacuna_layout_subarray(int dims, const int64_t* sizes, const int64_t* subsizes, const int64_t* starts, lacuna_order order,
                                     const lacuna_layout* old, lacuna_layout** layout);
/* The part of process `rank` of an array of sizes, spread over `processes` in a grid (row-major). Lists have dims
 * entries each; block_sizes: elements, or LACUNA_DISTRIBUTE_DEFAULT. Errors: as of all constructors; INVALID_ARGUMENT
 * where the grid has not as many places as there are processes. */
lacuna_status lacuna_layout_darray(int64_t processes, int64_t rank, int dims, const int64_t* sizes,
                                   const lacuna_distribution* distributions, const int64_t* block_sizes, const int64_t* grid,
                                   lacuna_order order, const lacuna_layout* old, lacuna_layout** layout);
/* The elements of an array in the order of its indices, the last one fastest: NumPy's shape (elements) and strides
 * (bytes). Errors: as of all constructors. */
lacuna_status lacuna_layout_strided(int64_t item_bytes, int dims, const int64_t* shape, const int64_t* strides_bytes,
                                    lacuna_layout** layout);
/* `old` with another lower bound and extent, in bytes, which say where the next one begins. Errors: as of all
 * constructors. */
lacuna_status lacuna_layout_resized(const lacuna_layout* old, int64_t lower_bound, int64_t extent, lacuna_layout** layout);
/* lengths[i] bytes at offsets[i] bytes. Errors: as of all constructors. */
lacuna_status lacuna_layout_blocks(int64_t count, const int64_t* offsets, const int64_t* lengths, lacuna_layout** layout);
/* Blocks of block_bytes bytes at page_numbers[i] * block_bytes: a page table. Errors: as of all constructors. */
lacuna_status lacuna_layout_paged(int64_t block_bytes, int64_t count, const int64_t* page_numbers, lacuna_layout** layout);

/* What bytes [position, position + length) of the packed stream of `whole` are. Errors: INVALID_ARGUMENT (not within
 * the stream). */
lacuna_status lacuna_layout_slice(const lacuna_layout* whole, int64_t position, int64_t length, lacuna_layout** layout);

/* NULL is allowed. What was begun with the layout goes on. */
void lacuna_layout_free(lacuna_layout* layout);

/* --- properties, in bytes --- */

/* Bytes of the data: the length of the packed stream. */
int64_t lacuna_layout_size(const lacuna_layout* layout);
/* Contiguous runs, after merging neighbours. */
int64_t lacuna_layout_run_count(const lacuna_layout* layout);
/* Bytes from the base to where the extent begins (MPI's lower bound). */
int64_t lacuna_layout_lower_bound(const lacuna_layout* layout);
/* Bytes from one element to the next, where several are put together. */
int64_t lacuna_layout_extent(const lacuna_layout* layout);
/* Bytes from the base to the first byte of the data. */
int64_t lacuna_layout_true_lower_bound(const lacuna_layout* layout);
/* Bytes from the first byte of the data to behind the last one. */
int64_t lacuna_layout_true_extent(const lacuna_layout* layout);
/* 1 if both name the same bytes in the same order, however they were written */
int lacuna_layout_same_runs(const lacuna_layout* a, const lacuna_layout* b);
/* *overlaps: 1 if some byte occurs twice, so that nothing can be received into the layout. Errors: LIMIT (it would
 * take too long to say). */
lacuna_status lacuna_layout_overlaps(const lacuna_layout* layout, int* overlaps);
/* Makes what copies of the layout need, which the first copy would make: for a program whose first copy must not be
 * slow. Errors: OUT_OF_MEMORY. */
lacuna_status lacuna_layout_prepare(const lacuna_layout* layout);
/* The canonical form as text. Writes at most size bytes with a final NUL, returns the length that the whole text has. */
size_t lacuna_layout_describe(const lacuna_layout* layout, char* text, size_t size);

/* --- copies: bytes [position, position + length) of the packed stream --- */

/* Copies that part of the layout at `base` to `out`, which has room for `length` bytes. Errors: INVALID_ARGUMENT (not
 * within the stream). */
lacuna_status lacuna_pack(const lacuna_layout* layout, const void* base, int64_t position, int64_t length, void* out);
/* Copies `length` bytes from `in` to that part of the layout at `base`. Errors: INVALID_ARGUMENT (not within the
 * stream). */
lacuna_status lacuna_unpack(const lacuna_layout* layout, void* base, int64_t position, int64_t length, const void* in);
/* The whole of src into dst, without staging. The sizes must be equal and the buffers apart; dst must not overlap
 * itself, which is not looked at (lacuna_layout_overlaps() does). Errors: INVALID_ARGUMENT (the sizes differ). */
lacuna_status lacuna_transpack(const lacuna_layout* src, const void* src_base, const lacuna_layout* dst, void* dst_base);

/* Threads that copy together, the caller's own among them: 1 to 1024. A copy of less than some 256 KiB for
 * each is done by fewer. One caller at a time. The caller frees the team. Errors: INVALID_ARGUMENT, LIMIT (no further
 * thread). */
typedef struct lacuna_team lacuna_team;
lacuna_status lacuna_team_make(int threads, lacuna_team** team);
/* Ends its threads. NULL is allowed. */
void lacuna_team_free(lacuna_team* team);
/* As lacuna_pack(). */
lacuna_status lacuna_team_pack(lacuna_team* team, const lacuna_layout* layout, const void* base, int64_t position, int64_t length,
                               void* out);
/* As lacuna_unpack(). Errors, beside those: INVALID_ARGUMENT (the layout overlaps itself). */
lacuna_status lacuna_team_unpack(lacuna_team* team, const lacuna_layout* layout, void* base, int64_t position, int64_t length,
                                 const void* in);
/* As lacuna_transpack(). Errors, beside those: INVALID_ARGUMENT (dst overlaps itself). */
lacuna_status lacuna_team_transpack(lacuna_team* team, const lacuna_layout* src, const void* src_base, const lacuna_layout* dst,
                                    void* dst_base);

/* --- device memory: layouts of a GPU's memory, moved by the GPU ---
 * A device belongs to one thread at a time. Memory is the device's own, pinned memory of the host, or another process's
 * that was attached by CUDA. Streams are CUstreams, which are cudaStream_ts; NULL is the default stream. Nothing waits
 * unless it says so. */

typedef struct lacuna_device lacuna_device;
typedef struct lacuna_device_plan lacuna_device_plan;

/* "cuda:0", or "emulated": the same kernels on the CPU, for tests. The caller frees the device. Errors: UNSUPPORTED
 * (no driver or no such GPU; the message says what to do), INVALID_ARGUMENT. */
lacuna_status lacuna_device_open(const char* name, lacuna_device** device);
/* NULL is allowed. The plans of the device are freed before. */
void lacuna_device_free(lacuna_device* device);

/* Moves `src` at src_base into `dst` at dst_base, after what the stream holds; packs where dst is
 * lacuna_layout_bytes(), unpacks where src is. The first such move of two layouts makes a plan, which takes device
 * memory and waits; the 64 last plans are kept. Errors: INVALID_ARGUMENT (the sizes differ; dst overlaps itself),
 * LIMIT, OUT_OF_MEMORY. */
lacuna_status lacuna_device_move(lacuna_device* device, const lacuna_layout* src, const void* src_base, const lacuna_layout* dst,
                                 void* dst_base, void* stream);

/* A plan of `count` pairs of layouts, at most 64, moved by one launch (or up to four, where their runs ask for
 * different kernels), which a CUDA graph can capture. alignment: the power of two, 1 to 16, that divides all addresses
 * that the plan will be given. The caller frees the plan, once the streams have done its moves. Errors: as
 * lacuna_device_move(). */
lacuna_status lacuna_device_plan_make(lacuna_device* device, int count, const lacuna_layout* const* src, const lacuna_layout* const* dst,
                                      int alignment, lacuna_device_plan** plan);
/* Moves all pairs, after what the stream holds; there are as many addresses as pairs. Errors: INVALID_ARGUMENT (an
 * address that `alignment` does not divide), OTHER (the driver; the message has its words). */
lacuna_status lacuna_device_plan_move(lacuna_device_plan* plan, const void* const* src_bases, void* const* dst_bases, void* stream);
/* The plan in words, a line for each part. Writes and returns as lacuna_layout_describe(). */
size_t lacuna_device_plan_describe(const lacuna_device_plan* plan, char* text, size_t size);
/* NULL is allowed. */
void lacuna_device_plan_free(lacuna_device_plan* plan);

/* --- the wire form: a layout for a peer --- */

/* Writes the wire form if it fits into size bytes; *needed is its length either way. Errors: OUT_OF_MEMORY. */
lacuna_status lacuna_layout_encode(const lacuna_layout* layout, void* wire, size_t size, size_t* needed);
/* The inverse, for bytes from anywhere: a valid layout or an error. The caller frees *layout. Errors: MALFORMED, OVERFLOW,
 * LIMIT, OUT_OF_MEMORY. */
lacuna_status lacuna_layout_decode(const void* wire, size_t size, lacuna_layout** layout);

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
  int objective;   /* a lacuna_objective */
  int src_private; /* 1: the source is memory that Lacuna did not allocate, which paths over shared memory do not reach */
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
/* A layout in words: runs, extent, canonical form, kernels, run lengths. Writes and returns as
 * lacuna_layout_describe(); 0 if there is no memory. */
size_t lacuna_layout_explain(const lacuna_layout* layout, char* text, size_t size);

/* --- messages ---
 * Between processes that connected, by rank. They have tags, and are matched as MPI matches them (MPI-4.1, 3.5): messages of one sender do not
 * overtake one another, a receive with wildcards takes the earliest.
 *
 * Nothing moves but inside of a call: a call that waits moves everything, lacuna_progress() moves without waiting. A small send is done when it returns;
 * a large one needs both ends to be in calls. With progress_thread a thread of the library does so while the program computes.
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
  const char* nic;          /* NULL: "local" */
  double timeout_s;         /* for all to come; 0: 30 */
  int64_t eager_bytes;      /* a message of up to so many bytes is sent before anybody asks for it; 0: 8192, at most 16384 */
  int64_t unexpected_bytes; /* for each peer: small messages that wait for their receive; 0: 4 MiB */
  int progress_thread;      /* 1: a thread moves messages on while the program computes */
  const char* registering;  /* what becomes of memory that a NIC has to know: "automatic", "copy", "leave_pinned", "pipeline",
                               "leave_pinned_pipeline" (docs/guide/registration.md). NULL: LACUNA_REGISTERING, or else "automatic" */
  const char* learning;     /* "off", "observe", "on", "on:1000": whether one message in so many goes another way to correct the choice
                               (docs/guide/choosing.md). NULL: LACUNA_LEARN, or else "off" */
} lacuna_connect_options;

/* Meets the others; returns once all `size` have come. address: a name, for processes of one user on one machine; or
 * "host:port", where rank 0 listens, for processes that have the secret (at least 16 bytes; NULL with a name). rank: -1 with
 * a name: as they come. options may be NULL. The caller frees the connection. Errors: INVALID_ARGUMENT, PERMISSION,
 * TIMEOUT (the message says who is missing), PEER_LOST, UNSUPPORTED. */
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

/* --- exchanges: what all ranks do together ---
 * All ranks make these calls, in the same order; as long as one makes none, the others wait for it. Before anything moves the ranks agree: what is asked
 * for, whether each message has as many bytes at both ends, and the schedule. So what does not fit is an error on every rank, and no memory was written.
 * Blocks that are received into must not overlap one another, nor what is sent. */

typedef struct lacuna_exchange lacuna_exchange;

/* All 0: the defaults. All ranks the same. */
typedef struct lacuna_exchange_options {
  const char* schedule; /* "at_once", "pairwise", "forward" (neighbours have none); NULL: "automatic", what is expected to be fastest */
  int window;           /* of pairwise: sends, and receives, under way at once; 0: 8 */
  double timeout_s;     /* of lacuna_exchange_wait(), for the other ranks; 0: for ever */
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
