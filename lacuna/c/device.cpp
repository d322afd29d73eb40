// Device memory, for C.
#include "lacuna/device/device.hpp"

#include "lacuna/c/handles.hpp"

namespace device = lacuna::device;
using lacuna::c::failed;
using lacuna::c::guarded;
using lacuna::c::value_or;

struct lacuna_device {
  device::Copies copies;
};
struct lacuna_device_plan {
  device::CopyPlan plan;
  int count;
};

lacuna_status lacuna_device_open(const char* name, lacuna_device** device) {
  return guarded(LACUNA_GIVEN(name, device), [&] {
    auto opened = device::open(name);
    if (!opened) return failed(opened.error());
    *device = new lacuna_device{device::Copies(std::move(*opened))};
    return LACUNA_OK;
  });
}

void lacuna_device_free(lacuna_device* device) { delete device; }

lacuna_status lacuna_device_move(lacuna_device* device, const lacuna_layout* src, const void* src_base, const lacuna_layout* dst,
                                 void* dst_base, void* stream) {
  return guarded(LACUNA_GIVEN(device, src, dst), [&] {
    const auto moved = device->copies.move({src->value, dst->value}, {src_base, dst_base}, stream);
    return moved ? LACUNA_OK : failed(moved.error());
  });
}

lacuna_status lacuna_device_plan_make(lacuna_device* device, int count, const lacuna_layout* const* src, const lacuna_layout* const* dst,
                                      int alignment, lacuna_device_plan** plan) {
  return guarded(either(LACUNA_GIVEN(device, plan), LACUNA_LISTS(count, src, dst)), [&] {
    constexpr int most = device::CopyPlan::kMostPairs;
    if (count < 0 || count > most)
      return failed({lacuna::base::Code::invalid_argument,
                     std::to_string(count) + " pairs of layouts; a plan takes at most " + std::to_string(most)});
    std::vector<device::Pair> pairs;
    for (int i = 0; i < count; ++i) {
      if (src[i] == nullptr || dst[i] == nullptr)
        return failed({lacuna::base::Code::invalid_argument, "layouts " + std::to_string(i) + ": one of them is NULL"});
      const auto overlaps = dst[i]->value.overlaps();
      if (!overlaps) return failed(overlaps.error());
      if (*overlaps)
        return failed(
            {lacuna::base::Code::invalid_argument, "layout " + std::to_string(i) + " of those that are written names some bytes twice"});
      pairs.push_back({src[i]->value, dst[i]->value});
    }
    auto made = device::CopyPlan::make(device->copies.device(), pairs, alignment);
    if (!made) return failed(made.error());
    *plan = new lacuna_device_plan{std::move(*made), count};
    return LACUNA_OK;
  });
}

lacuna_status lacuna_device_plan_move(lacuna_device_plan* plan, const void* const* src_bases, void* const* dst_bases, void* stream) {
  return guarded(either(LACUNA_GIVEN(plan), LACUNA_LISTS(plan == nullptr ? 0 : plan->count, src_bases, dst_bases)), [&] {
    device::Addresses addresses[device::CopyPlan::kMostPairs];
    for (int i = 0; i < plan->count; ++i) addresses[i] = {src_bases[i], dst_bases[i]};
    const auto moved = plan->plan.move(std::span(addresses, static_cast<std::size_t>(plan->count)), stream);
    return moved ? LACUNA_OK : failed(moved.error());
  });
}

size_t lacuna_device_plan_describe(const lacuna_device_plan* plan, char* text, size_t size) {
  return value_or(LACUNA_GIVEN(plan), std::size_t{0}, [&] { return lacuna::c::write_text(plan->plan.describe(), text, size); });
}

void lacuna_device_plan_free(lacuna_device_plan* plan) { delete plan; }
