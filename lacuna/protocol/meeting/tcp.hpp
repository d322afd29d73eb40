// TCP sockets: addresses, listening, connecting.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/base/base.hpp"

namespace lacuna::protocol::meeting {

using base::Result;

inline constexpr std::size_t kHostBytes = 16;

/// An IPv4 or IPv6 address with its port.
struct Endpoint {
  sockaddr_storage address{};
  socklen_t length = 0;

  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&address); }
  [[nodiscard]] std::uint16_t port() const;
  void set_port(std::uint16_t port);
  [[nodiscard]] std::string host() const;  ///< kHostBytes, for an endpoint of the same family
  void set_host(std::string_view host);
  [[nodiscard]] std::string text() const;
};

/// What "host:port", "1.2.3.4:port" or "[::1]:port" stands for; one or more. Errors: invalid_argument, io (no answer from the name service).
Result<std::vector<Endpoint>> resolve(std::string_view host_and_port);

/// Port 0: one that is free. Errors: io (the port is in use), permission, limit.
Result<base::Fd> listen_at(const Endpoint& endpoint);
/// Errors: peer_lost (nobody listens there), timeout, io.
Result<base::Fd> connect_to(const Endpoint& endpoint, std::int64_t deadline);

// The two ends of a connection, or of a listening socket the one.
Result<Endpoint> near_end(int socket);
Result<Endpoint> far_end(int socket);
void send_at_once(int socket);  ///< TCP_NODELAY: small messages do not wait for one another

}  // namespace lacuna::protocol::meeting
