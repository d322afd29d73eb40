// How two processes at the ends of a TCP connection come to trust one another:
//
//   listening                            connecting
//       ── its nonce ──────────────────────▶            whoever only connects gets no proof that it could try secrets on
//       ◀── claim, its nonce, its proof ────
//       ── its proof ──────────────────────▶
//
// Each proof is of the prover's side, both nonces and the claim, so that none serves another time, at another place or in the other direction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lacuna/protocol/meeting/acceptor.hpp"
#include "lacuna/protocol/meeting/secret.hpp"

namespace lacuna::protocol::meeting {

/// What a connecting process says of itself.
struct Claim {
  std::uint32_t size = 0;
  std::uint32_t rank = 0;
  std::uint32_t to = 0;      ///< the rank that it connects to
  std::uint32_t user = 0;    ///< effective
  std::uint32_t port = 0;    ///< where it listens for the others
  std::string machine = {};  ///< kDigestBytes: the same for processes that can meet by name
  std::string meeting = {};  ///< kDigestBytes: drawn by rank 0; zeros on the way to rank 0
};

inline constexpr std::size_t kClaimBytes = 6 * sizeof(std::uint32_t) + 2 * kDigestBytes;
inline constexpr std::size_t kTcpRequestBytes = kClaimBytes + kNonceBytes + kProofBytes;

/// The listening side: an Acceptor's greeting, and then what its caller claims, proved. The caller has its answer.
/// Errors: malformed, permission (another secret).
bool challenge(Caller& caller);
Result<Claim> verify(const Secret& secret, const Caller& caller);
/// What a request that was verified claims.
[[nodiscard]] Claim claim_of(std::string_view request);

/// The connecting side. Errors: permission (another secret), malformed (this is no meeting), peer_lost, timeout.
Result<void> introduce(int socket, const Secret& secret, const Claim& claim, std::int64_t deadline);

}  // namespace lacuna::protocol::meeting
