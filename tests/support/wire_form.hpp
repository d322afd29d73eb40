// Wire forms written by hand, for what no encoder writes. Numbers are LEB128, signed ones zigzag coded; the node kinds
// are those of version 1. The header is taken from encode(), so that it may change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "lacuna/layout/layout.hpp"

namespace lacuna::support {

using Wire = std::vector<std::byte>;

inline std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}

inline void append_number(Wire& wire, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) wire.push_back(static_cast<std::byte>(value | 0x80));
  wire.push_back(static_cast<std::byte>(value));
}

class WireForm {
 public:
  /// Bounds 0 and 1, and an item at offset 0, whose node is to follow.
  WireForm() : bytes(layout::encode(*layout::Layout::bytes(1))) {
    for (int field = 0; field < 2; ++field) bytes.pop_back();  // its run and the length of it
  }

  WireForm& integer(std::int64_t value) {
    append_number(bytes, zigzag(value));
    return *this;
  }
  WireForm& kind(int kind) {
    bytes.push_back(static_cast<std::byte>(kind));
    return *this;
  }
  WireForm& run(std::int64_t length) { return kind(0).integer(length); }
  WireForm& loop(std::int64_t count, std::int64_t stride) { return kind(1).integer(count).integer(stride); }
  WireForm& list(std::int64_t entries) { return kind(2).integer(entries); }
  WireForm& blocks(std::int64_t entries) { return kind(3).integer(entries); }
  WireForm& sequence(std::int64_t entries) { return kind(4).integer(entries); }

  Wire bytes;
};

}  // namespace lacuna::support
