// address: what an agent tells others by its metadata, so that they can connect to it. It hides how that is written
// down, and that it may come from anybody.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

struct Address {
  std::string machine;             ///< nic::tcp::machine_identity()
  std::uint32_t user = 0;          ///< effective
  std::string secret;              ///< what connects here proves that it knows this
  std::uint16_t port = 0;          ///< where the agent listens,
  std::vector<std::string> hosts;  ///< and at which addresses, as numbers
  std::string nic;                 ///< that its program named; empty: any
  bool operator==(const Address&) const = default;
};
inline constexpr std::size_t kSecretBytes = 32, kMostHosts = 32, kMostHostBytes = 64, kMostNicBytes = 64;

[[nodiscard]] std::string encode(const Address& address);
/// Of bytes from anywhere. Errors: malformed.
Result<Address> decode_address(std::string_view text);

/// The addresses of this machine at which others may reach it, as numbers, the loopback last.
[[nodiscard]] std::vector<std::string> own_hosts();
/// "1.2.3.4:5" or "[::1]:5".
[[nodiscard]] std::string at_port(std::string_view host, std::uint16_t port);
[[nodiscard]] bool is_loopback(std::string_view host);

}  // namespace lacuna::nixl
