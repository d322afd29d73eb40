// tiles: what a transpose comes down to. Blocks that are dense along one loop on one side and along another loop on the
// other side, so that whichever way one walks, one of them jumps from line to line.
//
//              from, dense along the columns          to, dense along the rows
//   row r      c0 c1 c2 c3 ...                        column c   r0 r1 r2 r3 ...
//
//   squares   blocks of 1, 2, 4, 8 bytes: as many rows as a vector has blocks, transposed in registers
//   cells     other lengths, narrow tiles, blocks with gaps between them: one by one, a line of columns at a time
//
// Either way, a line of either side is loaded or stored once and whole. Lists say where the rows and the columns begin,
// so that several loops may make up either of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lacuna/copy/kernels.hpp"

namespace lacuna::copy {

/// Block (row r, column c) lies at from + row_from[r] + c * column_step and goes to to + column_to[c] + r * row_step.
struct Tile {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  /// `from` of a tile that comes later, whose lines are asked for meanwhile; null: do not
  const std::byte* next_from = nullptr;
  std::int64_t next_step = 0;    ///< not 0: the tile before that one began so many bytes before, and was asked for
  std::byte* next_to = nullptr;  ///< the same of `to`, for kernels of small tiles alone
  const std::int64_t* row_from = nullptr;
  const std::int64_t* column_to = nullptr;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t row_step = 0;
  std::int64_t column_step = 0;
  std::int64_t column_pitch = 0;  ///< from column to column of `to` where that is the same everywhere, else 0
  std::int64_t length = 0;        ///< bytes of a block
};

inline constexpr std::int64_t kTileRows = 512;  ///< at most; what is staged for streaming stores stays in the L2 cache
inline constexpr std::int64_t kTileColumns = 512;
inline constexpr std::int64_t kSmallTile = 8 << 10;  ///< bytes: it is moved before the lines of the next one could come

struct TileKernel {
  void (*run)(const Tile& tile) = nullptr;
  const char* name = "";
  bool streams = false;
  bool small = false;  ///< asks for the lines of `next_to` too, and is done before those of the next tile could come
  /// for each byte, in the caches, on an EPYC of 2024: to decide between ways that are right in any case
  double cycles = 0;
};

/// The kernel for tiles of this shape, whose addresses do not matter here; blocks of up to 64 bytes. `stream`: whole
/// lines pass the caches by.
[[nodiscard]] TileKernel tile_kernel(const Tile& shape, bool stream);

}  // namespace lacuna::copy
