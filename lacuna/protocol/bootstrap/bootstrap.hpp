// The two kinds of meeting. What they share: messages on sockets, an acceptor for everybody who connects, and the coordinator's gathering.
#pragma once

#include <string_view>

#include "lacuna/protocol/bootstrap/gather.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol::bootstrap {

/// Processes of one user on one machine, over Unix sockets. The plan's rank and size are in range.
Result<Group> connect_by_name(std::string_view name, const BootstrapPlan& plan);

/// Processes that share a secret, over TCP; those that turn out to be on one machine go on by name. Rank 0 listens at the address.
Result<Group> connect_by_tcp(std::string_view address, std::string_view secret, const BootstrapPlan& plan);

}  // namespace lacuna::protocol::bootstrap
