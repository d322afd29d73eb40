// What a process says of itself when it connects to another of its group over TCP (nic/tcp.hpp has the handshake, which
// proves that both know the secret).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::protocol::bootstrap {

using base::Result;
using nic::tcp::Caller;
using nic::tcp::kDigestBytes;
using nic::tcp::Secret;

/// What a connecting process says of itself.
struct Claim {
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint32_t to = 0;       ///< the rank that it connects to
  std::uint32_t user = 0;     ///< effective
  std::uint32_t port = 0;     ///< where it listens for the others
  std::string machine = {};   ///< kDigestBytes: the same for processes that can connect by name
  std::string group_id = {};  ///< kDigestBytes: drawn by rank 0; zeros on the way to rank 0
};

inline constexpr std::size_t kClaimBytes = 5 * sizeof(std::uint32_t) + 2 * kDigestBytes;
inline constexpr std::size_t kTcpRequestBytes = nic::tcp::request_bytes(kClaimBytes);

/// The listening side: an Acceptor's greeting, and then what its caller claims, proved. The caller has its answer.
/// Errors: malformed, permission (another secret).
bool challenge(Caller& caller);
Result<Claim> verify(const Secret& secret, const Caller& caller);
/// What a request that was verified claims.
[[nodiscard]] Claim claim_of(std::string_view request);

/// The connecting side. Errors: permission (another secret), malformed (no group listens there), peer_lost, timeout.
Result<void> introduce(int socket, const Secret& secret, const Claim& claim, std::int64_t deadline);

}  // namespace lacuna::protocol::bootstrap
