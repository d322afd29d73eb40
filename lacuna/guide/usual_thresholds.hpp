// usual_thresholds: where one way gives way to another, and nothing is measured on the machine at hand: what was found
// on others, each with where. For protocol, collective and mpi; those of an MPI are in mpi_ways.hpp.
#pragma once

#include <cstdint>

#include "lacuna/guide/exchange_prices.hpp"
#include "lacuna/guide/mpi_ways.hpp"

namespace lacuna::guide::usual {

// --- CPUs ------------------------------------------------------------------------------------------------------------

/// Nanoseconds that a CPU takes to read a line which another CPU has written: from so many on the two are distant. They
/// become so, or near again, where a time is beyond that by the margin. In a VM on an EPYC of 2024 (Zen 5), whose host
/// moves its two CPUs, 10 to 20 near and 110 to 130 distant; a message of 64 KiB in runs of 512 B takes 3.1 and 5.8 us
/// offered, 3.3 and 13.3 by Open MPI's own datatypes.
inline constexpr double kDistantLine = 60, kLineMargin = 1.25;

// --- messages --------------------------------------------------------------------------------------------------------

/// What is longer goes by a window or a registration of its own, which wait for the receiver (docs/design/messages.md).
inline constexpr std::int64_t kEagerBytes = 8 << 10;
/// A window is left in favour of the channel where it is not expected to take less than this share: a channel's lines
/// are used over and over, and stay in the caches; a window's are not there any more if the program did something else
/// meanwhile. 8 KiB between near CPUs: 0.88 us and 0.64 one after another, 0.65 and 1.27 between other work.
inline constexpr double kWindowGain = 0.8;
/// A message that would be eager, but for which the channel has no room, takes a window if it is longer than that: the
/// length from which windows were used before times were measured. A shorter one leaves the windows to others.
inline constexpr std::int64_t kWindowBytes = 2 << 10;
/// A direct copy: shorter messages do not gain, and the kernel takes hardly less for shorter runs. On a Xeon of 2023 1
/// MiB in blocks of 64 KiB took 54 to 65 us instead of 96 to 107.
inline constexpr std::int64_t kDirectBytes = 64 << 10, kDirectRun = 4 << 10;
/// Its pieces. On a Xeon, 1 MiB in blocks of 4 KiB: 131 us in pieces of 16 KiB, 100 of 64, 96 of 128; one CPU alone
/// 172. The last pieces shall end at about the same time.
inline constexpr std::int64_t kLeastPiece = 64 << 10, kMostPiece = 128 << 10, kPieces = 8;

// --- streams ---------------------------------------------------------------------------------------------------------

/// Chunks. Lines that come again soon are in the other CPU's L2 cache still, and slow to write: 256 KiB over and over
/// move 8 GB/s on an EPYC of 2022. In 1.5 MiB, half as much again as its L2 cache, they come back from the L3 cache,
/// and move 23 GB/s. More is not better for messages that are short themselves: 4 MiB in each direction are more pages
/// than the TLB has, and 96 KiB in blocks take 7.1 us instead of 3.9. A message of 1 MiB goes round 2 MiB on its own,
/// with 29 GB/s, and round 512 KiB with 17.
inline constexpr std::int64_t kLeastChunk = 4 << 10, kMostChunk = 64 << 10;
/// A message; chunks of longer ones are twice the least, and so are those that pass caches by.
inline constexpr std::int64_t kShortMessage = 32 << 10;
/// Of a message, until they become too short or too long: both CPUs shall have something to do.
inline constexpr std::int64_t kChunks = 32;
inline constexpr std::uint32_t kFewestChunks = 8;  ///< of a ring that a message goes round
/// Of the part of a window that a narrow stream uses: a Xeon of 2023 wants it (docs/notes/message-speed.md).
inline constexpr std::uint32_t kNarrowBytes = 128 << 10;
/// A message so long that its first bytes have left the caches when its last arrive. If the receiver's stores pass the
/// caches by, 64 MiB take 5.0 ms instead of 5.7.
inline constexpr std::int64_t kHugeMessage = 8 << 20;
/// About what packing takes, and the round trip of a descriptor through a host's MPI: so long an offer of a direct copy
/// stands.
inline constexpr std::int64_t kPackedBytesPerNs = 8, kLeastPatience = 5'000;
/// What stores that pass the caches by have to gain for the sender, in ns of each line, and as a share of a piece's
/// time. A reader loses 3 ns by a line that is in memory only. And a trial finds plain stores slower than they are in
/// use: where CPUs share a cache a line takes 1.6 to 2.2 ns among plain ones, 5 to 8 where other stores or other work
/// have moved its window out of the caches, so that passing seems to gain up to 4 ns for ever. Between CPUs without a
/// common cache it gains 20 ns and more.
inline constexpr double kReadersLine = 3, kTriedLine = 2, kLeastGain = 0.25;
/// Messages of about one length learn together how they are streamed: from so many bytes on these are others, and so
/// are those of longer runs, of which a direct copy takes two thirds of the time of short ones.
inline constexpr std::int64_t kMiddleMessage = 256 << 10, kLongMessage = 4 << 20, kLongRun = 16 << 10;

/// Messages from so many bytes on are timed, so that ways can be compared, and pieces of them. Chosen, not measured: of
/// the 1.1 to 2.2 us of 16 KiB (docs/notes/message-speed.md) readings of the clock would be some percent, and a piece
/// of 1 KiB is over before a clock sees it, while its reader waits for the first line anyway.
inline constexpr std::int64_t kTimedMessage = 32 << 10, kTimedPiece = 2 << 10;

// --- exchanges -------------------------------------------------------------------------------------------------------

/// Where no rank's profile has prices. Where CPUs share memory: docs/notes/message-speed.md has 0.15 to 0.45 us for 64
/// bytes one way, near and apart; 16 KiB take 1.1 to 2.2 us, 1 MiB 34 to 120.
inline constexpr ExchangePrices kShared{{/*latency*/ 500, /*message*/ 200, /*large*/ 1000, /*block*/ 10, /*byte*/ 0.05F}};
/// On a network: NIC `model` with connectx5-rocev2, 4 to 64 ranks, exchanges of 4 bytes one after the other. at_once
/// took 5.8, 7.9, 12.0, 19.8 and 32.5 us with 4, 8, 16, 32 and 64 ranks; forward 5.7 us a round with 16 ranks, and 7.3
/// with 64, of which the looks at all peers (20 ns each, more than once in a round) are what grows. A message that is
/// not eager took 14 us beside its latency and its bytes, as `lacuna guide --nic model` measures it: the same memory
/// again and again. Two registrations and their ends are 80 us more.
inline constexpr ExchangePrices kWire{{/*latency*/ 4700, /*message*/ 450, /*large*/ 14'000, /*block*/ 13, /*byte*/ 0.15F}};
/// Each look at one peer while waiting: a communicator looks at all of them. Two ranks do not tell what it takes.
inline constexpr double kSharedLook = 10, kWireLook = 30;
/// The part of a message's time that is its NIC's, at most: ranks that share one wait for one another there. On the
/// model `nic.request` and `nic.packet`; two ranks on two nodes share none.
inline constexpr double kWireDevice = 365;
/// So many messages that are not eager at once are no burden: one of 96 KiB took nearly twice as long where 4 MiB of
/// windows were in use instead of 1.5 (more pages than the TLB has; docs/notes/message-speed.md), and each has up to
/// 512 KiB. On a network each holds memory that is registered, or staged.
inline constexpr std::int64_t kManyLarge = 8;

// --- what a preloaded program learned --------------------------------------------------------------------------------

/// Holds for pieces whose bytes and run lengths are within this factor: between two sizes of a sheet that are 4 times
/// apart lie three such steps each way. As what the methods learned is used (docs/design/choosing.md).
inline constexpr double kSamePiece = 1.3;

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
