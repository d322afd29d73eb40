// Provider tcp as if its registrations belonged to an endpoint (FI_MR_ENDPOINT) and it looked at local memory
// (FI_MR_LOCAL), as cxi and efa do. Libfabric's objects are tcp's own, with some functions of their tables replaced:
//
//   a registration  has no key and no descriptor until it is bound to an endpoint and enabled; it closes before that
//   a post          is refused unless each piece lies in a registration of its endpoint
//   a key           is worth something on the connection of its endpoint only
//
// What a program does wrong is also printed.
#pragma once

#include "lacuna/nic/ofi/library.hpp"

namespace lacuna::test::ofi {

/// Of an opened fabric: its domains, their registrations and endpoints behave so.
void bind_registrations(fid_fabric& fabric);

}  // namespace lacuna::test::ofi
