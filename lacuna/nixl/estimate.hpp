// estimate: how long a transfer is expected to take. It hides whether the guide has prices of messages or of methods
// for it, and whether this machine was measured.
#pragma once

#include <cstdint>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/nixl/parts.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::nixl {

struct Estimate {
  double ns = 0;
  double margin_ns = 0;  ///< that it may be wrong by
};

/// What the parts of a transfer are expected to take, one after the other. Errors: those of guide::Guide::choose().
Result<Estimate> estimate(const nic::Context& context, const guide::Profile& profile, const std::vector<Part>& parts, bool puts);

}  // namespace lacuna::nixl
