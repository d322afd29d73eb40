// Numbers as people read them. Internal to the guide.
#pragma once

#include <string>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

/// "1.9 KiB", "64 B".
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace lacuna::guide
