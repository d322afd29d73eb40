// The limits of a NIC as a worker's hello has them (docs/design/worker.md), written and read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lacuna/nic/nic.hpp"

namespace lacuna::measure {

using Json = nlohmann::ordered_json;
using base::Result;

[[nodiscard]] Json describe_nic(std::string_view name, const nic::Limits& limits);
/// The inverse. Errors: invalid_argument (what is missing or unknown is named).
Result<nic::Limits> limits_from_json(const std::string& text);

}  // namespace lacuna::measure
