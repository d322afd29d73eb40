/* Layouts: which bytes, in which order. Their properties, their wire form, and copies by the CPU. */
#ifndef LACUNA_LAYOUT_H
#define LACUNA_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "status.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

/* --- layouts: which bytes, in which order, relative to a base address --- */

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

/* --- constructors: the caller frees each *layout with lacuna_layout_free() --- `old` is what a layout is made of; it
 * may be freed afterwards. Lists have `count` entries each, and are copied. Errors: INVALID_ARGUMENT (a count or length
 * below 0), OVERFLOW (an offset or size beyond 2^60 bytes), OUT_OF_MEMORY. */

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
/* Block i has blocklengths[i] times members[i] and begins byte_displacements[i] bytes behind the base. Errors: as of
 * all constructors. */
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
/* 1 if both name the same bytes in the same order, however they were written. But for long lists of nested blocks (64
 * or more, of more than 1024 runs), of which those that were written by one call alone are found to be alike. */
int lacuna_layout_same_runs(const lacuna_layout* a, const lacuna_layout* b);
/* *overlaps: 1 if some byte occurs twice, so that nothing can be received into the layout. Errors: LIMIT (it would
 * take too long to say). */
lacuna_status lacuna_layout_overlaps(const lacuna_layout* layout, int* overlaps);
/* Makes what copies of the layout need, which the first copy would make: for a program whose first copy must not be
 * slow. Errors: OUT_OF_MEMORY. */
lacuna_status lacuna_layout_prepare(const lacuna_layout* layout);
/* The canonical form as text. Writes at most size bytes with a final NUL, returns the length that the whole text has.
 * */
size_t lacuna_layout_describe(const lacuna_layout* layout, char* text, size_t size);
/* A layout in words: runs, extent, canonical form, kernels, run lengths. Writes and returns as
 * lacuna_layout_describe(); 0 if there is no memory. */
size_t lacuna_layout_explain(const lacuna_layout* layout, char* text, size_t size);

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

/* --- the wire form: a layout for a peer --- */

/* Writes the wire form if it fits into size bytes; *needed is its length either way. Errors: OUT_OF_MEMORY. */
lacuna_status lacuna_layout_encode(const lacuna_layout* layout, void* wire, size_t size, size_t* needed);
/* The inverse, for bytes from anywhere: a valid layout or an error. The caller frees *layout. Errors: MALFORMED,
 * OVERFLOW, LIMIT, OUT_OF_MEMORY. */
lacuna_status lacuna_layout_decode(const void* wire, size_t size, lacuna_layout** layout);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
