// compiler: makes a program of pairs. It hides which way each part of them goes.
//
//   pair ──▶ nests (nest.hpp) ──▶ runs of one length: words, windows, squares      runs.cpp
//                             └─▶ runs of many lengths: blocks, or word by word    blocks.cpp
//        ──▶ pieces, where there is no nest
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "lacuna/device/nest.hpp"
#include "lacuna/device/program.hpp"
#include "lacuna/device/tables.hpp"

namespace lacuna::device {

inline constexpr std::int64_t kMostUnits = std::int64_t{1} << 31;
inline constexpr std::size_t kMostParts = 4096;  // of a sequence: more are a list of pieces
inline constexpr std::int64_t kWindow = 16;

/// Runs of any lengths at any places on both sides.
struct Blocks {
  std::vector<std::int64_t> from, to, lengths;
};

/// The power of two, up to 16, that divides all that was added.
struct Divisor {
  std::int64_t bits = 16;
  void add(std::int64_t number) { bits |= number; }
  void add(const LoopSide& side, std::int64_t count) {
    if (side.list == nullptr) return add(side.stride);
    for (std::int64_t i = 0; i < count; ++i) bits |= side.list[i];
  }
  [[nodiscard]] std::int64_t value() const { return bits & -bits; }
};

inline kernel::Way words_way(std::int64_t word) { return word >= 8 ? kernel::Way::words : kernel::Way::bytes; }

class Compiler {
 public:
  Compiler(std::int64_t alignment, const Tuning& tuning) : alignment_(alignment), tuning_(tuning) {}

  base::Result<void> pair(const Pair& pair, std::size_t transfer);
  base::Result<Program> finish();

 private:
  base::Result<bool> add_pair(const Pair& pair, const std::vector<Loop>& around, int depth);
  bool add(const Nest& nest);  ///< false if the nest has to be taken apart into pieces; so are those below
  base::Result<void> pieces(const Pair& pair);

  std::int64_t word_of(const Nest& nest, std::int64_t bits) const;
  [[nodiscard]] bool windows_for(std::int64_t run, std::int64_t word) const;
  bool runs(const Nest& nest);
  bool squares(Nest nest);
  bool run_part(const Nest& nest, std::int64_t word, kernel::Way way);
  kernel::Part begin(const Nest& nest, std::int64_t word, kernel::Way way) const;
  bool loops(kernel::Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t outer = 0);
  bool each_outer(kernel::Part part, const Nest& nest, std::int64_t units, std::int64_t word, std::size_t inner);
  kernel::Level level_of(const Loop& loop, std::int64_t word);

  bool blocks(const Nest& nest, const layout::Node& form);
  bool blocks_part(const Nest& nest, const Blocks& blocks);
  bool halves(const Nest& nest, const Blocks& blocks);
  bool words_part(const Nest& nest, const Blocks& blocks, std::int64_t word);
  bool words_of(const Nest& nest, const layout::Node& form);

  std::int64_t alignment_;
  const Tuning& tuning_;
  std::uint16_t transfer_ = 0;
  std::vector<kernel::Part> parts_;
  Tables tables_;
  std::vector<Pair> kept_;  // whose lists the tables know
};

}  // namespace lacuna::device
