// Whether a transfer's memory is registered or copied, whole or part by part. It hides what that costs.
//
//   copy           |pack|pack|pack|            leave pinned   |registers ────|
//                       |wire|wire|wire|                                     |wire ─────────|
//                            |unp.|unp.|unp.|
//                                              pipeline       |pack|reg.|reg.|reg.|
//   leave pinned, where it is registered:                          |wire|wire|wire|wire|
//                  |wire ─────────|                                     |unp.|
//
// The receiver decides, for both ends: it knows both layouts, and whether their memory is registered already. The
// names, and what each is good for, are those of Woodall and others, "High Performance RDMA Protocols in HPC" (2006).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "lacuna/guide/guide.hpp"
#include "lacuna/method/method.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol {

/// How a message's bytes are cut into parts, each a transfer of its own. Each end copies its bytes of some of the first
/// parts, and registers the others.
struct Cut {
  std::int64_t bytes = 0;
  std::int64_t part = 0;             ///< of each part but the last, which may be shorter
  std::uint32_t copied[2] = {0, 0};  ///< by method::Role
  /// By how much sooner it would arrive if the memory of both ends were registered; known to `automatic`
  double saves_ns = 0;
  [[nodiscard]] bool whole() const { return count() == 1 && copied[0] == 0 && copied[1] == 0; }
  [[nodiscard]] std::uint32_t count() const { return static_cast<std::uint32_t>((bytes + part - 1) / part); }
  [[nodiscard]] std::int64_t begin(std::uint32_t index) const { return index * part; }
  [[nodiscard]] std::int64_t size(std::uint32_t index) const { return std::min(part, bytes - begin(index)); }
  [[nodiscard]] bool copies(method::Role role, std::uint32_t index) const { return index < copied[static_cast<std::size_t>(role)]; }
};

/// One end's memory of a message.
struct CutSide {
  bool fits = false;        ///< its layout can be used; else all of it is copied
  bool registered = false;  ///< its memory is
  double register_ns = 0;   ///< the cost of that
};

/// A part is so long at least that there are no more than this many.
inline constexpr std::int64_t kMostParts = 1 << 20;

/// Of a message of `src.size()` bytes. `part`: as Options::part_bytes. `saved_ns`: what earlier messages of the same
/// memory would have saved together (choice/reuse.hpp).
Cut choose_cut(Registering wanted, const Layout& src, const Layout& dst, const CutSide (&sides)[2], std::int64_t part, guide::Guide& guide,
               const guide::PeerClass& peer, const guide::Placement& placement, double saved_ns = 0);

/// In words.
std::string describe(const Cut& cut);

}  // namespace lacuna::protocol
