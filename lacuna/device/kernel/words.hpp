// words: a unit is a word that is aligned on both sides.
#pragma once

#include "lacuna/device/kernel/places.hpp"

namespace lacuna::device::kernel {

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
    if (part.blocks.from_places != Places::stride)
      add_places<Offset, flight>(tables, part.blocks.from_places, part.blocks.from, word, block, spots.from);
    if (part.blocks.to_places != Places::stride)
      add_places<Offset, flight>(tables, part.blocks.to_places, part.blocks.to, word, block, spots.to);
  }
  const u64 from = bases.from + static_cast<u64>(part.from);
  const u64 to = bases.to + static_cast<u64>(part.to);
  Word word[flight] = {};
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    const Offset within = static_cast<Offset>(spots.unit[k]) * static_cast<Offset>(sizeof(Word));
    spots.to[k] += within;
    if (first + static_cast<u32>(k * kThreads) < end)
      word[k] = load<Word>(from + static_cast<u64>(static_cast<i64>(spots.from[k] + within)));
  }
  LACUNA_UNROLL
  for (int k = 0; k < flight; ++k) {
    if (first + static_cast<u32>(k * kThreads) < end) store<Word>(to + static_cast<u64>(static_cast<i64>(spots.to[k])), word[k]);
  }
}

}  // namespace lacuna::device::kernel
