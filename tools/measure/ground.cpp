#include "tools/measure/ground.hpp"

#include <algorithm>
#include <numeric>

namespace lacuna::measure {
namespace {

constexpr std::int64_t kMostGround = std::int64_t{1} << 30;
constexpr std::int64_t kMemoryShare = 8;  // a rank's ground is at most this part of the memory

std::int64_t bytes_at(const Case& what, int rank) {
  const std::int64_t span = rank == 0 ? what.send_span : what.receive_span;
  return span + (what.copies - 1) * (rank == 0 ? what.send_slot : what.receive_slot) + 2 * kGuard;
}

// Near the golden section of all copies, and prime to their number: two transfers in a row are far apart, and every
// copy has its turn.
std::int64_t step_of(std::int64_t copies) {
  std::int64_t step = std::max<std::int64_t>(1, copies * 618 / 1000);
  while (std::gcd(step, copies) != 1) ++step;
  return step;
}

}  // namespace

Result<Ground> Ground::create(nic::Context& context) {
  const std::int64_t memory = base::machine().memory_bytes;
  return Ground(LACUNA_TRY(
      nic::RegisteredBuffer::create(context, std::clamp<std::int64_t>(memory / kMemoryShare, 1 << 20, kMostGround), {.relaxed = true})));
}

void Ground::extend(std::int64_t to) {
  if (to <= used_) return;
  lay_pattern({data() + used_, static_cast<std::size_t>(to - used_)});
  used_ = to;
}

std::int64_t Workspace::bytes_on_ground(const Case& what) { return std::max(bytes_at(what, 0), bytes_at(what, 1)); }

Workspace::Workspace(std::byte* first, const nic::Region& region, const Case& what, int rank)
    : first_(first),
      region_(&region),
      copies_(what.copies),
      slot_(rank == 0 ? what.send_slot : what.receive_slot),
      step_(step_of(what.copies)) {}

Workspace::Workspace(const Ground& ground, std::int64_t offset, const Case& what, int rank)
    : Workspace(ground.data() + offset + kGuard, ground.region(), what, rank) {}

Result<Workspace> Workspace::apart(nic::Context& context, const Case& what, int rank) {
  auto own =
      std::make_unique<nic::RegisteredBuffer>(LACUNA_TRY(nic::RegisteredBuffer::create(context, bytes_at(what, rank), {.relaxed = true})));
  Workspace space(own->buffer.data() + kGuard, own->region, what, rank);
  const Layout& layout = rank == 0 ? what.send : what.receive;
  const CheckedRanges windows(layout, rank == 0 ? what.send_span : what.receive_span, what.shared_gaps);
  for (std::int64_t copy = 0; copy < what.copies; ++copy) {
    for (const CheckedRanges::CheckedRange& window : windows.list())
      lay_pattern({space.base(copy) + window.from, static_cast<std::size_t>(window.to - window.from)});
    poison(layout, space.base(copy));
  }
  space.own_ = std::move(own);
  return space;
}

}  // namespace lacuna::measure
