// Messages on stream sockets, Unix or TCP, before a Bootstrap has them. What arrives may
// be hostile: kinds, lengths and codes are checked here, what they mean is checked by their receiver.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lacuna/nic/tcp.hpp"

namespace lacuna::protocol::bootstrap {

using base::Result;
using nic::tcp::pause_until;
using nic::tcp::poll_ms;
using nic::tcp::put;
using nic::tcp::receive_bytes;
using nic::tcp::send_bytes;
using nic::tcp::take;
using nic::tcp::wait_for;

enum class MessageKind : std::uint32_t {
  status = 1,  ///< value: how many came; bytes: which ranks are missing, in words
  refused,     ///< value: a base::Code; bytes: why this process cannot take part
  rank,        ///< value: the receiver's; its connections follow
  peer,        ///< value: whose; with the socket
  name,        ///< bytes: the name by which to go on
  mesh,        ///< bytes: the group's number and where the others listen
  done,        ///< the sender has all its connections
  go,          ///< all have
  failed,      ///< value: a base::Code; bytes: why no process can take part
};

struct Message {
  MessageKind kind = MessageKind::status;
  std::int32_t value = 0;
  std::string bytes;
  base::Fd file;  ///< a Unix socket passes it
};

inline constexpr std::size_t kMostMessageBytes = 32 << 10;  ///< an address for each of kMostRanks

/// Errors: peer_lost, timeout. With a deadline that is past, what can be sent without waiting is.
Result<void> send(int socket, const Message& message, std::int64_t deadline);
/// Sent if the other end still listens; else dropped.
void tell(int socket, const Message& message);
/// Errors: peer_lost, timeout, malformed, limit (no file descriptor is left for the file).
Result<Message> receive(int socket, std::int64_t deadline);

/// The words, and the error of kinds refused and failed, that a message brings: short, and harmless to a terminal.
[[nodiscard]] std::string told_text(const Message& message);
[[nodiscard]] base::Error told_error(const Message& message);
[[nodiscard]] Message refusal(MessageKind kind, const base::Error& error);

}  // namespace lacuna::protocol::bootstrap
