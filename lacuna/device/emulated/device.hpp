// The emulated device: the kernels of GPUs on the CPU, memory that nobody else can touch, streams that are late. For
// tests of everything above it.
#pragma once

#include <memory>

#include "lacuna/device/device.hpp"

namespace lacuna::device::emulated {

[[nodiscard]] std::shared_ptr<Device> make();
[[nodiscard]] bool owns(const void* address);

}  // namespace lacuna::device::emulated
