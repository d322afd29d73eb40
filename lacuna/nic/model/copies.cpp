#include "lacuna/nic/model/copies.hpp"

#include <algorithm>

namespace lacuna::nic::model {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kAll = 1 << 16;  // shares are of so many

std::int64_t missed(std::int64_t footprint, const MissRange& range) {
  return std::clamp<std::int64_t>((footprint - range.none) * kAll / (range.all - range.none), 0, kAll);
}

Time mixed(const Rate& hit, const Rate& miss, std::int64_t bytes, std::int64_t missed) {
  return (hit.time(bytes) * (kAll - missed) + miss.time(bytes) * missed) / kAll;
}

}  // namespace

Copy copy_of(const layout::Layout& layout, std::int64_t length) {
  if (layout.size() == 0 || length == 0) return {};
  const std::int64_t runs = layout.run_count();
  const std::int64_t gap = (layout.true_extent() - layout.size()) / std::max<std::int64_t>(1, runs - 1);
  // Both sides: the packed bytes, and the scattered ones by whole lines.
  const std::int64_t lines = std::min(layout.true_extent(), layout.size() + runs * kLine / 2);
  const auto blocks = static_cast<std::int64_t>((static_cast<Wide>(runs) * length + layout.size() - 1) / layout.size());
  return {length, std::max<std::int64_t>(1, blocks), std::max<std::int64_t>(0, gap), lines + layout.size()};
}

Time copy_time(const Profile& profile, const Copy& copy) {
  if (copy.bytes == 0) return 0;
  const Copies& p = profile.copies;
  Time time = p.call + copy.blocks * p.block;
  if (copy.gap >= p.far_gap)
    return time + std::max(copy.blocks * p.far_block, p.memory.time(copy.bytes));  // its bytes come while it misses
  // What a cache misses grows from nothing to everything between two footprints.
  const std::int64_t l2_missed = missed(copy.footprint, p.l2_miss);
  const std::int64_t llc_missed = missed(copy.footprint, p.llc_miss);
  const Time near = p.l2.time(copy.bytes);
  const Time far =
      p.ramp.time(copy.blocks * std::min(p.ramp_bytes, copy.bytes / copy.blocks)) + mixed(p.llc, p.memory, copy.bytes, llc_missed);
  return time + (near * (kAll - l2_missed) + far * l2_missed) / kAll;
}

}  // namespace lacuna::nic::model
