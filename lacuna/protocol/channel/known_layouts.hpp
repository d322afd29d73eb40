// Which layouts two ranks know of one another, by number: a layout travels once, then its number does. The sender owns
// the numbers: it has kNumbers of them and gives them out in turn, so what the receiver keeps is bounded.
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "lacuna/protocol/channel/head.hpp"

namespace lacuna::protocol {

using base::Result;

inline constexpr std::uint32_t kNumbers = 256;  ///< layouts of one rank that another knows
/// Longer ones are not told: such transfers begin or end in one piece
inline constexpr std::size_t kMostWireForm = 256 << 10;

/// The layouts that were told to a peer.
class LayoutsTold {
 public:
  struct Telling {
    std::uint32_t number = 0;     ///< 0: too long to be told
    std::vector<std::byte> wire;  ///< to be sent first; empty: the peer knows it
  };
  Telling tell(const layout::Layout& layout);

 private:
  struct Hash {
    std::size_t operator()(const layout::Digest& digest) const { return digest.low; }
  };
  std::unordered_map<layout::Digest, std::uint32_t, Hash> numbers_;
  std::vector<layout::Digest> digests_;  // by number, from 1
  std::uint32_t next_ = 0;
};

/// The layouts that a peer told.
class LayoutsHeard {
 public:
  /// A part of a wire form. Errors: malformed; those of layout::decode.
  Result<void> part(const LayoutPart& part, std::span<const std::byte> bytes);
  /// Errors: malformed (it was not told).
  Result<layout::Layout> find(std::uint32_t number) const;

 private:
  std::vector<std::optional<layout::Layout>> layouts_;
  LayoutPart coming_{};          // the first part of the one that is coming,
  std::vector<std::byte> wire_;  // and what came of it
};

}  // namespace lacuna::protocol
