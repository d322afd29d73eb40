// Names and numbers as people read them. Internal to the guide.
#pragma once

#include <array>
#include <string>

#include "lacuna/guide/guide.hpp"

namespace lacuna::guide {

/// Of nic::Mover, in a hello.
inline constexpr std::array<std::string_view, 3> kMovers{"initiator", "both", "device"};

/// "1.9 KiB", "64 B".
[[nodiscard]] std::string bytes_text(double bytes);

}  // namespace lacuna::guide
