// The layouts of the two ends of a direct copy: each end writes its own into the ring that the message would have gone
// through, and reads the other's there. Both are remembered by their digests, so that what comes again is not decoded
// again.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "lacuna/layout/layout.hpp"
#include "lacuna/nic/nic.hpp"

namespace lacuna::protocol {

using base::Result;

class DirectLayouts {
 public:
  /// Writes a layout's wire form. Its length; 0: it does not fit.
  std::uint32_t write(const layout::Layout& layout, std::span<std::byte> to);
  /// The peer's layout, of that digest. What `from` holds may change meanwhile: it is copied once. Null: what is there
  /// is another one, or none.
  const layout::Layout* read(const layout::Digest& digest, std::span<const std::byte> from);

 private:
  static constexpr std::size_t kMost = 64;  // of each, that are remembered
  struct Hash {
    std::size_t operator()(const layout::Digest& digest) const { return digest.low; }
  };
  std::unordered_map<layout::Digest, std::vector<std::byte>, Hash> written_;
  std::unordered_map<layout::Digest, layout::Layout, Hash> read_;
};

}  // namespace lacuna::protocol
