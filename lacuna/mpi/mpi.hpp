// mpi: the interposer. Loaded before an MPI program's own MPI (LD_PRELOAD), it takes the calls that move data with gaps and passes all others on. It
// hides the host MPI: everything below this folder's Host sees handles, not libraries.
//
//   program ── MPI_Send(buf, count, type, ...) ──▶ calls*.cpp ── nothing to gain, not understood ─────────────────────▶ PMPI_Send
//                                                     │
//                                                     ├─ small, with gaps: packed here ─────────── bytes ─────────────▶ PMPI_Send
//                                                     ├─ to another node: a descriptor in its place, then chunks ─────▶ PMPI_Send, PMPI_Isend (carrier.hpp), or RDMA (rdma.hpp)
//                                                     └─ else: Communicator::offer() ─── a descriptor in its place ───▶ PMPI_Send
//
//   program ── MPI_Recv(buf, count, type, ...) ◀── PMPI_Recv of bytes: is it a descriptor?  accept() : unpack
//
// Collectives pack what has gaps for the host (collection.hpp), or offer it to the ranks of the node (exchange.hpp); MPI_Put and MPI_Get do where the host is
// slow (windows.hpp).
//
// Three rules make that sound (DESIGN.md):
//
// 1. Descriptor in place. The host MPI matches: the descriptor has the message's communicator, tag and place in order. It is 61 bytes long, a size that no
//    array of numbers has, and begins with 128 random bits of the job. The choice is the sender's; to understand it is every rank's duty, agreed on in
//    MPI_Init: one rank that cannot, and nobody sends any. A receive of fewer than 61 bytes gets none: what is offered is longer.
// 2. Progress. A sender never needs its receiver: what a call leaves behind is packed, in shared memory. A blocking send waits for a receiver that keeps
//    pace, since windows that stay in the caches are faster, and leaves the rest behind as soon as it does not. So a receiver can always finish alone.
// 3. Probes. A probe has to tell the size of the message, not of its descriptor, so probed descriptors are received, with all that came before them from
//    the same sender, into a stash for each communicator, where later receives and probes look first.
//
// One binary for each ABI: LACUNA_MPI_ABI_OPENMPI, _MPICH or _STANDARD says which (abi.hpp).
#pragma once

namespace lacuna::mpi {

/// LACUNA_MPI: what is taken.
enum class Mode {
  off,   ///< nothing
  pack,  ///< MPI_Pack and MPI_Unpack
  full,  ///< and messages, and collectives
};

}  // namespace lacuna::mpi
