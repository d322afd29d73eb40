// Layouts that `lacuna bench copy` draws and describes in JSON. Here a description becomes a side of a case, with the
// loops that a programmer writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "lacuna/layout/layout.hpp"
#include "tools/bench/copy/hand.hpp"

namespace lacuna::bench {

/// Elements of one size, in the order of the packed stream: in loops, or blocks of a list.
struct DrawnNest {
  std::int64_t element = 1;  ///< bytes: 1, 2, 3, 4, 6, 8, 12, 16, 24 or 32
  std::int64_t offset = 0;   ///< bytes from the base
  struct Loop {
    std::int64_t count;
    std::int64_t stride;  ///< bytes
  };
  std::vector<Loop> loops;            ///< five, outermost first; not used where there is a list
  std::vector<std::int32_t> list;     ///< elements
  std::vector<std::int32_t> lengths;  ///< of the blocks of the list, in elements: one for each, or one for all
};

struct DrawnSide {
  std::vector<DrawnNest> nests;
  layout::Layout layout;
  std::int64_t span = 0;  ///< bytes of memory
  std::int64_t base = 0;  ///< where the layout's base is in it
};

/// {"span", "base", "nests": [...]}, where a nest is {"element", "offset", "loops": [[count, stride], ...]} or
/// {"element", "offset", "list", "lengths"}. Throws for anything else.
DrawnSide drawn_side(const nlohmann::json& description);

void hand_pack(const std::vector<DrawnNest>& nests, Form form, const std::byte* base, std::byte* out);
void hand_unpack(const std::vector<DrawnNest>& nests, Form form, std::byte* base, const std::byte* in);
/// Whether the second form differs from the first: there are blocks of more than one element.
bool has_blocks(const std::vector<DrawnNest>& nests);

}  // namespace lacuna::bench
