// kernel: what moves bytes on a device. The same source is compiled for GPUs (kernel.cu, by NVRTC, which has no
// standard headers) and as C++ for the emulated device, where each thread of a grid runs by itself. It hides how a
// thread finds the bytes that are its own.
//
// A launch moves parts that go one way. A part is a nest of loops over runs that are the same on two sides; each loop
// has a stride or a list of places on either side. All of a part's work is cut into units, numbered in the order of the
// nest, and a block of threads takes a tile of them:
//
//   words    a unit is a word of 8 or 16 bytes, aligned on both sides
//   bytes    a unit is a word of 1, 2 or 4 bytes, aligned on both sides
//   windows  a unit is 16 bytes that are aligned where they are written, as far as they are in the run: any alignment,
//            any length
//   squares  a unit is a square of a transpose, which goes through memory that the block shares: both sides are touched
//            in long words
//
// Runs of many lengths are blocks: a mask of 32 units tells where blocks begin, so that the block of a unit is counted,
// not searched.
//
// A GPU's memory is as fast as it should be only while enough loads are under way: each thread begins the loads of
// several units before it stores one, and places are 32 bits wide wherever they fit, since registers decide how many
// threads there are. No thread allocates, or waits for another block: a launch is ordered by its stream alone.
#pragma once

#include "lacuna/device/kernel/squares.hpp"
#include "lacuna/device/kernel/windows.hpp"
#include "lacuna/device/kernel/words.hpp"

namespace lacuna::device::kernel {

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
