// A connection between each two processes of a group over TCP.
#pragma once

#include <span>
#include <string>

#include "lacuna/protocol/bootstrap/gather.hpp"
#include "lacuna/protocol/bootstrap/handshake.hpp"
#include "lacuna/protocol/protocol.hpp"

namespace lacuna::protocol::bootstrap {

/// What a process other than rank 0 has when the mesh begins.
struct MeshMember {
  base::Fd control;   ///< the connection to rank 0, which becomes its own with it
  base::Fd listener;  ///< at the claim's port
  Claim claim;        ///< as it was made to rank 0
};

/// Rank 0's part: tells the others where to connect, and waits until all are connected.
Result<Group> host_mesh(Gathered gathered, const BootstrapPlan& plan);
/// The part of the others. `told`: what rank 0 said. Errors: peer_lost, timeout, malformed, permission.
Result<Group> join_mesh(MeshMember member, const Secret& secret, std::string_view told, const BootstrapPlan& plan);

}  // namespace lacuna::protocol::bootstrap
