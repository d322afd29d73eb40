// ofi: any network that libfabric drives, through its providers.
//
//   library.hpp     libfabric, loaded when a provider is asked for and not before
//   provider.hpp    one opened provider: what it offers, and what this NIC makes of that
//   regions.hpp     registered memory of this end; remote_keys.hpp what is known of the peer's
//   context.hpp     memory, completion queues, waiting
//   queue_pair.hpp  requests into operations of a data endpoint; control.hpp what the two ends say on another one
//   connect.cpp     connects both endpoints
//   attendant.hpp   a thread that answers peers while the program is elsewhere, where that is asked for
//   info.cpp        what the providers are, for people
//
//   post_chain ─▶ ring of requests ─▶ fi_sendmsg, fi_writemsg, fi_readmsg, as keys, receives and the provider allow
//   poll ◀─ ring, in the order of posting ◀─ completions, in any order
//
// docs/design/ofi.md says why there are two endpoints, and what is told on which.
#pragma once

#include "lacuna/nic/devices.hpp"

namespace lacuna::nic::ofi {

/// `provider`: as libfabric names it ("tcp", "efa", "tcp;ofi_rxm"); empty for libfabric's best one that reaches other
/// machines. Errors: unsupported (no libfabric, no such provider here, or one that this NIC cannot use: the message
/// says why), io.
Result<std::unique_ptr<nic::Context>> open(std::string_view provider, const OpenOptions& options);

/// All providers, those that cannot be used too.
Providers describe();

}  // namespace lacuna::nic::ofi
