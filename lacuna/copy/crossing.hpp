// crossing: a nest that is dense along different loops on its two sides, cut into tiles.
//
//   the loop along which `to` is densest, and what goes on from it    ─▶ rows of a tile
//   the loop along which `from` is densest, and what goes on from it  ─▶ columns
//   the other loops, and what is left of these                        ─▶ around, short steps innermost
#pragma once

#include <array>

#include "lacuna/copy/nest.hpp"
#include "lacuna/copy/tiles.hpp"
#include "lacuna/copy/walk.hpp"

namespace lacuna::copy {

class Crossing {
 public:
  static constexpr std::size_t kMostAhead = 64;
  /// `stream`: the destination is in no cache. Requires is_crossed(nest).
  Crossing(const Nest& nest, bool stream);

  void move(const std::byte* from, std::byte* to) const;

  [[nodiscard]] const TileKernel& kernel() const { return kernel_; }
  [[nodiscard]] const Tile& tile() const { return tile_; }

 private:
  void move_gathered(Tile tile, const std::byte* from, std::byte* to) const;

  Walk walk_;
  std::int64_t from_ = 0, to_ = 0;  // where the first tile lies
  std::array<std::int64_t, kTileRows> row_from_;
  std::array<std::int64_t, kTileColumns> column_to_;
  Tile tile_;
  TileKernel kernel_;
  bool asks_;          // for the lines of tiles that come later: they are in no cache
  std::size_t ahead_;  // so many tiles later
  // bytes of tiles that follow one another in the destination and leave the caches together
  std::int64_t gathered_ = 0;
  Around inner_;  // their loop
};

}  // namespace lacuna::copy
