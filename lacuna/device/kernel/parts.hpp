// parts: what the host tells a kernel. A launch moves parts that go one way.
#pragma once

#if defined(__CUDACC_RTC__)
#define LACUNA_ON_DEVICE __device__ __forceinline__
#define LACUNA_UNROLL _Pragma("unroll")
#define LACUNA_ONE_BY_ONE _Pragma("unroll 1")
#else
#define LACUNA_ON_DEVICE inline
#define LACUNA_UNROLL
#define LACUNA_ONE_BY_ONE
#endif

namespace lacuna::device::kernel {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;
using i64 = long long;

constexpr int kThreads = 256;       // of a block
constexpr int kMostLevels = 8;      // loops of a part
constexpr int kInlineParts = 5;     // parts that travel with a launch
constexpr int kMostTransfers = 64;  // pairs of addresses of a launch
constexpr int kSharedBytes = 16896;

/// Units of a thread whose loads are under way together, by the bytes of a word; for places of 32 and of 64 bits.
constexpr int flight_of(int word, bool narrow) { return word < 8 && narrow ? 8 : 4; }
constexpr int kWindowFlight = 2;
/// How often a thread does so: a block of threads is worth its start if it moves 16 KiB.
constexpr int rounds_of(int word, bool narrow) {
  const int bytes = kThreads * flight_of(word, narrow) * word;
  return bytes < 16384 ? 16384 / bytes : 1;
}
constexpr int kWindowRounds = 4;

struct alignas(16) Word16 {
  u64 low, high;
};

enum class Places : u8 { stride, list32, list64 };

/// One loop. Entry i lies i * from away, or, with a list, its item i times `from` (32 bits), or its item i (64 bits).
struct Level {
  u32 count;
  u32 magic;  ///< dividing by count: (high word of n * magic + n) >> shift, for n < 2^31
  u8 shift;
  Places from_places;
  Places to_places;
  u32 from_list;  ///< in the tables, in units of 8 bytes
  u32 to_list;
  i64 from;
  i64 to;
};

enum class Way : u8 { words, bytes, windows, squares };
constexpr int kWays = 4;

/// Runs of many lengths, in the tables.
struct Blocks {
  /// For 32 units each: the block of the first one (low half), and a bit for each unit that begins a block (high half)
  u32 marks;
  /// Of each block, as a level's list: where its unit 0 would be if all units of the part were one run (words), or
  /// where it begins
  u32 from;
  u32 to;
  u32 starts;          ///< windows: first unit of each block
  u32 lengths;         ///< windows: bytes of each block
  Places from_places;  ///< stride: the units are one run
  Places to_places;
};

/// A transpose: `along_from` items that are dense where they are read, `along_to` that are dense where they are
/// written.
struct Squares {
  i64 from_pitch;  ///< from one of the `along_to` to the next, where they are read
  i64 to_pitch;    ///< from one of the `along_from` to the next, where they are written
  u32 along_from;
  u32 along_to;
  u8 width;  ///< log2 of a square's items along_from
  u8 height;
  u8 from_word;
  u8 to_word;
};

struct Part {
  i64 from;  ///< of the first byte, from the transfer's addresses
  i64 to;
  i64 run;         ///< bytes; windows of equal runs
  u32 units;       ///< < 2^31
  u32 first_tile;  ///< among the launch's
  u16 transfer;
  Way way;
  u8 word;    ///< bytes that divide all places and lengths: 1, 2, 4, 8 or 16; squares: of an item
  u8 levels;  ///< the first one is the innermost: of a run's units, of a row of squares
  bool has_blocks;
  bool spread;  ///< a unit for each thread: work that would not fill the device otherwise
  /// One round: what a block of threads touches lies far apart, and more of it would be in no cache's reach
  bool sparse;
  bool narrow;  ///< all places, relative to the first byte's, are within 31 bits
  Blocks blocks;
  Squares squares;
  Level level[kMostLevels];
};

struct Transfer {
  u64 from;
  u64 to;
};

/// The parameters of a launch.
struct Launch {
  const u64* tables;
  const Part* more;   ///< all parts, if they are more than what travels with a launch
  const u32* owners;  ///< with `more`: the part of each tile, or null where they are searched
  u32 parts;
  u32 tiles;
  Transfer transfers[kMostTransfers];
  Part part[kInlineParts];
};
static_assert(sizeof(Launch) <= 4096);  // what any driver takes

/// The units that a block of threads takes.
LACUNA_ON_DEVICE u32 tile_units(const Part& part) {
  if (part.way == Way::squares) return 1;
  if (part.spread) return kThreads;
  if (part.way == Way::windows) return kThreads * kWindowFlight * kWindowRounds;
  const int rounds = part.sparse ? 1 : rounds_of(part.word, part.narrow);
  return static_cast<u32>(kThreads * flight_of(part.word, part.narrow) * rounds);
}

}  // namespace lacuna::device::kernel
