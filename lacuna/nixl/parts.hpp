// parts: two lists of descriptors as few pairs of layouts. It hides that NIXL spells strides out: the canonical form of
// a layout finds them again, on each side by itself, so N pieces on one side may be M on the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/memory.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// What one put or get moves. Both layouts begin with their first piece, so that a shape that comes again at other
/// addresses is the same layout.
struct Part {
  std::byte* local = nullptr;  ///< of the first piece
  Layout ours;
  const RemoteMemory* memory = nullptr;
  std::int64_t offset = 0;  ///< of the first piece, behind the memory's beginning
  Layout theirs;
  const LocalMemory* own = nullptr;  ///< the registration of all pieces here; null: there are several
  bool direct = false;               ///< this end moves it alone (direct.hpp); else a put, or a get
};

/// A part for each remote registration that the lists name. Errors: invalid_argument (lists of other lengths, a piece
/// that is not within its registration, or has none), limit, overflow.
Result<std::vector<Part>> parts_of(const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote);

/// Whether each byte is written once. Errors: invalid_argument, limit (it takes too long to say).
Result<void> check_destinations(const std::vector<Part>& parts, bool puts);

/// A part as two, of about as many bytes each. Errors: limit (one byte).
Result<std::pair<Part, Part>> halves_of(const Part& part);

}  // namespace lacuna::nixl
