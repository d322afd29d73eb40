#include "lacuna/nic/model/copies.hpp"

#include <algorithm>

namespace lacuna::nic::model {
namespace {

__extension__ using Wide = __int128;

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kShare = 1000;  // of the bytes: per mille

}  // namespace

Copy copy_of(const layout::Layout& layout, std::int64_t length) {
  if (layout.size() == 0 || length == 0) return {};
  const std::int64_t runs = layout.run_count();
  const std::int64_t gap = (layout.true_extent() - layout.size()) / runs;
  // Both sides: the packed bytes, and the scattered ones by whole lines.
  const std::int64_t lines = std::min(layout.true_extent(), layout.size() + runs * kLine / 2);
  const auto blocks = static_cast<std::int64_t>((static_cast<Wide>(runs) * length + layout.size() - 1) / layout.size());
  return {length, std::max<std::int64_t>(1, blocks), std::max<std::int64_t>(0, gap), lines + layout.size()};
}

Time copy_time(const Profile& profile, const Copy& copy) {
  if (copy.bytes == 0) return 0;
  const Copies& p = profile.copies;
  Time time = p.call + copy.blocks * p.block;
  if (copy.gap >= p.far_gap) return time + copy.blocks * p.far_block + p.memory.time(copy.bytes);
  if (copy.footprint <= p.l2_bytes) return time + p.l2.time(copy.bytes);
  time += p.ramp.time(copy.blocks * std::min(p.ramp_bytes, copy.bytes / copy.blocks));
  // What misses the last-level cache grows from nothing to everything between two footprints.
  const std::int64_t first = p.llc_bytes * p.llc_first_miss / 100;
  const std::int64_t all = std::max(first + 1, p.llc_bytes * p.llc_all_miss / 100);
  const std::int64_t missed = std::clamp<std::int64_t>((copy.footprint - first) * kShare / (all - first), 0, kShare);
  return time + (p.llc.time(copy.bytes) * (kShare - missed) + p.memory.time(copy.bytes) * missed) / kShare;
}

}  // namespace lacuna::nic::model
