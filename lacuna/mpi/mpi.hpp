// mpi: the interposer. An MPI program loads it before its own MPI (LD_PRELOAD). It takes the calls that move data with
// gaps, and passes all others on. It hides the program's MPI, the host: all rooms but `host` see handles, not
// libraries.
//
//   program ── MPI_Send(buf, ...) ──▶ calls/ ── contiguous, not understood, or alone ──▶ PMPI_Send
//                                     │
//                                 messages/
//                                     ├─ short, with gaps: packed here, bytes ────────▶ PMPI_Send
//                                     ├─ to another node: a descriptor, then chunks ──▶ PMPI_Send, PMPI_Isend,
//                                     │                                                 RDMA (inter_node/)
//                                     └─ else: Communicator::offer(), a descriptor ───▶ PMPI_Send
//
//   program ── MPI_Recv(buf, ...) ◀── PMPI_Recv of bytes: is it a descriptor?  accept() : unpack
//
// The rooms, from the top down; each knows those before it (scripts/ladder.py):
//
//   abi          handles and constants of the host's binary interface
//   host         the host's functions, and what a process needs of its machine: CPUs, buffers, a mutex
//   types        datatypes as layouts; whether memory is a GPU's
//   report       what LACUNA_MPI_REPORT=1 prints
//   process      what a process has for itself; communicators; the descriptor
//   inter_node   messages to and from other nodes: chunks that the host moves, or parts that a device reads
//   rma          MPI_Put and MPI_Get
//   collectives  blocks with gaps that are packed for the host's collectives
//   job          MPI_Init to MPI_Finalize; requests that need something of Lacuna before they are complete
//   messages     sends, receives, probes, what completes requests, MPI_Alltoallw
//   calls        MPI's functions
//
// Three rules make that sound:
//
// 1. Descriptor in place. The host matches: the descriptor has the message's communicator, tag and place in order. It
//    is 253 bytes long, a size that no array of numbers has, and begins with 128 random bits of the job. The sender
//    chooses whether to send a descriptor. Every rank has to understand one; the ranks agree on that in MPI_Init, and
//    if one rank cannot, no rank sends any. A receive of fewer than 253 bytes gets none: what is offered is longer.
// 2. Progress. A sender never needs its receiver: what a call leaves behind is packed, in shared memory. A blocking
//    send waits for a receiver that keeps pace, since a ring that stays in the caches is faster, and leaves the rest
//    behind as soon as the receiver does not. So a receiver can always finish alone.
// 3. Probes. A probe has to tell the size of the message, not of its descriptor. So probed descriptors are received,
//    with all that came before them from the same sender, into a stash for each communicator, where later receives and
//    probes look first.
//
// One binary for each ABI: LACUNA_MPI_ABI_OPENMPI, _MPICH or _STANDARD says which (abi/abi.hpp).
#pragma once

namespace lacuna::mpi {

/// LACUNA_MPI: what is taken.
enum class Mode {
  off,   ///< nothing
  pack,  ///< MPI_Pack and MPI_Unpack
  full,  ///< and messages, and collectives
};

}  // namespace lacuna::mpi
