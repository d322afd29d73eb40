#include "lacuna/copy/crossing.hpp"

#include <algorithm>
#include <numeric>

namespace lacuna::copy {
namespace {

// Columns of a tile: a few lines of each row, as many as are asked for ahead of time without pushing each other out of
// the L2 cache.
constexpr std::int64_t kColumnBytes = 256;

// Rows of a tile. Those a multiple of a page apart meet in few sets of an L2 cache: of a tile and the next one, whose
// lines are asked for, 256 fill them. Shorter columns than 512 bytes would not be worth their streaming stores.
std::int64_t most_rows(std::int64_t pitch, std::int64_t block) {
  constexpr std::int64_t rows = 128, column_bytes = 512;
  const std::int64_t places = kPage / std::gcd(pitch, kPage);  // in a page, where rows begin
  return std::min(kTileRows, std::max(rows, column_bytes / block) * places);
}

// Loops, innermost first, each of which goes on where the one inside it ends on the side that is dense.
class Group {
 public:
  Group(std::int64_t Loop::* dense, const Loop& first, std::int64_t most, Walk& walk) : dense_(dense), step_(first.*dense), most_(most) {
    add(first, walk);
  }

  [[nodiscard]] std::int64_t step() const { return step_; }
  [[nodiscard]] std::int64_t count() const { return count_; }
  // From entry to entry on one side, if that is the same everywhere; else 0.
  [[nodiscard]] std::int64_t pitch(std::int64_t Loop::* side) const { return depth_ == 1 ? loops_[0].*side : 0; }

  // Takes a loop of the nest that goes on from here. False if there is none, or no room.
  bool grow(Nest& nest, Walk& walk, std::int64_t& from, std::int64_t& to) {
    if (count_ * 2 > most_) return false;
    for (std::size_t i = 0; i < nest.depth; ++i) {
      if (std::abs(nest.loops[i].*dense_) != step_ * count_) continue;
      const Loop loop = upwards(nest.loops[i], dense_, from, to);
      nest.remove(i);
      add(loop, walk);
      return true;
    }
    return false;
  }

  // Where each entry lies on one side.
  void list(std::int64_t Loop::* side, std::int64_t* places) const {
    std::int64_t have = 1;
    places[0] = 0;
    for (std::size_t k = 0; k < depth_; ++k) {
      for (std::int64_t i = 1; i < loops_[k].count; ++i) {
        const std::int64_t shift = i * loops_[k].*side;
        for (std::int64_t j = 0; j < have; ++j) places[i * have + j] = places[j] + shift;
      }
      have *= loops_[k].count;
    }
  }

 private:
  // As much of a loop as there is room for, in equal pieces.
  void add(const Loop& loop, Walk& walk) {
    const std::int64_t piece = equal_piece(loop.count, most_ / count_);
    loops_[depth_++] = {piece, loop.from, loop.to};
    count_ *= piece;
    walk.add(Around(loop, piece));
  }

  std::int64_t Loop::* dense_;
  std::int64_t step_;
  std::int64_t most_;
  std::int64_t count_ = 1;
  std::size_t depth_ = 0;
  std::array<Loop, Nest::kMost> loops_;
};

// A tile that is short on one side, because there are gaps, has others close by on that side. These come next, over
// stretches of so many bytes, so that lines and pages are visited once; other loops stay around.
constexpr std::int64_t kStretch = 1024;

class NearLoops {
 public:
  // Takes the loop of the nest whose entries lie closest on one side, of tiles that are `extent` bytes long there.
  void take(Nest& nest, std::int64_t Loop::* side, std::int64_t extent, Walk& walk) {
    if (nest.depth == 0 || extent * 2 > kStretch) return;
    const std::size_t closest = densest(nest, side);
    const Loop loop = nest.loops[closest];
    const std::int64_t step = std::abs(loop.*side);
    if (step == 0 || step * 2 > kStretch) return;
    nest.remove(closest);
    const std::int64_t piece = equal_piece(loop.count, kStretch / step);
    walk.add(Around(loop, piece));
    near_[count_++] = {piece, loop.from, loop.to};
  }
  // Makes them the innermost ones, that with the shorter steps within the other.
  void put(Walk& walk) {
    const auto step = [](const Loop& loop) { return std::min(std::abs(loop.from), std::abs(loop.to)); };
    if (count_ == 2 && step(near_[0]) < step(near_[1])) std::swap(near_[0], near_[1]);
    for (std::size_t i = 0; i < count_; ++i) walk.add_inside(Around(near_[i]));
  }

 private:
  std::array<Loop, 2> near_;
  std::size_t count_ = 0;
};

// Short elements take long enough to be moved for the lines of a cache to come by themselves; so do lines of a near
// cache.
constexpr std::int64_t kAskedFor = 8;
constexpr std::int64_t kManyBytes = 1 << 20;

// Small tiles that follow one another in the destination leave a first-level cache together: of each only a part of the
// first and of the last line would be whole.
constexpr std::int64_t kGathered = 8 << 10;

}  // namespace

Crossing::Crossing(const Nest& nest, bool stream) : asks_(stream || (nest.block >= kAskedFor && bytes_of(nest) >= kManyBytes)) {
  Nest rest = nest;
  const std::size_t along_to = densest(nest, &Loop::to);
  const std::size_t along_from = densest(nest, &Loop::from);
  const Loop first_row = upwards(nest.loops[along_to], &Loop::to, from_, to_);
  const Loop first_column = upwards(nest.loops[along_from], &Loop::from, from_, to_);
  rest.remove(std::max(along_from, along_to));
  rest.remove(std::min(along_from, along_to));
  const bool few_rows = first_row.count * nest.block < kLine;  // a tile of them would be hardly longer than its call
  const std::int64_t most_columns = few_rows ? kTileColumns : std::clamp<std::int64_t>(kColumnBytes / nest.block, kLine / 4, kTileColumns);
  Group rows(&Loop::to, first_row, most_rows(first_row.from, nest.block), walk_);
  Group columns(&Loop::from, first_column, most_columns, walk_);
  for (bool grown = true; grown;) {
    Group& shorter = rows.count() <= columns.count() ? rows : columns;
    Group& longer = &shorter == &rows ? columns : rows;
    grown = shorter.grow(rest, walk_, from_, to_) || longer.grow(rest, walk_, from_, to_);
  }
  NearLoops near;
  near.take(rest, &Loop::to, rows.count() * rows.step(), walk_);
  near.take(rest, &Loop::from, columns.count() * columns.step(), walk_);
  walk_.add_all(rest);
  near.put(walk_);
  rows.list(&Loop::from, row_from_.data());
  columns.list(&Loop::to, column_to_.data());
  tile_ = {.rows = rows.count(),
           .columns = columns.count(),
           .row_step = rows.step(),
           .column_step = columns.step(),
           .column_pitch = columns.pitch(&Loop::to),
           .length = nest.block};
  const std::int64_t bytes = tile_.rows * tile_.columns * nest.block;
  const bool dense = tile_.row_step == nest.block && tile_.column_pitch == tile_.rows * nest.block;
  if (stream && dense && bytes * 2 <= kGathered && walk_.follow(bytes)) {
    gathered_ = bytes;
    inner_ = walk_.take_innermost();
  }
  kernel_ = tile_kernel(tile_, stream && gathered_ == 0);
  ahead_ = kernel_.small ? static_cast<std::size_t>(std::clamp<std::int64_t>(kSmallTile / bytes, 1, kMostAhead)) : 1;
}

void Crossing::move_gathered(Tile tile, const std::byte* from, std::byte* to) const {
  alignas(kLine) std::array<std::byte, kGathered> stage;
  const std::int64_t most = kGathered / gathered_;
  const auto some = [&](std::int64_t count, const std::byte* f, std::byte* t) {
    for (std::int64_t i = 0; i < count; ++i) {
      tile.from = f + i * inner_.from;
      tile.to = stage.data() + i * gathered_;
      kernel_.run(tile);
    }
    copy_block(t, stage.data(), count * gathered_, true);
  };
  walk_.run(from + from_, to + to_, [&](const std::byte* f, std::byte* t) { inner_.in_batches(most, f, t, some); });
}

void Crossing::move(const std::byte* from, std::byte* to) const {
  Tile tile = tile_;
  tile.row_from = row_from_.data();
  tile.column_to = column_to_.data();
  if (gathered_ > 0) return move_gathered(tile, from, to);
  if (!asks_) {
    return walk_.run(from + from_, to + to_, [&](const std::byte* f, std::byte* t) {
      tile.from = f;
      tile.to = t;
      kernel_.run(tile);
    });
  }
  struct At {
    const std::byte* from;
    std::byte* to;
  };
  std::array<At, kMostAhead> waiting;
  std::size_t begun = 0, moved = 0;
  const auto run = [&] {
    const At& first = waiting[moved++ % kMostAhead];
    tile.from = first.from;
    tile.to = first.to;
    kernel_.run(tile);
  };
  walk_.run(from + from_, to + to_, [&](const std::byte* f, std::byte* t) {
    if (begun - moved == ahead_) {
      const std::int64_t step = f - waiting[(begun - 1) % kMostAhead].from;
      tile.next_step = 0 < step && step < kLine ? step : 0;
      tile.next_from = f;
      tile.next_to = t;
      run();
    }
    waiting[begun++ % kMostAhead] = {f, t};
  });
  tile.next_from = nullptr;
  tile.next_to = nullptr;
  while (moved < begun) run();
}

}  // namespace lacuna::copy
