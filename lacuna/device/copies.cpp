// Plans, kept by what they move.
#include <fmt/format.h>

#include <algorithm>
#include <list>
#include <tuple>

#include "lacuna/device/device.hpp"

namespace lacuna::device {
namespace {

constexpr std::size_t kMostPlans = 64;

// The power of two, up to 16, that divides both addresses.
int alignment_of(Addresses addresses) {
  const auto bits = reinterpret_cast<std::uintptr_t>(addresses.from) | reinterpret_cast<std::uintptr_t>(addresses.to) | 16U;
  return static_cast<int>(bits & -bits);
}

}  // namespace

struct Copies::State {
  struct Kept {
    layout::Digest from, to;
    int alignment;
    CopyPlan plan;
  };
  std::shared_ptr<Device> device;
  std::list<Kept> plans;  // the last one used is the first
};

Copies::Copies(std::shared_ptr<Device> device) : state_(std::make_unique<State>()) { state_->device = std::move(device); }
Copies::Copies(Copies&& other) noexcept = default;
Copies& Copies::operator=(Copies&& other) noexcept = default;
Copies::~Copies() = default;

const std::shared_ptr<Device>& Copies::device() const { return state_->device; }

Result<void> Copies::move(const Pair& pair, Addresses addresses, Stream stream) {
  std::list<State::Kept>& plans = state_->plans;
  const layout::Digest from = pair.from.digest();
  const layout::Digest to = pair.to.digest();
  const int alignment = alignment_of(addresses);
  auto kept = std::ranges::find_if(
      plans, [&](const State::Kept& k) { return std::tie(k.from, k.to, k.alignment) == std::tie(from, to, alignment); });
  if (kept == plans.end()) {
    if (LACUNA_TRY(pair.to.overlaps()))
      return base::fail(base::Code::invalid_argument, "the layout that is written names some bytes twice");
    CopyPlan plan = LACUNA_TRY(CopyPlan::make(state_->device, std::span(&pair, 1), alignment));
    plans.push_front({from, to, alignment, std::move(plan)});
    if (plans.size() > kMostPlans) plans.pop_back();
  } else {
    plans.splice(plans.begin(), plans, kept);
  }
  return plans.front().plan.move(std::span(&addresses, 1), stream);
}

}  // namespace lacuna::device
