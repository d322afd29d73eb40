// windows: a unit is 16 bytes that are aligned where they are written; what is read may be aligned in any way.
#pragma once

#include "lacuna/device/kernel/places.hpp"

namespace lacuna::device::kernel {

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

}  // namespace lacuna::device::kernel
