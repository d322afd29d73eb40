// libfabric as the strictest providers of today are: lists of one entry, no order of what is posted, offsets in the
// place of addresses, keys that the provider chooses, immediates of 4 bytes, registrations that belong to an endpoint
// and that local memory needs, too. Its functions are libfabric's own, but for fi_getinfo(), which hides what a
// provider could do besides, and what bound.hpp lists.
#pragma once

#include "lacuna/nic/nic.hpp"

namespace lacuna::test::ofi {

/// As nic::open("ofi:tcp") would.
base::Result<std::unique_ptr<nic::Context>> open_narrow(const nic::OpenOptions& options = {});

}  // namespace lacuna::test::ofi
