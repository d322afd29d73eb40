// squares: a unit is a square of a transpose. All threads of a block read it into memory that they share, wait for one
// another, and write it.
#pragma once

#include "lacuna/device/kernel/places.hpp"

namespace lacuna::device::kernel {

/// How many of one are as long as one of the other.
template <class Whole, class Piece>
constexpr u32 count_of = static_cast<u32>(sizeof(Whole)) / static_cast<u32>(sizeof(Piece));

/// A word in pieces, and items as a word.
template <class Word, class Piece>
LACUNA_ON_DEVICE void cut(const Word& word, Piece (&piece)[count_of<Word, Piece>]) {
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
    for (u32 p = 0; p < count_of<Word, Piece>; ++p) piece[p] = static_cast<Piece>(word >> (p * sizeof(Piece) * 8));
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

/// Bytes between the rows of a square in shared memory: one item more than a row has, so that a column is in many
/// banks.
LACUNA_ON_DEVICE u32 square_pitch(const Part& part) {
  return (static_cast<u32>(part.word) << part.squares.width) + (part.word < 4 ? 4 : part.word);
}

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
  const int levels = part.levels;
  divide<1>(part.level[1], levels == 2, left, b);
  LACUNA_ONE_BY_ONE
  for (int l = 2; l < levels; ++l) {
    u32 index[1];
    const Level& level = part.level[l];
    divide<1>(level, l + 1 == levels, left, index);
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

LACUNA_ON_DEVICE u32 at_most(u32 count, u32 most) { return count < most ? count : most; }

/// Reads the square's rows in words, some of them at a time, into shared memory in pieces that its pitch allows.
template <class Word, class Piece>
LACUNA_ON_DEVICE void read_square(const Part& part, const Square& square, u8* shared, u32 thread) {
  constexpr int flight = 4;
  const u32 row_words = (static_cast<u32>(part.word) << part.squares.width) / static_cast<u32>(sizeof(Word));
  const u32 all = row_words << part.squares.height;
  const u32 pitch = square_pitch(part);
  const u32 rows = part.squares.along_to - square.b;
  // Of a row; a multiple of a word
  const u32 bytes = at_most(part.squares.along_from - square.a, 1U << part.squares.width) * part.word;
  for (u32 begin = thread; begin < all; begin += flight * kThreads) {
    Word word[flight] = {};
    LACUNA_UNROLL
    for (int k = 0; k < flight; ++k) {
      const u32 i = begin + static_cast<u32>(k * kThreads);
      const u32 row = i / row_words;
      const u32 at = (i - row * row_words) * static_cast<u32>(sizeof(Word));
      if (i < all && row < rows && at < bytes)
        word[k] = load<Word>(square.from + static_cast<u64>(i64{row} * part.squares.from_pitch) + at);
    }
    LACUNA_UNROLL
    for (int k = 0; k < flight; ++k) {
      const u32 i = begin + static_cast<u32>(k * kThreads);
      const u32 row = i / row_words;
      const u32 at = (i - row * row_words) * static_cast<u32>(sizeof(Word));
      if (i >= all) continue;
      Piece piece[count_of<Word, Piece>];
      cut(word[k], piece);
      LACUNA_UNROLL
      for (u32 p = 0; p < count_of<Word, Piece>; ++p)
        *reinterpret_cast<Piece*>(shared + u64{row * pitch + at} + p * sizeof(Piece)) = piece[p];
    }
  }
}

/// Writes the square's columns in words, each of which it gathers from shared memory.
template <class Word, class Item>
LACUNA_ON_DEVICE void write_square(const Part& part, const Square& square, const u8* shared, u32 thread) {
  constexpr u32 items = count_of<Word, Item>;
  const u32 row_words = (static_cast<u32>(sizeof(Item)) << part.squares.height) / static_cast<u32>(sizeof(Word));
  const u32 all = row_words << part.squares.width;
  const u32 pitch = square_pitch(part);
  const u32 columns = part.squares.along_from - square.a;
  const u32 bytes = at_most(part.squares.along_to - square.b, 1U << part.squares.height) * static_cast<u32>(sizeof(Item));
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
      item[k] = *reinterpret_cast<const Item*>(shared + u64{word * items + k} * pitch + column * sizeof(Item));
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

}  // namespace lacuna::device::kernel
