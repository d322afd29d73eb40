// launched: what a device is asked to run. It hides where the parts lie: with the launch, or in the device's memory.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "lacuna/device/device.hpp"
#include "lacuna/device/kernel.hpp"

namespace lacuna::device {

/// The parts of one way, whose tiles are numbered from 0.
struct Launched {
  kernel::Way way{};
  std::span<const kernel::Part> parts;
  const kernel::Part* parts_on_device = nullptr;  ///< the same; null if they are few
  const kernel::u64* tables = nullptr;            ///< on the device
  std::uint32_t tiles = 0;
  std::array<kernel::Transfer, kernel::kMostTransfers> transfers{};

  /// As the kernel's parameters. The parts are left out if they do not fit.
  template <int most>
  void fill(kernel::LaunchOf<most>& launch) const {
    launch.tables = tables;
    launch.more = parts_on_device;
    launch.parts = static_cast<kernel::u32>(parts.size());
    launch.tiles = tiles;
    std::ranges::copy(transfers, launch.transfers);
    if (parts.size() <= most) std::ranges::copy(parts, launch.part);
  }
};

}  // namespace lacuna::device
