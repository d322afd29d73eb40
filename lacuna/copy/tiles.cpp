#include "lacuna/copy/tiles.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "lacuna/copy/targets.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lacuna/copy/tiles.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "lacuna/copy/blocks-inl.hpp"
#include "lacuna/copy/registers-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace lacuna::copy::HWY_NAMESPACE {
namespace {

Index into_line(const std::byte* at) { return reinterpret_cast<std::intptr_t>(at) & (kLine - 1); }

// Asks for the lines of the next tile, row by row, while this one is moved: as many at a time as what is moved has.
class RowsAhead {
 public:
  explicit RowsAhead(const Tile& tile)
      : next_(tile.next_from),
        row_from_(tile.row_from),
        rows_(tile.next_from != nullptr ? tile.rows : 0),
        bytes_(tile.columns * tile.column_step) {}
  // For as many bytes as that.
  void ask(Index bytes) {
    for (due_ += bytes; due_ > 0 && row_ < rows_; due_ -= bytes_, ++row_) {
      const std::byte* row = next_ + row_from_[row_];
      for (Index at = 0; at < bytes_; at += kLine) __builtin_prefetch(row + at);
    }
  }

 private:
  const std::byte* next_;
  const Index* row_from_;
  Index rows_;
  Index bytes_;
  Index row_ = 0;
  Index due_ = 0;
};

// The same for small tiles whose rows and columns are shorter than lines, or hardly longer: a later tile's columns are
// asked for as well, since each of their lines is read before a part of it is written.
class StretchesAhead {
 public:
  explicit StretchesAhead(const Tile& tile)
      : rows_{tile.next_from, tile.row_from, tile.next_from != nullptr ? tile.rows : 0, tile.columns * tile.column_step},
        columns_{tile.next_to, tile.column_to, tile.next_to != nullptr ? tile.columns : 0, tile.rows * tile.row_step},
        fresh_(tile.next_step > 0 ? tile.next_step : kLine) {}
  void ask(Index bytes) {
    for (rows_.due += bytes; rows_.due > 0 && rows_.next < rows_.count; rows_.due -= rows_.bytes, ++rows_.next) {
      const std::byte* const row = rows_.base + rows_.at[rows_.next];
      const std::byte* const last = row + rows_.bytes - 1;
      if (into_line(last) >= fresh_) continue;
      for (const std::byte* line = row; line < last; line += kLine) __builtin_prefetch(line);
      __builtin_prefetch(last);
    }
    for (columns_.due += bytes; columns_.due > 0 && columns_.next < columns_.count; columns_.due -= columns_.bytes, ++columns_.next) {
      const std::byte* const column = columns_.base + columns_.at[columns_.next];
      const std::byte* const last = column + columns_.bytes - 1;
      for (const std::byte* line = column; line < last; line += kLine) __builtin_prefetch(line, 1);
      __builtin_prefetch(last, 1);
    }
  }

 private:
  struct Stretches {
    const std::byte* base;
    const Index* at;
    Index count;
    Index bytes;
    Index next = 0;
    Index due = 0;
  };
  Stretches rows_, columns_;
  Index fresh_;  // a row's last line is new if the row ends so close to its beginning
};

// Blocks that fill the tile; the last one of a row or column overlaps the one before, and moves some elements again.
template <class B>
struct Registers {
  static constexpr bool kExact = false;
  static constexpr Index kRows = B::kRows;
  static constexpr Index kColumns = B::kColumns;
  static constexpr Index kLength = B::kWidth / std::max(B::kRows, B::kColumns);
  static void column(const Tile& tile, Index column, Index, std::byte* to, const Index* column_to, auto& ahead) {
    const std::byte* from = tile.from + column * kLength;
    for (Index r = 0; r < tile.rows; r += kRows) {
      const Index row = std::min(r, tile.rows - kRows);
      ahead.ask(kRows * kColumns * kLength);
      if constexpr (B::kRows > B::kColumns) {
        move_tall<B>(from, tile.row_from + row, to + row * kLength, column_to, Whole());
      } else if constexpr (B::kRows < B::kColumns) {
        move_wide<B>(from, tile.row_from + row, to + row * kLength, column_to, Whole());
      } else {
        move_square<B>(from, tile.row_from + row, to + row * kLength, column_to);
      }
    }
  }
};

#if LACUNA_FEW
// Fewer columns than a lane has elements.
template <class T, int Store>
struct FewColumns {
  using B = Block<T, 16, Store>;
  static constexpr bool kExact = true;
  static constexpr Index kColumns = B::kElements;
  static constexpr Index kLength = sizeof(T);
  static void column(const Tile& tile, Index, Index columns, std::byte* to, const Index* column_to, auto& ahead) {
    const Few<T> part(columns);
    for (Index r = 0; r < tile.rows; r += B::kRows) {
      const Index row = std::min(r, tile.rows - B::kRows);
      ahead.ask(B::kRows * columns * kLength);
      move_tall<B>(tile.from, tile.row_from + row, to + row * kLength, column_to, part);
    }
  }
};

// Fewer rows than that.
template <class T, int Load>
struct FewRows {
  using B = Block<T, Load, 16>;
  static constexpr bool kExact = false;
  static constexpr Index kColumns = B::kColumns;
  static constexpr Index kLength = sizeof(T);
  static void column(const Tile& tile, Index column, Index, std::byte* to, const Index* column_to, auto& ahead) {
    ahead.ask(tile.rows * kColumns * kLength);
    move_wide<B>(tile.from + column * kLength, tile.row_from, to, column_to, Few<T>(tile.rows));
  }
};
#endif

// One by one, as many columns at a time as share a line, and eight where they need not be staged: then few lines of
// `from` are visited again (of elements of more than 16 bytes; shorter ones were no faster).
template <class Moved, Index Most>
struct Cells {
  static constexpr bool kExact = true;
  static constexpr Index kStaged = kLine / Most;
  static constexpr Index kColumns = Most > 16 ? 8 : kStaged;
  static constexpr Index kLength = Most;
  static void column(const Tile& tile, Index column, Index columns, std::byte* to, const Index* column_to, auto& ahead) {
    if (columns == kColumns && kColumns <= 8) return rows<std::min<Index>(kColumns, 8)>(tile, column, columns, to, column_to, ahead);
    if (columns == 2) return rows<2>(tile, column, columns, to, column_to, ahead);
    if (columns == kStaged && kStaged <= 8) return rows<std::min<Index>(kStaged, 8)>(tile, column, columns, to, column_to, ahead);
    rows<0>(tile, column, columns, to, column_to, ahead);
  }

  // Two rows: column by column.
  static void two_rows(const Tile& tile, auto& ahead) {
    const Tile t = tile;
    for (Index c0 = 0; c0 < t.columns; c0 += kStaged) {
      const Index end = std::min(c0 + kStaged, t.columns);
      ahead.ask(2 * (end - c0) * t.column_step);
      for (Index c = c0; c < end; ++c) {
        const std::byte* from = t.from + c * t.column_step;
        std::byte* const to = t.to + t.column_to[c];
        Moved::move(t.length, from + t.row_from[0], to);
        Moved::move(t.length, from + t.row_from[1], to + t.row_step);
      }
    }
  }

 private:
  // `Columns` of them, or as many as there are if it is 0.
  template <Index Columns>
  static void rows(const Tile& tile, Index column, Index all, std::byte* to, const Index* column_to, auto& ahead) {
    constexpr Index kAtATime = 16;
    const Tile t = tile;
    const Index columns = Columns > 0 ? Columns : all;
    const std::byte* from = t.from + column * t.column_step;
    std::byte* at[kColumns];
    for (Index c = 0; c < columns; ++c) at[c] = to + column_to[c];
    Index shift = 0;
    for (Index r0 = 0; r0 < t.rows; r0 += kAtATime) {
      const Index end = std::min(r0 + kAtATime, t.rows);
      ahead.ask((end - r0) * columns * t.column_step);
      for (Index r = r0; r < end; ++r, shift += t.row_step) {
        const std::byte* row = from + t.row_from[r];
#pragma GCC unroll 8
        for (Index c = 0; c < columns; ++c) Moved::move(t.length, row + c * t.column_step, at[c] + shift);
      }
    }
  }
};

#undef LACUNA_TWELVE
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
// Blocks of 12 bytes to dense rows: the store writes 16 bytes, of which the next row overwrites the last four. The last
// row is stored exactly.
struct Cells12 {
  static constexpr bool kExact = true;
  static constexpr Index kColumns = 16;
  static constexpr Index kLength = 12;
  static void column(const Tile& tile, Index column, Index columns, std::byte* to, const Index* column_to, auto& ahead) {
    const Tile t = tile;
    const std::byte* from = t.from + column * t.column_step;
    for (Index r = 0; r + 1 < t.rows; ++r, to += kLength) {
      ahead.ask(columns * t.column_step);
      const std::byte* row = from + t.row_from[r];
#pragma GCC unroll 4
      for (Index c = 0; c < columns; ++c) Twelve(row + c * t.column_step).store(to + column_to[c]);
    }
    const std::byte* row = from + t.row_from[t.rows - 1];
    for (Index c = 0; c < columns; ++c) Pair<Word<8>, 8>::move(kLength, row + c * t.column_step, to + column_to[c]);
  }
};
#define LACUNA_TWELVE 1
#else
#define LACUNA_TWELVE 0
#endif

template <class Way, class Ahead>
void move_tile(const Tile& t) {
  const Tile tile = t;
  constexpr Index side = Way::kColumns;
  Ahead ahead(tile);
  if constexpr (requires { Way::two_rows(tile, ahead); }) {
    if (tile.rows == 2) return Way::two_rows(tile, ahead);
  }
  for (Index c = 0; c < tile.columns; c += side) {
    const Index column = Way::kExact ? c : std::min(c, tile.columns - side);
    Way::column(tile, column, std::min(side, tile.columns - column), tile.to, tile.column_to + column, ahead);
  }
}

// `bytes` bytes whose first lies as far into its line as `to` does.
template <bool Stream>
void write_out(const std::byte* from, std::byte* to, Index bytes) {
  const Index head = std::min(-into_line(to) & (kLine - 1), bytes);
  std::memcpy(to, from, static_cast<std::size_t>(head));
  const hn::CappedTag<std::uint8_t, kWidest> d;
  const auto lanes = static_cast<Index>(hn::Lanes(d));
  Index at = head;
  for (; at + kLine <= bytes; at += kLine) {
    for (Index i = 0; i < kLine; i += lanes) {
      const auto v = hn::LoadU(d, reinterpret_cast<const std::uint8_t*>(from + at + i));
      if constexpr (Stream) {
        hn::Stream(v, d, reinterpret_cast<std::uint8_t*>(to + at + i));
      } else {
        hn::Store(v, d, reinterpret_cast<std::uint8_t*>(to + at + i));
      }
    }
  }
  std::memcpy(to + at, from + at, static_cast<std::size_t>(bytes - at));
}

template <class Way>
constexpr Index staged_columns() {
  if constexpr (requires { Way::kStaged; }) return Way::kStaged;
  return Way::kColumns;
}

// Columns are gathered where they stay in a cache, and leave it in whole lines, wherever these begin: each on its own,
// or all at once where they follow one another.
template <class Way, bool Stream>
void stage_tile(const Tile& t) {
  const Tile tile = t;
  constexpr Index side = staged_columns<Way>();
  RowsAhead ahead(tile);
  constexpr Index pitch = kTileRows * Way::kLength + 2 * kLine;
  alignas(kLine) std::byte stage[side * pitch];
  Index staged[side] = {};
  const Index bytes = tile.rows * tile.length;
  const bool one = tile.column_pitch == bytes;
  for (Index c = 0; c < tile.columns; c += side) {
    const Index column = Way::kExact ? c : std::min(c, tile.columns - side);
    const Index columns = std::min(side, tile.columns - column);
    const Index* column_to = tile.column_to + column;
    for (Index i = 0; i < columns; ++i)
      staged[i] = one ? into_line(tile.to + column_to[0]) + i * bytes : i * pitch + into_line(tile.to + column_to[i]);
    Way::column(tile, column, columns, stage, staged, ahead);
    if (one) {
      write_out<Stream>(stage + staged[0], tile.to + column_to[0], columns * bytes);
    } else {
      for (Index i = c - column; i < columns; ++i) write_out<Stream>(stage + staged[i], tile.to + column_to[i], bytes);
    }
  }
}

constexpr Index kFewestStreamed = 4 * kLine;  // of a column: two lines of each are written in part
constexpr Index kFewestStaged = 2 * kLine;

// Whether the lines of so many columns push each other out of a first-level cache of 32 KiB in 8 ways before they are
// full: also where they lie a little more or less than a multiple of 4 KiB apart.
bool columns_collide(Index pitch, Index columns) {
  constexpr Index ways = 8;
  std::array<Index, 64> of_set{};
  for (Index c = 0; pitch != 0 && c < columns; ++c) {
    if (++of_set[static_cast<std::size_t>(c * pitch / kLine) % of_set.size()] > ways) return true;
  }
  return false;
}

template <class Way>
TileKernel kernel_of(const Tile& shape, bool stream, const char* name, double cycles) {
  const Index bytes = shape.rows * shape.length;
  const Index run = shape.column_pitch == bytes ? std::min(staged_columns<Way>(), shape.columns) * bytes : bytes;
  const bool dense = shape.row_step == shape.length;
  TileKernel kernel{.run = &move_tile<Way, RowsAhead>, .name = name, .cycles = cycles};
  if (stream && dense && run >= kFewestStreamed) {
    kernel.run = &stage_tile<Way, true>;
    kernel.streams = true;
  } else if (dense && bytes >= kFewestStaged && columns_collide(shape.column_pitch, std::min(Way::kColumns, shape.columns))) {
    kernel.run = &stage_tile<Way, false>;
  } else if (stream && bytes * shape.columns <= kSmallTile) {
    kernel.run = &move_tile<Way, StretchesAhead>;
    kernel.small = true;
  }
  return kernel;
}

template <class T>
TileKernel registers_of(const Tile& shape, bool stream) {
  constexpr Index lane = 16 / static_cast<Index>(sizeof(T));
  constexpr Index vector = kWidest / static_cast<Index>(sizeof(T));
  if (shape.rows >= vector && shape.columns >= vector) {
    // Wider ones of so many vectors are stored halfway and loaded again (registers-inl.hpp).
    constexpr int square = sizeof(T) <= 2 ? std::min(kWidest, 32) : kWidest;
    return kernel_of<Registers<Block<T, square, square>>>(shape, stream, "squares of registers", 0.13);
  }
  if constexpr (kWidest > 16) {
    if (shape.rows >= vector && shape.columns >= lane)
      return kernel_of<Registers<Block<T, 16, kWidest>>>(shape, stream, "tall registers", 0.15);
    if (shape.rows >= lane && shape.columns >= vector)
      return kernel_of<Registers<Block<T, kWidest, 16>>>(shape, stream, "wide registers", 0.15);
    if (shape.rows >= lane && shape.columns >= lane) return kernel_of<Registers<Block<T, 16, 16>>>(shape, stream, "narrow registers", 0.3);
  }
#if LACUNA_FEW
  if constexpr (sizeof(T) < 8) {
    // Without masks a load looks for the end of the page, and a store is two words (an EPYC of 2021).
    constexpr bool masks = HWY_TARGET <= HWY_AVX3;
    const auto bytes = static_cast<double>(std::min(shape.rows, shape.columns)) * sizeof(T);
    const double tall = (masks ? 1 : 4.2) / bytes, wide = (masks ? 1 : 5.6) / bytes;
    if (shape.rows >= vector) return kernel_of<FewColumns<T, kWidest>>(shape, stream, "tall registers, a part of each lane", tall);
    if (shape.columns >= vector) return kernel_of<FewRows<T, kWidest>>(shape, stream, "wide registers, a part of each lane", wide);
    if (shape.rows >= lane) return kernel_of<FewColumns<T, 16>>(shape, stream, "narrow registers, a part of each lane", 1.2 * tall);
    if (shape.columns >= lane) return kernel_of<FewRows<T, 16>>(shape, stream, "narrow registers, a part of each lane", 1.2 * wide);
  }
#endif
  return {};
}

// Elements of three numbers of 8 bytes.
struct Three8 {
  static void move(Index, const std::byte* from, std::byte* to) {
    const Word<16> two(from);
    const Word<8> third(from + 16);
    two.store(to);
    third.store(to + 16);
  }
};

template <class Moved, Index Most>
TileKernel cells_of(const Tile& shape, bool stream) {
  return kernel_of<Cells<Moved, Most>>(shape, stream, "one by one", 1.5 / static_cast<double>(shape.length));
}

}  // namespace

TileKernel FindTiles(const Tile& shape, bool stream) {
  if (shape.row_step == shape.length && shape.column_step == shape.length) {
    TileKernel registers;
    switch (shape.length) {
      case 1: registers = registers_of<std::uint8_t>(shape, stream); break;
      case 2: registers = registers_of<std::uint16_t>(shape, stream); break;
      case 4: registers = registers_of<std::uint32_t>(shape, stream); break;
      case 8: registers = registers_of<std::uint64_t>(shape, stream); break;
      default: break;
    }
    if (registers.run != nullptr) return registers;
  }
  switch (shape.length) {
    case 1: return cells_of<Exact<Word<1>>, 1>(shape, stream);
    case 2: return cells_of<Exact<Word<2>>, 2>(shape, stream);
    case 4: return cells_of<Exact<Word<4>>, 4>(shape, stream);
    case 8: return cells_of<Exact<Word<8>>, 8>(shape, stream);
    case 16: return cells_of<Exact<Word<16>>, 16>(shape, stream);
    case 24: return cells_of<Three8, 24>(shape, stream);
    case 32: return cells_of<Exact<Word<32>>, 32>(shape, stream);
    default: break;
  }
#if LACUNA_TWELVE
  if (shape.length == 12 && shape.row_step == 12) return kernel_of<Cells12>(shape, stream, "overlapping stores of 16", 0.1);
#endif
  if (shape.length < 4) return cells_of<Pair<Word<2>, 2>, 3>(shape, stream);
  if (shape.length < 8) return cells_of<Pair<Word<4>, 4>, 7>(shape, stream);
  if (shape.length < 16) return cells_of<Pair<Word<8>, 8>, 15>(shape, stream);
  if (shape.length < 32) return cells_of<Pair<Word<16>, 16>, 31>(shape, stream);
  return cells_of<Several<Word<32>, 2>, 64>(shape, stream);
}

}  // namespace lacuna::copy::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lacuna::copy {

HWY_EXPORT(FindTiles);
TileKernel tile_kernel(const Tile& shape, bool stream) { return HWY_DYNAMIC_DISPATCH(FindTiles)(shape, stream); }

}  // namespace lacuna::copy
#endif
