// kernel: what moves bytes on a device. The same source is compiled for GPUs (kernel.cu, by NVRTC, which has no standard headers) and as C++ for the
// emulated device, where each thread of a grid runs by itself. It hides how a thread finds the bytes that are its own.
//
// A launch moves parts that go one way. A part is a nest of loops over runs that are the same on two sides; each loop has a stride or a list of places on either side. All
// of a part's work is cut into units, numbered in the order of the nest, and a block of threads takes a tile of them:
//
//   words    a unit is a word of 8 or 16 bytes, aligned on both sides
//   bytes    a unit is a word of 1, 2 or 4 bytes, aligned on both sides
//   windows  a unit is 16 bytes that are aligned where they are written, as far as they are in the run: any alignment, any length
//   squares  a unit is a square of a transpose, which goes through memory that the block shares: both sides are touched in long words
//
// Runs of many lengths are blocks: a mask of 32 units tells where blocks begin, so that the block of a unit is counted, not searched.
//
// A GPU's memory is as fast as it should be only while enough loads are under way: each thread begins the loads of several units before it stores one, and
// places are 32 bits wide wherever they fit, since registers decide how many threads there are. No thread allocates, or waits for another block: a launch is
// ordered by its stream alone.
#pragma once

#if defined(__CUDACC_RTC__)
#define LACUNA_ON_DEVICE __device__ __forceinline__
#define LACUNA_UNROLL _Pragma("unroll")
#define LACUNA_ONE_BY_ONE _Pragma("unroll 1")
#else
#include <cstring>

#include "lacuna/device/emulated/memory.hpp"
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
  u32 marks;    ///< for 32 units each: the block of the first one (low half), and a bit for each unit that begins a block (high half)
  u32 from;     ///< of each block, as a level's list: where its unit 0 would be if all units of the part were one run (words), or where it begins
  u32 to;
  u32 starts;   ///< windows: first unit of each block
  u32 lengths;  ///< windows: bytes of each block
  Places from_places;  ///< stride: the units are one run
  Places to_places;
};

/// A transpose: `along_from` items that are dense where they are read, `along_to` that are dense where they are written.
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
  bool spread;  ///< a unit for each thread: work that would not fill the device otherwise, or that is scattered
  bool sparse;  ///< one round: what a block of threads touches lies far apart, and more of it would be in no cache's reach
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
  const Part* more;  ///< all parts, if they are more than what travels with a launch
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

// --- memory -----------------------------------------------------------------------------------------------------------

#if defined(__CUDACC_RTC__)

template <class T>
LACUNA_ON_DEVICE T load(u64 address) {
  return *reinterpret_cast<const T*>(address);
}
template <>
LACUNA_ON_DEVICE Word16 load<Word16>(u64 address) {
  const ulonglong2 word = *reinterpret_cast<const ulonglong2*>(address);
  return {word.x, word.y};
}
template <class T>
LACUNA_ON_DEVICE void store(u64 address, T value) {
  *reinterpret_cast<T*>(address) = value;
}
template <>
LACUNA_ON_DEVICE void store<Word16>(u64 address, Word16 value) {
  *reinterpret_cast<ulonglong2*>(address) = ulonglong2{value.low, value.high};
}
template <class T>
LACUNA_ON_DEVICE T listed(const u64* tables, u32 list, u32 i) {
  return __ldg(reinterpret_cast<const T*>(tables + list) + i);
}
LACUNA_ON_DEVICE u32 high_word(u32 a, u32 b) { return __umulhi(a, b); }
LACUNA_ON_DEVICE u32 ones(u32 bits) { return static_cast<u32>(__popc(bits)); }

#else

template <class T>
T load(u64 address) {
  T value;
  std::memcpy(&value, emulated::alias(address, sizeof(T), alignof(T)), sizeof(T));
  return value;
}
template <class T>
void store(u64 address, T value) {
  std::memcpy(emulated::alias(address, sizeof(T), alignof(T)), &value, sizeof(T));
}
template <class T>
T listed(const u64* tables, u32 list, u32 i) {
  return load<T>(reinterpret_cast<u64>(tables) + u64{list} * 8 + u64{i} * sizeof(T));
}
inline u32 high_word(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
inline u32 ones(u32 bits) { return static_cast<u32>(__builtin_popcount(bits)); }

#endif

// --- places -----------------------------------------------------------------------------------------------------------

/// Where the runs of a thread's units lie on both sides, relative to the part's first byte, and which units of them they are.
template <class Offset, int flight>
struct Spots {
  Offset from[flight];
  Offset to[flight];
  u32 unit[flight];
};

/// Divides what is left of the units by the level's count: the remainders are the loop's indices. The outermost loop takes what is left.
template <int flight>
LACUNA_ON_DEVICE void divide(const Level& level, bool outermost, u32 (&left)[flight], u32 (&index)[flight]) {
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    index[k] = left[k];
    if (outermost) continue;
    left[k] = (high_word(left[k], level.magic) + left[k]) >> level.shift;
    index[k] -= left[k] * level.count;
  }
}

/// `places`: from or to, which grows by where the loop's entries lie on that side.
template <class Offset, int flight>
LACUNA_ON_DEVICE void add_places(const u64* tables, Places kind, u32 list, i64 step, const u32 (&index)[flight], Offset (&places)[flight]) {
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    if (kind == Places::stride)
      places[k] += static_cast<Offset>(index[k]) * static_cast<Offset>(step);
    else if (kind == Places::list32)
      places[k] += static_cast<Offset>(listed<int>(tables, list, index[k])) * static_cast<Offset>(step);
    else
      places[k] += static_cast<Offset>(listed<i64>(tables, list, index[k]));
  }
}

/// The block that holds a unit.
LACUNA_ON_DEVICE u32 block_of(const u64* tables, const Part& part, u32 unit) {
  const u64 mark = listed<u64>(tables, part.blocks.marks, unit >> 5);
  const u32 begun = static_cast<u32>(mark >> 32) & (0xffffffffU >> (31 - (unit & 31)));  // up to the unit itself
  return static_cast<u32>(mark) + ones(begun);
}

/// The units first + k * kThreads; those beyond `end` are found as the part's first one.
template <class Offset, int flight>
LACUNA_ON_DEVICE void find(const u64* tables, const Part& part, u32 first, u32 end, Spots<Offset, flight>& spots) {
  u32 left[flight];
  u32 index[flight];
  const int levels = part.levels;
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const u32 unit = first + static_cast<u32>(k * kThreads);
    left[k] = unit < end ? unit : 0;
    spots.from[k] = 0;
    spots.to[k] = 0;
  }
  divide<flight>(part.level[0], levels == 1, left, spots.unit);
  LACUNA_ONE_BY_ONE
  for (int l = 1; l < levels; ++l) {
    const Level& level = part.level[l];
    divide<flight>(level, l + 1 == levels, left, index);
    add_places<Offset, flight>(tables, level.from_places, level.from_list, level.from, index, spots.from);
    add_places<Offset, flight>(tables, level.to_places, level.to_list, level.to, index, spots.to);
  }
}

// --- words ------------------------------------------------------------------------------------------------------------

template <class Word, class Offset>
LACUNA_ON_DEVICE void move_words(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  constexpr int flight = flight_of(sizeof(Word), sizeof(Offset) == 4);
  Spots<Offset, flight> spots;
  find<Offset, flight>(tables, part, first, end, spots);
  if (part.has_blocks) {
    u32 block[flight];
    LACUNA_UNROLL
    for (int k = 0; k < flight; ++k) block[k] = block_of(tables, part, spots.unit[k]);
    const i64 word = sizeof(Word);
    if (part.blocks.from_places != Places::stride) add_places<Offset, flight>(tables, part.blocks.from_places, part.blocks.from, word, block, spots.from);
    if (part.blocks.to_places != Places::stride) add_places<Offset, flight>(tables, part.blocks.to_places, part.blocks.to, word, block, spots.to);
  }
  const u64 from = bases.from + static_cast<u64>(part.from);
  const u64 to = bases.to + static_cast<u64>(part.to);
  Word word[flight] = {};
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const Offset within = static_cast<Offset>(spots.unit[k]) * static_cast<Offset>(sizeof(Word));
    spots.to[k] += within;
    if (first + static_cast<u32>(k * kThreads) < end) word[k] = load<Word>(from + static_cast<u64>(static_cast<i64>(spots.from[k] + within)));
  }
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    if (first + static_cast<u32>(k * kThreads) < end) store<Word>(to + static_cast<u64>(static_cast<i64>(spots.to[k])), word[k]);
  }
}

// --- windows ----------------------------------------------------------------------------------------------------------

/// Bytes [shift, shift + 16) of two words that follow one another, 0 < shift < 16.
LACUNA_ON_DEVICE Word16 join(const Word16& first, const Word16& second, u32 shift) {
  const u64 a = shift < 8 ? first.low : first.high;
  const u64 b = shift < 8 ? first.high : second.low;
  const u64 c = shift < 8 ? second.low : second.high;
  const u32 bits = (shift & 7) * 8;
  if (bits == 0) return {a, b};
  return {(a >> bits) | (b << (64 - bits)), (b >> bits) | (c << (64 - bits))};
}

/// The bytes [low, high) of a window, word by word.
template <class Word>
LACUNA_ON_DEVICE void move_edge(u64 to, u64 from, int low, int high) {
  Word word[16 / sizeof(Word)] = {};
  LACUNA_UNROLL
  for (int k = 0; k < 16; k += static_cast<int>(sizeof(Word))) {
    if (k >= low && k < high) word[k / static_cast<int>(sizeof(Word))] = load<Word>(from + static_cast<u64>(k));
  }
  LACUNA_UNROLL
  for (int k = 0; k < 16; k += static_cast<int>(sizeof(Word))) {
    if (k >= low && k < high) store<Word>(to + static_cast<u64>(k), word[k / static_cast<int>(sizeof(Word))]);
  }
}

template <class Word, class Offset>
LACUNA_ON_DEVICE void move_windows(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  constexpr int flight = kWindowFlight;
  Spots<Offset, flight> spots;
  find<Offset, flight>(tables, part, first, end, spots);
  i64 length[flight];
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    length[k] = part.run;
    if (part.has_blocks) {
      const u32 block = block_of(tables, part, spots.unit[k]);
      spots.unit[k] -= listed<u32>(tables, part.blocks.starts, block);
      spots.from[k] += static_cast<Offset>(listed<i64>(tables, part.blocks.from, block));
      spots.to[k] += static_cast<Offset>(listed<i64>(tables, part.blocks.to, block));
      length[k] = listed<i64>(tables, part.blocks.lengths, block);
    }
  }
  u64 from[flight];  // of the window's bytes
  u64 to[flight];
  int low[flight];  // those that are the run's
  int high[flight];
  bool whole[flight];  // all 16, and so are the aligned words that hold them
  Word16 a[flight] = {};
  Word16 b[flight] = {};
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const u64 begin = bases.to + static_cast<u64>(part.to + static_cast<i64>(spots.to[k]));
    const int skew = static_cast<int>(begin & 15);
    const i64 within = static_cast<i64>(spots.unit[k]) * 16 - skew;  // of the run, where the window begins
    const i64 left = length[k] - within;
    to[k] = begin + static_cast<u64>(within);
    from[k] = bases.from + static_cast<u64>(part.from + static_cast<i64>(spots.from[k]) + within);
    low[k] = within < 0 ? skew : 0;
    high[k] = left < 16 ? static_cast<int>(left) : 16;
    if (first + static_cast<u32>(k * kThreads) >= end) high[k] = 0;
    const int shift = static_cast<int>(from[k] & 15);
    whole[k] = within >= (shift == 0 ? 0 : shift) && high[k] == 16 && (shift == 0 || left >= 32 - shift);
    if (!whole[k]) continue;
    a[k] = load<Word16>(from[k] - static_cast<u64>(shift));
    if (shift != 0) b[k] = load<Word16>(from[k] - static_cast<u64>(shift) + 16);
  }
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const u32 shift = static_cast<u32>(from[k] & 15);
    if (whole[k])
      store<Word16>(to[k], shift == 0 ? a[k] : join(a[k], b[k], shift));
    else if (low[k] < high[k])
      move_edge<Word>(to[k], from[k], low[k], high[k]);
  }
}

// --- squares ----------------------------------------------------------------------------------------------------------

/// A word in pieces, and items as a word.
template <class Word, class Piece>
LACUNA_ON_DEVICE void cut(const Word& word, Piece (&piece)[sizeof(Word) / sizeof(Piece)]) {
  if constexpr (sizeof(Word) == sizeof(Piece)) {
    piece[0] = word;
  } else if constexpr (sizeof(Word) == 16) {
    constexpr u32 half = 8 / sizeof(Piece);
    LACUNA_UNROLL
    for (u32 p = 0; p < half; ++p) {
      piece[p] = static_cast<Piece>(word.low >> (p * sizeof(Piece) * 8 % 64));
      piece[p + half] = static_cast<Piece>(word.high >> (p * sizeof(Piece) * 8 % 64));
    }
  } else {
    LACUNA_UNROLL
    for (u32 p = 0; p < sizeof(Word) / sizeof(Piece); ++p) piece[p] = static_cast<Piece>(word >> (p * sizeof(Piece) * 8));
  }
}
template <class Word, class Item, u32 items>
LACUNA_ON_DEVICE Word joined(const Item (&item)[items]) {
  if constexpr (items == 1) {
    return item[0];
  } else if constexpr (sizeof(Word) == 16) {
    Word16 word{0, 0};
    LACUNA_UNROLL
    for (u32 k = 0; k < items / 2; ++k) {
      word.low |= static_cast<u64>(item[k]) << (k * sizeof(Item) * 8 % 64);
      word.high |= static_cast<u64>(item[k + items / 2]) << (k * sizeof(Item) * 8 % 64);
    }
    return word;
  } else {
    Word word = 0;
    LACUNA_UNROLL
    for (u32 k = 0; k < items; ++k) word = static_cast<Word>(word | static_cast<Word>(item[k]) << (k * sizeof(Item) * 8));
    return word;
  }
}
template <u32 bytes>
struct OfBytes;
template <>
struct OfBytes<16> {
  using Type = Word16;
};
template <>
struct OfBytes<8> {
  using Type = u64;
};
template <>
struct OfBytes<4> {
  using Type = u32;
};
/// What of a word is stored to shared memory at once: an item, of 4 bytes at least.
template <class Word, class Item>
using PieceOf = typename OfBytes<(sizeof(Item) < 4 ? 4 : sizeof(Item))>::Type;

/// Bytes between the rows of a square in shared memory: one item more than a row has, so that a column is in many banks.
LACUNA_ON_DEVICE u32 square_pitch(const Part& part) { return (static_cast<u32>(part.word) << part.squares.width) + (part.word < 4 ? 4 : part.word); }

/// A block's square: which one of how many, and where it begins.
struct Square {
  u32 a, b;  ///< its first item, along both sides
  u64 from, to;
};

LACUNA_ON_DEVICE Square square_of(const u64* tables, const Transfer& bases, const Part& part, u32 unit) {
  u32 left[1] = {unit};
  u32 a[1];
  u32 b[1];
  i64 from[1] = {0};
  i64 to[1] = {0};
  divide<1>(part.level[0], false, left, a);
  divide<1>(part.level[1], part.levels == 2, left, b);
  LACUNA_ONE_BY_ONE
  for (int l = 2; l < part.levels; ++l) {
    u32 index[1];
    const Level& level = part.level[l];
    divide<1>(level, l + 1 == part.levels, left, index);
    add_places<i64, 1>(tables, level.from_places, level.from_list, level.from, index, from);
    add_places<i64, 1>(tables, level.to_places, level.to_list, level.to, index, to);
  }
  Square square;
  square.a = a[0] << part.squares.width;
  square.b = b[0] << part.squares.height;
  const i64 item = part.word;
  square.from = bases.from + static_cast<u64>(part.from + from[0] + i64{square.a} * item + i64{square.b} * part.squares.from_pitch);
  square.to = bases.to + static_cast<u64>(part.to + to[0] + i64{square.b} * item + i64{square.a} * part.squares.to_pitch);
  return square;
}

/// Reads the square's rows in words, some of them at a time, into shared memory in pieces that its pitch allows.
template <class Word, class Piece>
LACUNA_ON_DEVICE void read_square(const Part& part, const Square& square, u8* shared, u32 thread) {
  constexpr int flight = 4;
  const u32 row_words = (static_cast<u32>(part.word) << part.squares.width) / static_cast<u32>(sizeof(Word));
  const u32 all = row_words << part.squares.height;
  const u32 pitch = square_pitch(part);
  const u32 rows = part.squares.along_to - square.b;
  const u32 bytes = (part.squares.along_from - square.a) * part.word;  // of a row; a multiple of a word
  for (u32 begin = thread; begin < all; begin += flight * kThreads) {
    Word word[flight] = {};
    LACUNA_UNROLL
    for (int k = 0; k < flight; ++k) {
      const u32 i = begin + static_cast<u32>(k * kThreads);
      const u32 row = i / row_words;
      const u32 at = (i - row * row_words) * static_cast<u32>(sizeof(Word));
      if (i < all && row < rows && at < bytes) word[k] = load<Word>(square.from + static_cast<u64>(i64{row} * part.squares.from_pitch) + at);
    }
    LACUNA_UNROLL
    for (int k = 0; k < flight; ++k) {
      const u32 i = begin + static_cast<u32>(k * kThreads);
      const u32 row = i / row_words;
      const u32 at = (i - row * row_words) * static_cast<u32>(sizeof(Word));
      if (i >= all) continue;
      Piece piece[sizeof(Word) / sizeof(Piece)];
      cut(word[k], piece);
      LACUNA_UNROLL
      for (u32 p = 0; p < sizeof(Word) / sizeof(Piece); ++p) *reinterpret_cast<Piece*>(shared + row * pitch + at + p * sizeof(Piece)) = piece[p];
    }
  }
}

/// Writes the square's columns in words, each of which it gathers from shared memory.
template <class Word, class Item>
LACUNA_ON_DEVICE void write_square(const Part& part, const Square& square, const u8* shared, u32 thread) {
  constexpr u32 items = sizeof(Word) / sizeof(Item);
  const u32 row_words = (static_cast<u32>(sizeof(Item)) << part.squares.height) / static_cast<u32>(sizeof(Word));
  const u32 all = row_words << part.squares.width;
  const u32 pitch = square_pitch(part);
  const u32 columns = part.squares.along_from - square.a;
  const u32 bytes = (part.squares.along_to - square.b) * static_cast<u32>(sizeof(Item));
  // Eight neighbours write 8 words that follow one another, four such groups are columns beside one another.
  const u32 groups = row_words >= 8 ? row_words / 8 : 1;
  LACUNA_ONE_BY_ONE
  for (u32 i = thread; i < all; i += kThreads) {
    u32 column = i / row_words;
    u32 word = i - column * row_words;
    if (row_words >= 8) {
      const u32 rest = i >> 5;
      const u32 high = rest / groups;
      word = (i & 7) + (rest - high * groups) * 8;
      column = ((i >> 3) & 3) + high * 4;
    }
    const u32 at = word * static_cast<u32>(sizeof(Word));
    if (column >= columns || at >= bytes) continue;
    Item item[items];
    LACUNA_UNROLL
    for (u32 k = 0; k < items; ++k)
      item[k] = *reinterpret_cast<const Item*>(shared + (word * items + k) * pitch + column * static_cast<u32>(sizeof(Item)));
    store<Word>(square.to + static_cast<u64>(i64{column} * part.squares.to_pitch) + at, joined<Word>(item));
  }
}

template <class Item>
LACUNA_ON_DEVICE void read_square_of(const Part& part, const Square& square, u8* shared, u32 thread) {
  switch (part.squares.from_word) {
    case 16: return read_square<Word16, PieceOf<Word16, Item>>(part, square, shared, thread);
    case 8:
      if constexpr (sizeof(Item) <= 8) return read_square<u64, PieceOf<u64, Item>>(part, square, shared, thread);
      return;
    case 4:
      if constexpr (sizeof(Item) <= 4) return read_square<u32, PieceOf<u32, Item>>(part, square, shared, thread);
      return;
    case 2:
      if constexpr (sizeof(Item) <= 2) return read_square<u16, u16>(part, square, shared, thread);
      return;
    default:
      if constexpr (sizeof(Item) == 1) return read_square<u8, u8>(part, square, shared, thread);
  }
}

template <class Item>
LACUNA_ON_DEVICE void write_square_of(const Part& part, const Square& square, const u8* shared, u32 thread) {
  switch (part.squares.to_word) {
    case 16: return write_square<Word16, Item>(part, square, shared, thread);
    case 8:
      if constexpr (sizeof(Item) <= 8) return write_square<u64, Item>(part, square, shared, thread);
      return;
    case 4:
      if constexpr (sizeof(Item) <= 4) return write_square<u32, Item>(part, square, shared, thread);
      return;
    case 2:
      if constexpr (sizeof(Item) <= 2) return write_square<u16, Item>(part, square, shared, thread);
      return;
    default:
      if constexpr (sizeof(Item) == 1) return write_square<u8, Item>(part, square, shared, thread);
  }
}

/// The two halves of a square: between them all threads of the block wait for one another.
LACUNA_ON_DEVICE void read_any_square(const Part& part, const Square& square, u8* shared, u32 thread) {
  switch (part.word) {
    case 16: return read_square_of<Word16>(part, square, shared, thread);
    case 8: return read_square_of<u64>(part, square, shared, thread);
    case 4: return read_square_of<u32>(part, square, shared, thread);
    case 2: return read_square_of<u16>(part, square, shared, thread);
    default: return read_square_of<u8>(part, square, shared, thread);
  }
}
LACUNA_ON_DEVICE void write_any_square(const Part& part, const Square& square, const u8* shared, u32 thread) {
  switch (part.word) {
    case 16: return write_square_of<Word16>(part, square, shared, thread);
    case 8: return write_square_of<u64>(part, square, shared, thread);
    case 4: return write_square_of<u32>(part, square, shared, thread);
    case 2: return write_square_of<u16>(part, square, shared, thread);
    default: return write_square_of<u8>(part, square, shared, thread);
  }
}

// --- a block of threads ---------------------------------------------------------------------------------------------------

/// The last part whose tiles begin at `tile` or before.
LACUNA_ON_DEVICE u32 part_of_tile(const Part* parts, u32 count, u32 tile) {
  u32 low = 0;
  u32 high = count - 1;
  while (low < high) {
    const u32 middle = low + (high - low + 1) / 2;
    if (parts[middle].first_tile <= tile)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

template <class Word, class Offset>
LACUNA_ON_DEVICE void move_words_in_rounds(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  constexpr u32 round = kThreads * flight_of(sizeof(Word), sizeof(Offset) == 4);
  LACUNA_ONE_BY_ONE
  for (; first < end; first += round) move_words<Word, Offset>(tables, bases, part, first, end);
}
template <class Word, class Offset>
LACUNA_ON_DEVICE void move_windows_in_rounds(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  LACUNA_ONE_BY_ONE
  for (; first < end; first += kThreads * kWindowFlight) move_windows<Word, Offset>(tables, bases, part, first, end);
}

template <class Offset>
LACUNA_ON_DEVICE void move_long_words(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  if (part.word == 16) return move_words_in_rounds<Word16, Offset>(tables, bases, part, first, end);
  move_words_in_rounds<u64, Offset>(tables, bases, part, first, end);
}

template <class Offset>
LACUNA_ON_DEVICE void move_short_words(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  if (part.word == 4) return move_words_in_rounds<u32, Offset>(tables, bases, part, first, end);
  if (part.word == 2) return move_words_in_rounds<u16, Offset>(tables, bases, part, first, end);
  move_words_in_rounds<u8, Offset>(tables, bases, part, first, end);
}

template <class Offset>
LACUNA_ON_DEVICE void move_any_windows(const u64* tables, const Transfer& bases, const Part& part, u32 first, u32 end) {
  switch (part.word) {
    case 8: return move_windows_in_rounds<u64, Offset>(tables, bases, part, first, end);
    case 4: return move_windows_in_rounds<u32, Offset>(tables, bases, part, first, end);
    case 2: return move_windows_in_rounds<u16, Offset>(tables, bases, part, first, end);
    default: return move_windows_in_rounds<u8, Offset>(tables, bases, part, first, end);
  }
}

/// A tile of words, bytes or windows.
template <Way way>
LACUNA_ON_DEVICE void move_tile(const u64* tables, const Transfer& bases, const Part& part, u32 tile, u32 thread) {
  const u32 units = tile_units(part);
  const u32 begin = (tile - part.first_tile) * units;
  const u32 end = begin + units < part.units ? begin + units : part.units;
  const u32 first = begin + thread;
  if constexpr (way == Way::windows)
    return part.narrow ? move_any_windows<int>(tables, bases, part, first, end) : move_any_windows<i64>(tables, bases, part, first, end);
  else if constexpr (way == Way::words)
    return part.narrow ? move_long_words<int>(tables, bases, part, first, end) : move_long_words<i64>(tables, bases, part, first, end);
  else
    return part.narrow ? move_short_words<int>(tables, bases, part, first, end) : move_short_words<i64>(tables, bases, part, first, end);
}

}  // namespace lacuna::device::kernel
