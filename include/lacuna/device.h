/* Device memory: layouts of a GPU's memory, moved by the GPU. */
#ifndef LACUNA_DEVICE_H
#define LACUNA_DEVICE_H

#include <stddef.h>

#include "layout.h"

/* NOLINTBEGIN(modernize-use-using): this is C */

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-use-using) */

#endif
