// The out-of-band channel over a Unix stream socket: a length, the bytes, and with the first byte the files and the
// sender's credentials, which the kernel fills in and checks.
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic {
namespace {

constexpr std::size_t kMaxFiles = 8;
// Both ends send before they receive: a hello has to fit into a socket's buffer
constexpr std::uint32_t kMaxBytes = 128 << 10;
constexpr std::size_t kControlBytes = CMSG_SPACE(sizeof(int) * kMaxFiles) + CMSG_SPACE(sizeof(ucred));

Result<void> wait_for(int socket, short events, std::int64_t deadline) {
  for (;;) {
    const std::int64_t left = deadline - base::now_ns();
    if (left <= 0) return base::fail(base::Code::timeout, "the peer did not answer on the bootstrap channel");
    pollfd waiting{socket, events, 0};
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, 1000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return std::unexpected(base::system_error("poll", errno));
  }
}

std::unexpected<base::Error> closed() { return base::fail(base::Code::peer_lost, "the peer closed the bootstrap channel"); }

void append_control(msghdr& message, int type, const void* data, std::size_t bytes) {
  auto* header = reinterpret_cast<cmsghdr*>(static_cast<char*>(message.msg_control) + message.msg_controllen);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = type;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), data, bytes);
  message.msg_controllen += CMSG_SPACE(bytes);
}

Result<void> send_hello(int socket, const Hello& hello, std::int64_t deadline) {
  if (hello.files.size() > kMaxFiles || hello.bytes.size() > kMaxBytes) {
    return base::fail(base::Code::limit, fmt::format("a hello of {} bytes and {} files; the bootstrap takes {} and {}", hello.bytes.size(),
                                                     hello.files.size(), kMaxBytes, kMaxFiles));
  }
  const auto length = static_cast<std::uint32_t>(hello.bytes.size());
  std::vector<std::byte> stream(sizeof length + length);
  std::memcpy(stream.data(), &length, sizeof length);
  std::ranges::copy(hello.bytes, stream.begin() + sizeof length);

  alignas(cmsghdr) char control[kControlBytes]{};
  std::vector<int> files;
  files.reserve(hello.files.size());
  for (const base::Fd& file : hello.files) files.push_back(file.get());
  const ucred self{getpid(), geteuid(), getegid()};
  for (std::size_t sent = 0; sent < stream.size();) {
    LACUNA_TRY(wait_for(socket, POLLOUT, deadline));
    iovec part{stream.data() + sent, stream.size() - sent};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent == 0) {
      message.msg_control = control;
      append_control(message, SCM_CREDENTIALS, &self, sizeof self);
      if (!files.empty()) append_control(message, SCM_RIGHTS, files.data(), files.size() * sizeof(int));
    }
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) sent += static_cast<std::size_t>(n);
    if (n < 0 && errno != EINTR && errno != EAGAIN) return std::unexpected(base::system_error("sendmsg", errno));
  }
  return {};
}

Result<void> take_control(msghdr& message, Hello& hello) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET) continue;
    if (header->cmsg_type == SCM_RIGHTS) {
      for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
        int file = -1;
        std::memcpy(&file, reinterpret_cast<char*>(header) + at, sizeof file);
        hello.files.emplace_back(file);
      }
    }
    if (header->cmsg_type == SCM_CREDENTIALS) {
      ucred peer{};
      std::memcpy(&peer, CMSG_DATA(header), sizeof peer);
      if (peer.uid != geteuid()) {
        return base::fail(base::Code::permission,
                          fmt::format("the peer runs as user {}, this process as {}; they must be the same", peer.uid, geteuid()));
      }
      hello.process = peer.pid;
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0)
    return base::fail(base::Code::malformed, fmt::format("the peer sent more than {} files", kMaxFiles));
  return {};
}

// Reads exactly bytes.size() bytes; files and credentials go to `hello`.
Result<void> receive(int socket, std::span<std::byte> bytes, Hello& hello, std::int64_t deadline) {
  for (std::size_t got = 0; got < bytes.size();) {
    LACUNA_TRY(wait_for(socket, POLLIN, deadline));
    alignas(cmsghdr) char control[kControlBytes]{};
    iovec part{bytes.data() + got, bytes.size() - got};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == 0) return closed();
    if (n < 0 && errno != EINTR && errno != EAGAIN) return std::unexpected(base::system_error("recvmsg", errno));
    if (n < 0) continue;
    LACUNA_TRY(take_control(message, hello));
    got += static_cast<std::size_t>(n);
  }
  return {};
}

}  // namespace

Result<Hello> UnixBootstrap::exchange(const Hello& mine, std::int64_t timeout_ns) {
  const std::int64_t deadline = base::now_ns() + timeout_ns;
  const int on = 1;
  if (setsockopt(socket_.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0)
    return std::unexpected(base::system_error("SO_PASSCRED", errno));
  LACUNA_TRY(send_hello(socket_.get(), mine, deadline));
  Hello theirs;
  std::uint32_t length = 0;
  LACUNA_TRY(receive(socket_.get(), std::as_writable_bytes(std::span(&length, 1)), theirs, deadline));
  if (length > kMaxBytes)
    return base::fail(base::Code::malformed,
                      fmt::format("the peer announced a hello of {} bytes; at most {} are accepted", length, kMaxBytes));
  theirs.bytes.resize(length);
  LACUNA_TRY(receive(socket_.get(), theirs.bytes, theirs, deadline));
  return theirs;
}

Result<std::pair<base::Fd, base::Fd>> UnixBootstrap::socket_pair() {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return std::unexpected(base::system_error("socketpair", errno));
  // Both ends ask for credentials before either sends, so that none travel without.
  const int on = 1;
  for (const int end : ends) setsockopt(end, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
  return std::pair{base::Fd(ends[0]), base::Fd(ends[1])};
}

}  // namespace lacuna::nic
