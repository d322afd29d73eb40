// tcp: how processes on different machines find and trust one another, before a queue pair connects them. It is part of
// nic, whose Bootstrap it ends in; layers below use it too, and no other layer sees it.
//
//   connecting                                   listening
//   resolve, connect_to                          resolve, listen_at, Acceptor      all that connect are heard at once
//       ◀── purpose, its nonce ──────────────────────       what only connects gets no proof to try secrets on
//       ── purpose, claim, its nonce, its proof ─────▶      the claim, in as many bytes as both know
//       ◀── accepted or refused, its proof ──────────
//   Bootstrap ◀──────────────────────────────▶ Bootstrap
//
// Each proof is of the prover's side, both nonces, the purpose and the claim, so that none serves another time, at
// another place, for something else or in the other direction. This keeps out a stranger that can connect; one that can
// change what travels between the machines is not kept out, here as little as by RDMA. What arrives may be hostile: its
// length is fixed, or bounded, before it is read, and every wait has a deadline.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lacuna/nic/nic.hpp"

namespace lacuna::nic::tcp {

// --- secrets --------------------------------------------------------------------------------------------------------

inline constexpr std::size_t kLeastSecretBytes = 16;
inline constexpr std::size_t kProofBytes = 32;
inline constexpr std::size_t kNonceBytes = 32;
inline constexpr std::size_t kDigestBytes = 32;

/// What processes share, each of which proves to the other that it has it without saying it.
class Secret {
 public:
  /// Errors: unsupported (no source of random numbers).
  static Result<Secret> create(std::string_view secret);
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  /// Leaves none of it in memory.
  ~Secret();
  /// For what was said, by the one that said it.
  [[nodiscard]] std::string prove(std::string_view text) const;
  /// In constant time.
  [[nodiscard]] bool proves(std::string_view proof, std::string_view text) const;

 private:
  Secret() = default;
  std::array<unsigned char, 32> key_{};
};

// Secret::create() comes before these.
[[nodiscard]] std::string random_bytes(std::size_t count);
[[nodiscard]] std::string digest(std::string_view text);
/// kDigestBytes, equal for processes that can connect by name: one kernel, one set of abstract names, one numbering of
/// users.
[[nodiscard]] std::string machine_identity();

// --- bytes on stream sockets ----------------------------------------------------------------------------------------

/// How long poll() may wait: rounded up so that it does not spin, and at most a second.
[[nodiscard]] int poll_ms(std::int64_t deadline);
/// Errors: timeout.
Result<void> wait_for(int socket, short events, std::int64_t deadline);
void pause_until(std::int64_t deadline);

/// Errors: peer_lost, timeout. With a deadline that is past, what can be sent without waiting is.
Result<void> send_bytes(int socket, std::string_view bytes, std::int64_t deadline);
/// All of them. Errors: peer_lost, timeout.
Result<void> receive_bytes(int socket, std::span<char> bytes, std::int64_t deadline);

// Numbers in messages: little-endian, whatever the machine. take() is for what has been measured before.
void put(std::string& out, std::uint32_t value);
[[nodiscard]] std::uint32_t take(std::string_view& in);
[[nodiscard]] std::string_view take(std::string_view& in, std::size_t bytes);

// --- addresses ------------------------------------------------------------------------------------------------------

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

/// What "host:port", "1.2.3.4:port" or "[::1]:port" stands for; one or more. Errors: invalid_argument, io (no answer
/// from the name service).
Result<std::vector<Endpoint>> resolve(std::string_view host_and_port);

/// Port 0: one that is free. Errors: io (the port is in use), permission, limit.
Result<base::Fd> listen_at(const Endpoint& endpoint);
/// Errors: peer_lost (nobody listens there), timeout, io.
Result<base::Fd> connect_to(const Endpoint& endpoint, std::int64_t deadline);

// The two ends of a connection, or of a listening socket the one.
Result<Endpoint> near_end(int socket);
Result<Endpoint> far_end(int socket);
void send_at_once(int socket);  ///< TCP_NODELAY: small messages do not wait for one another
/// From now on a machine that has vanished without a word is noticed within some seconds, also while nothing is sent.
void notice_death(int socket);

// --- everybody who connects -----------------------------------------------------------------------------------------

/// Somebody who has connected.
struct Caller {
  base::Fd socket;
  std::int64_t until = 0;  ///< for the whole request
  std::string challenge;   ///< what it was greeted with
  std::string request;     ///< as much as has come
};

/// The listening side: everybody who connects has a moment to say a request of fixed length, all at the same time.
/// A stranger that is silent holds up no other, nor do many. For Unix sockets too.
class Acceptor {
 public:
  /// Looks at, or says a first word to, one who has just connected; false: it is not heard.
  using Greet = std::function<bool(Caller&)>;

  /// An honest process answers at once. One that was dropped since it had no CPU for so long tries again.
  static constexpr std::int64_t kRequestNs = 1'000'000'000;

  /// `listener` does not block. Beyond `most_callers` that have not finished their request, the oldest is dropped, and
  /// so is who needs more than `request_ns` for it.
  Acceptor(base::Fd listener, std::size_t request_bytes, std::size_t most_callers, Greet greet, std::int64_t request_ns = kRequestNs)
      : listener_(std::move(listener)),
        request_bytes_(request_bytes),
        most_callers_(most_callers),
        greet_(std::move(greet)),
        request_ns_(request_ns) {}

  /// One whose request is complete. Nothing at `until`, or when something happens to one of `watched`, whose revents
  /// say what. Errors: limit (no more files may be open), io.
  Result<std::optional<Caller>> next(std::span<pollfd> watched, std::int64_t until);
  /// Some were dropped since this process may not open more files.
  [[nodiscard]] bool ran_out_of_files() const { return ran_out_of_files_; }
  /// Listens no longer; those whom next() has not given out yet.
  std::vector<base::Fd> close();
  /// In a child of the process that listens: it keeps none of the connections, and takes none from its parent.
  void forget();

 private:
  Result<void> accept_all();
  bool hear(Caller& caller) const;

  base::Fd listener_;
  std::size_t request_bytes_;
  std::size_t most_callers_;
  Greet greet_;
  std::int64_t request_ns_;
  bool ran_out_of_files_ = false;
  std::vector<Caller> callers_;  // in the order in which they came
};

// --- the handshake --------------------------------------------------------------------------------------------------

/// What a connection is for; both ends name the same.
struct Purpose {
  std::uint32_t magic;
  std::string_view name;  ///< for messages: "what listens there is no NAME"
};

/// What a connecting process says after it was greeted, with a claim of so many bytes.
[[nodiscard]] constexpr std::size_t request_bytes(std::size_t claim_bytes) {
  return sizeof(std::uint32_t) + claim_bytes + kNonceBytes + kProofBytes;
}
inline constexpr std::size_t kGreetingBytes = sizeof(std::uint32_t) + kNonceBytes;
inline constexpr std::size_t kAnswerBytes = sizeof(std::uint32_t) + kProofBytes;

/// The listening side: an Acceptor's greeting.
bool challenge(const Purpose& purpose, Caller& caller);
/// And then what its caller, whose request is complete, claims, proved. The caller has its answer. Errors: malformed,
/// permission (another secret).
Result<std::string> verify(const Secret& secret, const Purpose& purpose, const Caller& caller);
/// What a request that was verified claims.
[[nodiscard]] std::string_view claim_of(std::string_view request);

/// The connecting side. Errors: permission (another secret), malformed (something else listens there), peer_lost,
/// timeout.
Result<void> introduce(int socket, const Secret& secret, const Purpose& purpose, std::string_view claim, std::int64_t deadline);

// --- and then -------------------------------------------------------------------------------------------------------

/// Carries bytes only: files do not travel between machines, and the kernel does not vouch for the peer's process. Over
/// a connection whose two ends have proved to one another that they know one secret.
class TcpBootstrap final : public nic::Bootstrap {
 public:
  explicit TcpBootstrap(base::Fd socket) : socket_(std::move(socket)) {}
  Result<nic::Hello> exchange(const nic::Hello& mine, std::int64_t timeout_ns) override;

 private:
  base::Fd socket_;
};

}  // namespace lacuna::nic::tcp
