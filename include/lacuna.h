/* lacuna.h: Lacuna for C programs. Layouts, the CPU's copies, the guide, messages between processes, and exchanges
 * among all of them. This header has all of it; lacuna/... has it by topic.
 *
 * Every function that can fail returns a lacuna_status; outputs come last and are set only on success.
 * lacuna_error_message() then tells the calling thread what went wrong, where, and the limit. Layouts are immutable and
 * may be used from several threads at once.
 *
 * A pointer may be NULL only where its function says so. A NULL handle, output or list is INVALID_ARGUMENT, and the
 * message names the function and the pointer. A function that returns no status gives 0 then (lacuna_comm_rank(): -1).
 * A list that has no entries may be NULL, and so may a text, of which only the length is wanted then. Memory of data is
 * not looked at.
 *
 * Counts, strides and displacements mean what they mean in MPI (MPI-4.1, section 5.1); all are 64-bit. Bytes have no
 * type, so there is no alignment padding: use lacuna_layout_resized() where an extent is padded.
 */
#ifndef LACUNA_H
#define LACUNA_H

#include "lacuna/communicator.h"
#include "lacuna/device.h"
#include "lacuna/exchange.h"
#include "lacuna/guide.h"
#include "lacuna/layout.h"
#include "lacuna/status.h"

#endif
