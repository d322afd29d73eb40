#include "lacuna/protocol/channel/known_layouts.hpp"

#include <fmt/format.h>

#include "lacuna/base/rarely.hpp"

namespace lacuna::protocol {

LayoutsTold::Telling LayoutsTold::tell(const layout::Layout& layout) {
  const layout::Digest digest = layout.digest();
  if (const auto found = numbers_.find(digest); found != numbers_.end()) return {found->second, {}};
  std::vector<std::byte> wire = layout::encode(layout);
  if (wire.size() > kMostWireForm) return {};
  const std::uint32_t index = next_++ % kNumbers;
  if (index < digests_.size()) {
    LACUNA_RARELY("layouts: a number goes to another one");
    numbers_.erase(digests_[index]);
    digests_[index] = digest;
  } else {
    digests_.push_back(digest);
  }
  numbers_[digest] = index + 1;
  return {index + 1, std::move(wire)};
}

Result<void> LayoutsHeard::part(const LayoutPart& part, std::span<const std::byte> bytes) {
  const auto malformed = [](std::string what) { return base::fail(base::Code::malformed, "a peer's layout: " + std::move(what)); };
  if (part.layout < 1 || part.layout > kNumbers) return malformed(fmt::format("number {} of {}", part.layout, kNumbers));
  if (part.total > kMostWireForm) return malformed(fmt::format("{} bytes; at most {}", part.total, kMostWireForm));
  if (part.from == 0) {
    wire_.clear();
    coming_ = part;
  }
  if (part.layout != coming_.layout || part.total != coming_.total || part.from != wire_.size() ||
      bytes.size() > part.total - wire_.size() || bytes.empty())
    return malformed("parts that do not follow one another");
  wire_.insert(wire_.end(), bytes.begin(), bytes.end());
  if (wire_.size() < part.total) return {};
  if (layouts_.size() < part.layout) layouts_.resize(part.layout);
  layouts_[part.layout - 1] = LACUNA_TRY(layout::decode(wire_));
  wire_.clear();
  return {};
}

Result<layout::Layout> LayoutsHeard::find(std::uint32_t number) const {
  if (number >= 1 && number <= layouts_.size()) {
    if (const std::optional<layout::Layout>& told = layouts_[number - 1]) return *told;
  }
  return base::fail(base::Code::malformed, fmt::format("layout {}, which a peer did not tell", number));
}

}  // namespace lacuna::protocol
