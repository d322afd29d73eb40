// usual_thresholds: where one way gives way to another, and nothing is measured on the machine at hand: what was found
// on others, each with where. For protocol, collective and mpi; those of an MPI are in mpi_ways.hpp.
#pragma once

#include <cstdint>

#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide::usual {

// --- messages --------------------------------------------------------------------------------------------------------

/// What is longer goes by a window or a registration of its own, which wait for the receiver (docs/design/messages.md).
inline constexpr std::int64_t kEagerBytes = 8 << 10;
/// Where CPUs share memory and a window is free: from so many bytes on it is with the receiver sooner than as a small
/// message (docs/notes/message-speed.md).
inline constexpr std::int64_t kStreamedBytes = 2 << 10;
/// A direct copy: shorter messages do not gain, and the kernel takes hardly less for shorter runs. On a Xeon of 2023 1
/// MiB in blocks of 64 KiB took 54 to 65 us instead of 96 to 107.
inline constexpr std::int64_t kDirectBytes = 64 << 10, kDirectRun = 4 << 10;

// --- exchanges -------------------------------------------------------------------------------------------------------

/// Of messages among many, in nanoseconds.
struct ExchangePrices {
  double message;  ///< a small one among many that are under way: both ends' CPUs
  double large;    ///< one that is not eager: its announcement, windows or registrations
  double latency;  ///< of a small one that everybody waits for
  double look;     ///< each look at one peer while waiting: a communicator looks at all of them
  double block;    ///< a block that is gathered, or scattered
  double byte;
  double device;  ///< the part of a message's time that is its NIC's: ranks that share one wait for one another there
};
/// Where CPUs share memory: docs/notes/message-speed.md has 0.15 to 0.45 us for 64 bytes one way, near and apart; 16
/// KiB take 1.1 to 2.2 us, 1 MiB 34 to 120.
inline constexpr ExchangePrices kShared{.message = 200, .large = 1000, .latency = 500, .look = 10, .block = 10, .byte = 0.05, .device = 0};
/// On a network: NIC `model` with connectx5-rocev2, 4 to 64 ranks, exchanges of 4 bytes one after the other. at_once
/// took 5.8, 7.9, 12.0, 19.8 and 32.5 us with 4, 8, 16, 32 and 64 ranks; forward 5.7 us a round with 16 ranks, and 7.3
/// with 64, of which the looks at all peers (20 ns each, more than once in a round) are what grows. A message that is
/// not eager took 100 us, most of it two registrations and their ends.
inline constexpr ExchangePrices kWire{
    .message = 450, .large = 100'000, .latency = 4700, .look = 30, .block = 13, .byte = 0.15, .device = 365};
/// So many messages that are not eager at once are no burden: one of 96 KiB took nearly twice as long where 4 MiB of
/// windows were in use instead of 1.5 (more pages than the TLB has; docs/notes/message-speed.md), and each has up to
/// 512 KiB. On a network each holds memory that is registered, or staged.
inline constexpr std::int64_t kManyLarge = 8;

// --- puts and gets of an MPI -----------------------------------------------------------------------------------------

/// Shorter operations take longer than what packing saves; with runs from so many bytes on, MPIs are as fast as memory.
inline constexpr std::int64_t kRmaBytes = 2048, kRmaRun = 1024;
/// Whether packing pays. From puts and gets of 2 to 256 KiB in blocks of 8 B to 1 KiB between two ranks of a node
/// (docs/notes/mpi.md): Open MPI copies straight in memory that it shares, and makes an operation of each block
/// elsewhere, whichever side has them. MPICH packs, more slowly. Intel MPI is slow with blocks in gets from memory that
/// is not shared, even if the target's have gaps.
constexpr bool rma_packing_pays(MpiLibrary library, bool gets, bool shared, bool target_has_gaps) {
  switch (library) {
    case MpiLibrary::open_mpi: return !shared && !target_has_gaps;
    case MpiLibrary::intel: return !shared && gets;
    case MpiLibrary::mpich: return !target_has_gaps;
    case MpiLibrary::mpich_4_0: break;  // its MPI_Win_complete may return before what was got is there
  }
  return false;
}

}  // namespace lacuna::guide::usual
