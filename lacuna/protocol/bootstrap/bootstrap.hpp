// bootstrap: how processes become a group whose members are connected with one another. It hides sockets, who
// coordinates, and the secret.
//
//   form_group(name)        by_name.cpp   processes of one user on one machine, over Unix sockets
//   form_group(host:port)   by_tcp.cpp    processes that share a secret, over TCP
//                              ├─ all on one machine: they go on by name
//                              └─ else tcp_mesh.hpp: a connection between each two, proved by handshake.hpp
//
// gather.hpp has the coordinator of both: it gives out ranks, and either all processes go on, or all learn why not.
// message.hpp has the messages on all these sockets.
#pragma once

#include <string_view>

#include "lacuna/protocol/bootstrap/gather.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol::bootstrap {

/// Processes of one user on one machine, over Unix sockets. The plan's rank and size are in range.
Result<Group> connect_by_name(std::string_view name, const BootstrapPlan& plan);
/// Instead, for a process that has no memory for it: tells the others, which then learn that there is no group. Wants
/// no memory. Waits until they have come, for some seconds at most.
void tell_no_memory(std::string_view name, int size);

/// Processes that share a secret, over TCP; those that turn out to be on one machine go on by name. Rank 0 listens at
/// the address.
Result<Group> connect_by_tcp(std::string_view address, std::string_view secret, const BootstrapPlan& plan);

}  // namespace lacuna::protocol::bootstrap
