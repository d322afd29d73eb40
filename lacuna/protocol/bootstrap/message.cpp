#include "lacuna/protocol/bootstrap/message.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>

namespace lacuna::protocol::bootstrap {
namespace {

using base::Code;

constexpr std::size_t kHeaderBytes = 12;
constexpr std::size_t kMostTextBytes = 2000;

// The control data has room for more files than one, since the kernel rounds it up: none of them may be lost.
constexpr std::size_t kMostFiles = 4;

std::unexpected<base::Error> closed() { return base::fail(Code::peer_lost, "the other side closed the connection"); }

bool passing(int error) { return error == EINTR || error == EAGAIN || error == EWOULDBLOCK; }

Result<void> send_parts(int socket, std::string_view bytes, int file, std::int64_t deadline) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  while (!bytes.empty()) {
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};  // NOLINT: sendmsg() does not write there
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (file >= 0) {
      message.msg_control = control;
      message.msg_controllen = sizeof control;
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof file);
      std::memcpy(CMSG_DATA(header), &file, sizeof file);
    }
    const ssize_t n = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
      file = -1;
    } else if (errno == ETOOMANYREFS) {
      // As many files as a user may have are under way: until the receivers took some
      if (base::now_ns() >= deadline) return base::fail(Code::timeout, "too many files are on their way between processes");
      pause_until(std::min(deadline, base::now_ns() + 1'000'000));
    } else if (passing(errno)) {
      LACUNA_TRY(wait_for(socket, POLLOUT, deadline));
    } else {
      return std::unexpected(base::system_error("sendmsg", errno));
    }
  }
  return {};
}

// Owns every file that came, so that one that was not asked for is closed.
void take_files(msghdr& message, std::vector<base::Fd>& files) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int file = -1;
      std::memcpy(&file, reinterpret_cast<char*>(header) + at, sizeof file);
      files.emplace_back(file);
    }
  }
}

Result<void> receive_parts(int socket, std::span<char> bytes, std::vector<base::Fd>& files, std::int64_t deadline) {
  while (!bytes.empty()) {
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFiles)]{};
    iovec part{bytes.data(), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const ssize_t n = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n == 0) return closed();
    if (n > 0) {
      take_files(message, files);
      if ((message.msg_flags & MSG_CTRUNC) != 0)
        return base::fail(Code::limit, "a connection that was passed to this process did not arrive: it may not open more files");
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    } else if (passing(errno)) {
      LACUNA_TRY(wait_for(socket, POLLIN, deadline));
    } else {
      return std::unexpected(base::system_error("recvmsg", errno));
    }
  }
  return {};
}

}  // namespace

Result<void> send(int socket, const Message& message, std::int64_t deadline) {
  std::string stream;
  put(stream, static_cast<std::uint32_t>(message.kind));
  put(stream, static_cast<std::uint32_t>(message.value));
  put(stream, static_cast<std::uint32_t>(message.bytes.size()));
  stream += message.bytes;
  return send_parts(socket, stream, message.file.get(), deadline);
}

void tell(int socket, const Message& message) { [[maybe_unused]] const Result<void> sent = send(socket, message, 0); }

Result<Message> receive(int socket, std::int64_t deadline) {
  std::array<char, kHeaderBytes> header;
  std::vector<base::Fd> files;
  LACUNA_TRY(receive_parts(socket, header, files, deadline));
  std::string_view fields(header.data(), header.size());
  Message message;
  const std::uint32_t kind = take(fields);
  message.value = static_cast<std::int32_t>(take(fields));
  const std::uint32_t length = take(fields);
  if (kind < static_cast<std::uint32_t>(MessageKind::status) || kind > static_cast<std::uint32_t>(MessageKind::failed) ||
      length > kMostMessageBytes)
    return base::fail(Code::malformed, fmt::format("a message of kind {} and {} bytes, which no bootstrap has", kind, length));
  message.kind = static_cast<MessageKind>(kind);
  message.bytes.resize(length);
  LACUNA_TRY(receive_parts(socket, message.bytes, files, deadline));
  if (files.size() > 1) return base::fail(Code::malformed, "a message with more than one file");
  if (!files.empty()) message.file = std::move(files.front());
  return message;
}

Message refusal(MessageKind kind, const base::Error& error) {
  return {.kind = kind, .value = static_cast<int>(error.code), .bytes = error.message};
}

std::string told_text(const Message& message) {
  std::string text = message.bytes.substr(0, kMostTextBytes);
  std::ranges::replace_if(text, [](char c) { return std::iscntrl(static_cast<unsigned char>(c)) != 0; }, '?');
  return text;
}

base::Error told_error(const Message& message) {
  const bool known = message.value >= 0 && message.value <= static_cast<int>(Code::transfer);
  return {known ? static_cast<Code>(message.value) : Code::malformed, told_text(message)};
}

}  // namespace lacuna::protocol::bootstrap
