// nest: two forms as one nest of loops with places on both sides. It hides which side had which loops.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lacuna/device/device.hpp"
#include "lacuna/layout/layout.hpp"

namespace lacuna::device {

/// Where the entries of a loop lie on one side: a stride, or a list that stays where it is.
struct LoopSide {
  std::int64_t stride = 0;
  const std::int64_t* list = nullptr;

  [[nodiscard]] std::int64_t place(std::int64_t i) const { return list != nullptr ? list[i] : i * stride; }
};

struct Loop {
  std::int64_t count = 1;
  LoopSide from, to;

  [[nodiscard]] bool strided() const { return from.list == nullptr && to.list == nullptr; }
};

/// Loops, the outermost first, over something of `size` bytes at `from` and `to`: a run on both sides, or a form on one
/// of them.
struct Nest {
  std::int64_t from = 0;
  std::int64_t to = 0;
  std::vector<Loop> loops;
  std::int64_t size = 0;
  const layout::Node* from_form = nullptr;  ///< blocks or a sequence, or null for a run
  const layout::Node* to_form = nullptr;
  std::int64_t reach_from = 0;  ///< how far what is in the loops reaches from its own place
  std::int64_t reach_to = 0;

  /// Adds a loop within the others, unless it is one with the loop around it.
  void add(const Loop& loop);
};

/// The nest of two layouts of the same size, or nothing where their loops do not divide one another. It points into the
/// layouts.
[[nodiscard]] std::optional<Nest> zip(const layout::Layout& from, const layout::Layout& to);

/// A part of a pair, and the loop that both sides have around it.
struct Apart {
  Loop loop;
  Pair pair;
};
/// What two forms that do not zip are made of: one period of a loop that both have, or the children of a sequence;
/// nothing where there is neither.
[[nodiscard]] base::Result<std::vector<Apart>> take_apart(const Pair& pair);

/// The nests of a nest whose form is a sequence, each with a run or blocks for its form; false if they are more than
/// `most`.
[[nodiscard]] bool spell_out(const Nest& nest, std::size_t most, std::vector<Nest>& nests);

/// The order of the loops in which neighbouring threads touch neighbouring bytes: for a transpose, tiles of
/// `tile_bytes` on both sides and what is left of them. A run of `size` bytes.
[[nodiscard]] std::vector<Nest> tiled(Nest nest, std::int64_t tile_bytes);

}  // namespace lacuna::device
