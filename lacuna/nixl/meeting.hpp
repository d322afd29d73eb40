// meeting: how two agents, of which the first knows the address of the second, become two ranks of a communicator. It
// hides secrets and sockets.
//
//   first                                      second
//   connects, proves the secret ─────────────▶ Acceptor
//       with a claim: which NIC, and by which name the two meet, if on one machine
//   name ◀──────────────────────────────────▶ name
//   opens the NIC; ready, or why not ◀───────▶ opens the NIC; ready, or why not
//   forms the group: by name, or over this very connection
#pragma once

#include <string>
#include <string_view>

#include "lacuna/nic/tcp.hpp"
#include "lacuna/nixl/address.hpp"
#include "lacuna/nixl/connection.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

inline constexpr std::size_t kMostNameBytes = 1024;  // of an agent's name

/// What an acceptor needs.
[[nodiscard]] std::size_t meeting_request_bytes();
bool greet_meeting(nic::tcp::Caller& caller);

/// The first one's part. `nic`: as nic::open(). Errors: peer_lost, timeout, permission, malformed (another agent
/// listens there), what the peer says of its NIC, those of Communicator::create().
Result<Connection::Ends> meet_first(const std::string& own_name, const std::string& agent, const Address& there, const std::string& nic,
                                    std::int64_t timeout_ns);

struct Guest {
  std::string name;
  Connection::Ends ends;
};
/// What the second one goes by.
struct House {
  std::string nic;      ///< the only one that it takes; empty: any
  std::string refusal;  ///< why it takes no other agent; empty: it does
};
/// The second one's part. Errors: as meet_first(), limit (a refusal).
Result<Guest> meet_second(const std::string& own_name, const nic::tcp::Secret& secret, nic::tcp::Caller caller, const House& house,
                          std::int64_t timeout_ns);

/// A communicator of this agent alone. Errors: those of nic::open().
Result<Connection::Ends> meet_alone();

}  // namespace lacuna::nixl
