// cuda: GPUs, by their driver.
#pragma once

#include <memory>
#include <vector>

#include "lacuna/device/device.hpp"

namespace lacuna::device::cuda {

/// GPU `index` of this process. Errors: unsupported, invalid_argument.
[[nodiscard]] Result<std::shared_ptr<Device>> make(int index);
[[nodiscard]] Result<std::vector<Card>> cards();
/// Of the GPU whose memory an address is.
[[nodiscard]] Result<int> ordinal_of(const void* memory);

}  // namespace lacuna::device::cuda
