// stage: what all ranks of a story share, and how steps lie in memory. Ranks take turns on one thread.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "lacuna/protocol/protocol.hpp"
#include "tests/simulate/ground.hpp"
#include "tests/simulate/luck.hpp"
#include "tests/simulate/run.hpp"
#include "tests/simulate/story.hpp"
#include "tests/support/random_layout.hpp"

namespace lacuna::simulate {

inline constexpr std::int64_t kSlot = 8192;  // bytes of a rank's exposed memory for each step

struct Stage {
  const Story& story;
  Outcome& outcome;
  Fate fate;
  Ground ground;
  std::map<int, const Step*> steps;  // by number
  std::vector<protocol::Exposed> exposed;
  std::vector<std::span<const std::byte>> memory;  // that is exposed, by rank
  std::vector<bool> was_put;                       // by number
  // Numbers of steps stay where others are left out
  [[nodiscard]] std::int64_t slots() const { return steps.empty() ? 1 : steps.rbegin()->first + 1; }
};

// Blocks of a slot: so many of so many bytes, with gaps.
struct SlotLayout {
  std::int64_t blocks, bytes;
  explicit SlotLayout(const Step& step)
      : blocks(1 + static_cast<std::int64_t>(step.seed % 7)), bytes(std::max<std::int64_t>(step.bytes / blocks, 1)) {}
  [[nodiscard]] std::int64_t size() const { return blocks * bytes; }
  [[nodiscard]] std::int64_t place(std::int64_t i) const { return i / bytes * 2 * bytes + i % bytes; }
  [[nodiscard]] layout::Layout layout() const {
    using layout::Layout;
    return support::value(Layout::hvector(blocks, bytes, 2 * bytes, support::value(Layout::bytes(1))));
  }
};

}  // namespace lacuna::simulate
