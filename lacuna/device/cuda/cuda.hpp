// cuda: GPUs, by their driver.
#pragma once

#include <memory>
#include <vector>

#include "lacuna/device/device.hpp"

namespace lacuna::device::cuda {

/// GPU `index` of this process. Errors: unsupported, invalid_argument.
[[nodiscard]] Result<std::shared_ptr<Device>> make(int index);
[[nodiscard]] Result<std::vector<Card>> cards();

}  // namespace lacuna::device::cuda
