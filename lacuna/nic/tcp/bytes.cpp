#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::nic::tcp {
namespace {

bool passing(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

}  // namespace

Result<void> send_bytes(int socket, std::string_view bytes, std::int64_t deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (passing(errno)) {
      LACUNA_TRY(wait_for(socket, POLLOUT, deadline));
    } else {
      return std::unexpected(base::system_error("send", errno));
    }
  }
  return {};
}

Result<void> receive_bytes(int socket, std::span<char> bytes, std::int64_t deadline) {
  while (!bytes.empty()) {
    const ssize_t n = ::recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0) return base::fail(base::Code::peer_lost, "the other side closed the connection");
    if (n > 0) {
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (passing(errno)) {
      LACUNA_TRY(wait_for(socket, POLLIN, deadline));
    } else {
      return std::unexpected(base::system_error("recv", errno));
    }
  }
  return {};
}

int poll_ms(std::int64_t deadline) {
  return static_cast<int>(std::clamp<std::int64_t>((deadline - base::now_ns() + 999'999) / 1'000'000, 0, 1000));
}

Result<void> wait_for(int socket, short events, std::int64_t deadline) {
  for (;;) {
    if (base::now_ns() >= deadline) return base::fail(base::Code::timeout, "the other side did not answer");
    pollfd waiting{socket, events, 0};
    const int ready = ::poll(&waiting, 1, poll_ms(deadline));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return std::unexpected(base::system_error("poll", errno));
  }
}

void pause_until(std::int64_t deadline) {
  while (base::now_ns() < deadline) ::poll(nullptr, 0, poll_ms(deadline));
}

void put(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

std::uint32_t take(std::string_view& in) {
  std::uint32_t value = 0;
  for (int shift = 0; shift < 32; shift += 8)
    value |= std::uint32_t{static_cast<unsigned char>(in[static_cast<std::size_t>(shift) / 8])} << shift;
  in.remove_prefix(4);
  return value;
}

std::string_view take(std::string_view& in, std::size_t bytes) {
  const std::string_view first = in.substr(0, bytes);
  in.remove_prefix(bytes);
  return first;
}

}  // namespace lacuna::nic::tcp
