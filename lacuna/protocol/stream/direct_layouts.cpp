#include "lacuna/protocol/stream/direct_layouts.hpp"

#include <algorithm>

namespace lacuna::protocol {

std::uint32_t DirectLayouts::write(const layout::Layout& layout, std::span<std::byte> to) {
  const layout::Digest digest = layout.digest();
  auto known = written_.find(digest);
  if (known == written_.end()) {
    if (written_.size() >= kMost) written_.clear();
    known = written_.emplace(digest, layout::encode(layout)).first;
  }
  const std::vector<std::byte>& wire = known->second;
  if (wire.size() > to.size()) return 0;
  std::ranges::copy(wire, to.begin());
  return static_cast<std::uint32_t>(wire.size());
}

const layout::Layout* DirectLayouts::read(const layout::Digest& digest, std::span<const std::byte> from) {
  if (const auto known = read_.find(digest); known != read_.end()) return &known->second;
  if (from.empty()) return nullptr;
  const std::vector<std::byte> wire(from.begin(), from.end());
  Result<layout::Layout> decoded = layout::decode(wire);
  if (!decoded || decoded->digest() != digest) return nullptr;
  if (read_.size() >= kMost) read_.clear();
  return &read_.emplace(digest, std::move(*decoded)).first->second;
}

}  // namespace lacuna::protocol
