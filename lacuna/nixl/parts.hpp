// parts: two lists of descriptors as few pairs of layouts. It hides that NIXL spells strides out: the canonical form of
// a layout finds them again, on each side by itself, so N pieces on one side may be M on the other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "lacuna/nixl/interface.hpp"
#include "lacuna/nixl/memory.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

/// What one put or get moves. Both layouts begin with their first piece, so that a shape that comes again at other
/// addresses is the same layout. Registrations may end before it does, so it has copies of what it needs of them.
struct Part {
  struct Own {
    Token token;
    std::byte* base;
    std::int64_t bytes;
  };
  std::byte* local = nullptr;  ///< of the first piece
  Layout ours;
  Token memory = {};        ///< names the registration there
  std::uint64_t base = 0;   ///< where that begins
  std::int64_t offset = 0;  ///< of the first piece, behind the base
  Layout theirs;
  std::optional<Own> own;  ///< the registration of all pieces here; nothing: there are several
  bool direct = false;     ///< this end moves it alone (direct.hpp); else a put, or a get
};

/// A part for each remote registration that the lists name. Errors: invalid_argument (lists of other lengths, a piece
/// that is not within its registration, or has none), limit, overflow.
Result<std::vector<Part>> parts_of(const nixl_meta_dlist_t& local, const nixl_meta_dlist_t& remote);

/// Whether each byte is written once. Errors: invalid_argument, limit (it takes too long to say).
Result<void> check_destinations(const std::vector<Part>& parts, bool puts);

/// A part as two, of about as many bytes each. Errors: limit (one byte).
Result<std::pair<Part, Part>> halves_of(const Part& part);

}  // namespace lacuna::nixl
