#include "lacuna/nic/tcp.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>

namespace lacuna::nic::tcp {
namespace {

using base::Code;

constexpr int kBacklog = 1024;

// The name and the port, or what is wrong with them.
Result<std::pair<std::string, std::uint16_t>> split(std::string_view host_and_port) {
  const auto wrong = [&](std::string_view why) {
    return base::fail(Code::invalid_argument, fmt::format("\"{}\" is not host:port: {}", host_and_port, why));
  };
  const std::size_t colon = host_and_port.rfind(':');
  if (colon == std::string_view::npos) return wrong("there is no port");
  std::string_view host = host_and_port.substr(0, colon);
  const std::string_view digits = host_and_port.substr(colon + 1);
  if (host.starts_with('[') && host.ends_with(']')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return wrong("an IPv6 address goes into brackets");
  }
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (error != std::errc() || end != digits.data() + digits.size() || port == 0) return wrong("a port is a number from 1 to 65535");
  if (host.empty() || host.find('\0') != std::string_view::npos) return wrong("there is no host");
  return std::pair(std::string(host), port);
}

Result<base::Fd> tcp_socket(const Endpoint& endpoint) {
  base::Fd socket(::socket(endpoint.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return std::unexpected(base::system_error("socket", errno));
  return socket;
}

using Ask = int (*)(int, sockaddr*, socklen_t*);
Result<Endpoint> end_of(int socket, Ask ask, std::string_view call) {
  Endpoint endpoint;
  endpoint.length = sizeof endpoint.address;
  if (ask(socket, reinterpret_cast<sockaddr*>(&endpoint.address), &endpoint.length) != 0)
    return std::unexpected(base::system_error(call, errno));
  return endpoint;
}

// A port in the range from which the kernel takes ports for connections may, while no process listens there, be
// connected to itself.
bool connected_to_itself(int socket) {
  const Result<Endpoint> near = near_end(socket);
  const Result<Endpoint> far = far_end(socket);
  return near && far && near->text() == far->text();
}

}  // namespace

std::uint16_t Endpoint::port() const {
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

void Endpoint::set_port(std::uint16_t port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&address)->sin_port = htons(port);
  }
}

std::string Endpoint::host() const {
  std::string bytes(kHostBytes, '\0');
  if (address.ss_family == AF_INET6) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr, sizeof(in6_addr));
  } else {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, sizeof(in_addr));
  }
  return bytes;
}

void Endpoint::set_host(std::string_view host) {
  if (address.ss_family == AF_INET6) {
    std::memcpy(&reinterpret_cast<sockaddr_in6*>(&address)->sin6_addr, host.data(), sizeof(in6_addr));
  } else {
    std::memcpy(&reinterpret_cast<sockaddr_in*>(&address)->sin_addr, host.data(), sizeof(in_addr));
  }
}

std::string Endpoint::text() const {
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (address.ss_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr, host.data(), host.size());
    return fmt::format("[{}]:{}", host.data(), port());
  }
  inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr, host.data(), host.size());
  return fmt::format("{}:{}", host.data(), port());
}

Result<std::vector<Endpoint>> resolve(std::string_view host_and_port) {
  const auto [host, port] = LACUNA_TRY(split(host_and_port));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    const bool no_such = error == EAI_NONAME || error == EAI_FAMILY;
    return base::fail(no_such ? Code::invalid_argument : Code::io, fmt::format("host \"{}\": {}", host, gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  std::vector<Endpoint> endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    Endpoint& endpoint = endpoints.emplace_back();
    std::memcpy(&endpoint.address, one->ai_addr, one->ai_addrlen);
    endpoint.length = one->ai_addrlen;
    endpoint.set_port(port);
  }
  if (endpoints.empty()) return base::fail(Code::invalid_argument, fmt::format("host \"{}\" has no Internet address", host));
  return endpoints;
}

Result<base::Fd> listen_at(const Endpoint& endpoint) {
  base::Fd socket = LACUNA_TRY(tcp_socket(endpoint));
  const int on = 1;  // connections of a meeting that has ended do not keep the port
  setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (endpoint.address.ss_family == AF_INET6) setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  if (bind(socket.get(), endpoint.generic(), endpoint.length) != 0 || listen(socket.get(), kBacklog) != 0)
    return std::unexpected(base::system_error(fmt::format("listening at {}", endpoint.text()), errno));
  return socket;
}

Result<base::Fd> connect_to(const Endpoint& endpoint, std::int64_t deadline) {
  base::Fd socket = LACUNA_TRY(tcp_socket(endpoint));
  const auto failed = [&](int error) -> std::unexpected<base::Error> {
    base::Error described = base::system_error(fmt::format("connecting to {}", endpoint.text()), error);
    if (error == ECONNREFUSED) described.code = Code::peer_lost;
    if (error == ETIMEDOUT) described.code = Code::timeout;
    return std::unexpected(std::move(described));
  };
  if (connect(socket.get(), endpoint.generic(), endpoint.length) != 0) {
    if (errno != EINPROGRESS && errno != EINTR) return failed(errno);
    if (!wait_for(socket.get(), POLLOUT, deadline)) return failed(ETIMEDOUT);
    int error = 0;
    socklen_t length = sizeof error;
    if (getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
    if (error != 0) return failed(error);
  }
  if (connected_to_itself(socket.get())) return failed(ECONNREFUSED);
  send_at_once(socket.get());
  return socket;
}

Result<Endpoint> near_end(int socket) { return end_of(socket, getsockname, "getsockname"); }
Result<Endpoint> far_end(int socket) { return end_of(socket, getpeername, "getpeername"); }

void send_at_once(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

void notice_death(int socket) {
  const auto set = [socket](int level, int option, int value) { setsockopt(socket, level, option, &value, sizeof value); };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 2);   // s without a word before it is asked for one,
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);  // and between two times that it is
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 6000);  // ms for what was sent to be acknowledged
}

}  // namespace lacuna::nic::tcp
