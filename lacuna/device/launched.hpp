// launched: what a device is asked to run.
#pragma once

#include "lacuna/device/device.hpp"
#include "lacuna/device/kernel.hpp"

namespace lacuna::device {

struct Launched {
  kernel::Way way{};
  kernel::Launch launch{};  ///< the kernel's parameters

  /// Whether the parts lie in the device's memory.
  [[nodiscard]] bool many() const { return launch.more != nullptr; }
};

}  // namespace lacuna::device
