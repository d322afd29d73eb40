#include "lacuna/nic/tcp.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace lacuna::nic::tcp {
namespace {

using base::Code;

constexpr std::uint32_t kMaxBytes = 128 << 10;  // as UnixBootstrap
constexpr std::size_t kLengthBytes = 4;

// Whether a call that returned `n` moved something; an error if it never will.
Result<bool> moved(ssize_t n, std::string_view call) {
  if (n > 0) return true;
  if (n < 0 && (errno == EINTR || errno == EAGAIN)) return false;
  if (n == 0 || errno == EPIPE || errno == ECONNRESET) return base::fail(Code::peer_lost, "the peer closed the bootstrap channel");
  if (errno == ETIMEDOUT || errno == EHOSTUNREACH) return base::fail(Code::peer_lost, "the peer's machine does not answer any more");
  return std::unexpected(base::system_error(call, errno));
}

// The peer's hello as it comes, never a byte beyond it.
class Incoming {
 public:
  [[nodiscard]] bool complete() const { return got_ == kLengthBytes + bytes_.size() && sized_; }
  Result<void> receive_some(int socket) {
    char* to = sized_ ? reinterpret_cast<char*>(bytes_.data()) + (got_ - kLengthBytes) : length_.data() + got_;
    const std::size_t room = (sized_ ? kLengthBytes + bytes_.size() : kLengthBytes) - got_;
    const ssize_t n = recv(socket, to, room, MSG_DONTWAIT);
    if (LACUNA_TRY(moved(n, "recv"))) got_ += static_cast<std::size_t>(n);
    if (sized_ || got_ < kLengthBytes) return {};
    std::string_view field(length_.data(), length_.size());
    const std::uint32_t length = take(field);
    if (length > kMaxBytes)
      return base::fail(Code::malformed, fmt::format("the peer announced a hello of {} bytes; at most {} are accepted", length, kMaxBytes));
    bytes_.resize(length);
    sized_ = true;
    return {};
  }
  [[nodiscard]] std::vector<std::byte> bytes() && { return std::move(bytes_); }

 private:
  std::array<char, kLengthBytes> length_{};
  bool sized_ = false;
  std::vector<std::byte> bytes_;
  std::size_t got_ = 0;
};

}  // namespace

// Sends and receives at the same time: both ends send first, and two hellos may be more than the sockets hold.
Result<nic::Hello> TcpBootstrap::exchange(const nic::Hello& mine, std::int64_t timeout_ns) {
  const std::int64_t deadline = base::now_ns() + timeout_ns;
  if (!mine.files.empty())
    return base::fail(Code::unsupported, "files do not travel between machines: this NIC connects processes of one machine only");
  if (mine.bytes.size() > kMaxBytes)
    return base::fail(Code::limit, fmt::format("a hello of {} bytes; the bootstrap takes {}", mine.bytes.size(), kMaxBytes));
  std::string out;
  put(out, static_cast<std::uint32_t>(mine.bytes.size()));
  out.append(reinterpret_cast<const char*>(mine.bytes.data()), mine.bytes.size());

  Incoming incoming;
  for (std::size_t sent = 0; sent < out.size() || !incoming.complete();) {
    const int wanted = (sent < out.size() ? POLLOUT : 0) | (incoming.complete() ? 0 : POLLIN);
    LACUNA_TRY(wait_for(socket_.get(), static_cast<short>(wanted), deadline));
    if (sent < out.size()) {
      const ssize_t n = ::send(socket_.get(), out.data() + sent, out.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (LACUNA_TRY(moved(n, "send"))) sent += static_cast<std::size_t>(n);
    }
    if (!incoming.complete()) LACUNA_TRY(incoming.receive_some(socket_.get()));
  }
  nic::Hello theirs;
  theirs.bytes = std::move(incoming).bytes();
  return theirs;
}

}  // namespace lacuna::nic::tcp
