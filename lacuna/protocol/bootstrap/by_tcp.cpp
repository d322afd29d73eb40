// The bootstrap at an address of rank 0. It finds out whether all are processes of one user on one machine: those go on
// by a name that no other process knows, and so can pass files; others get TCP connections.
#include <fmt/format.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>

#include "lacuna/protocol/bootstrap/bootstrap.hpp"
#include "lacuna/protocol/bootstrap/handshake.hpp"
#include "lacuna/protocol/bootstrap/tcp_mesh.hpp"

namespace lacuna::protocol::bootstrap {
namespace {

using base::Code;
using nic::tcp::connect_to;
using nic::tcp::digest;
using nic::tcp::Endpoint;
using nic::tcp::listen_at;
using nic::tcp::near_end;
using nic::tcp::random_bytes;
using nic::tcp::send_at_once;

constexpr std::int64_t kRetryNs = 20'000'000;
constexpr std::int64_t kAttemptNs = 5'000'000'000;  // then another of the host's addresses may answer
constexpr std::int64_t kListenNs = 1'000'000'000;   // for a port that is about to be free
constexpr std::size_t kNameBytes = 16;

std::string machine(const BootstrapPlan& plan) {
  return plan.machine.empty() ? nic::tcp::machine_identity() : digest("said " + plan.machine);
}

constexpr char kFreshName = ':';  // no user chooses a name that begins so

std::string fresh_name() {
  std::string name(1, kFreshName);
  for (const char byte : random_bytes(kNameBytes)) name += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return name;
}

// --- rank 0 ---

Result<base::Fd> listen_at_first(const std::vector<Endpoint>& endpoints, std::int64_t deadline) {
  const std::int64_t until = std::min(deadline, base::now_ns() + kListenNs);
  for (;;) {
    Result<base::Fd> listener = base::Fd();
    for (const Endpoint& endpoint : endpoints) {
      listener = listen_at(endpoint);
      if (listener) return listener;
    }
    if (listener.error().code == Code::permission || base::now_ns() >= until) return listener;
    pause_until(std::min(until, base::now_ns() + kRetryNs));
  }
}

Result<Group> host(const std::vector<Endpoint>& endpoints, const Secret& secret, const BootstrapPlan& plan) {
  base::Fd listener = LACUNA_TRY(listen_at_first(endpoints, plan.deadline));
  Acceptor acceptor(std::move(listener), kTcpRequestBytes, static_cast<std::size_t>(plan.size) + 64, challenge);
  const auto check = [&](const Caller& caller) -> Result<Asked> {
    const Claim claim = LACUNA_TRY(verify(secret, caller));
    send_at_once(caller.socket.get());
    return Asked{.size = static_cast<int>(claim.size), .rank = static_cast<int>(claim.rank & INT_MAX)};
  };
  Fullest fullest;
  Gathered gathered = LACUNA_TRY(gather(acceptor, plan, check, fullest));
  acceptor.close();
  const auto together = [&, here = machine(plan)](const Member& member) {
    const Claim claim = member.socket ? claim_of(member.request) : Claim{.user = geteuid(), .machine = here};
    return claim.machine == here && claim.user == geteuid();
  };
  if (!std::ranges::all_of(gathered.members, together)) return host_mesh(std::move(gathered), plan);

  const Message name{.kind = MessageKind::name, .value = 0, .bytes = fresh_name(), .file = {}};
  for (const Member& member : gathered.members) {
    if (!member.socket) continue;
    if (Result<void> sent = send(member.socket.get(), name, plan.deadline); !sent)
      return std::unexpected(give_up(gathered, std::move(sent).error()));
  }
  return connect_by_name(name.bytes, plan);
}

// --- the other ranks ---

// The group; nothing if rank 0 left before it was complete, or is not there; `reason` says which.
Result<std::optional<Group>> join(const Endpoint& endpoint, const Secret& secret, const BootstrapPlan& plan, Fullest& fullest,
                                  std::string& reason) {
  const std::int64_t attempt = std::min(plan.deadline, base::now_ns() + kAttemptNs);
  Result<base::Fd> connected = connect_to(endpoint, attempt);
  if (!connected) {
    reason = connected.error().message;
    return std::nullopt;
  }
  MeshMember self{.control = std::move(*connected), .listener = {}, .claim = {}};
  Endpoint near = LACUNA_TRY(near_end(self.control.get()));
  near.set_port(0);
  self.listener = LACUNA_TRY(listen_at(near));
  const Endpoint listening = LACUNA_TRY(near_end(self.listener.get()));
  self.claim = {.size = static_cast<std::uint32_t>(plan.size),
                .rank = static_cast<std::uint32_t>(plan.rank),
                .to = 0,
                .user = geteuid(),
                .port = listening.port(),
                .machine = machine(plan),
                .group_id = std::string(kDigestBytes, '\0')};
  if (const Result<void> known = introduce(self.control.get(), secret, self.claim, attempt); !known) {
    reason = fmt::format("{}: {}", endpoint.text(), known.error().message);
    if (known.error().code == Code::permission) return base::fail(Code::permission, reason);
    return std::nullopt;
  }
  for (;;) {
    const Result<Message> message = receive(self.control.get(), plan.deadline);
    if (!message && message.error().code == Code::malformed) return std::unexpected(message.error());
    if (!message) {
      reason = fmt::format("{}: {}", endpoint.text(), message.error().message);
      return std::nullopt;
    }
    switch (message->kind) {
      case MessageKind::status: fullest.note(message->value, told_text(*message)); break;
      case MessageKind::refused:
      case MessageKind::failed: return std::unexpected(told_error(*message));
      case MessageKind::name:
        if (!message->bytes.starts_with(kFreshName))
          return base::fail(Code::malformed, fmt::format("rank 0 at {} gave an invalid name", endpoint.text()));
        return LACUNA_TRY(connect_by_name(message->bytes, plan));
      case MessageKind::mesh: return LACUNA_TRY(join_mesh(std::move(self), secret, message->bytes, plan));
      default: return base::fail(Code::malformed, fmt::format("rank 0 at {} said what was not expected", endpoint.text()));
    }
  }
}

}  // namespace

Result<Group> connect_by_tcp(std::string_view address, std::string_view secret, const BootstrapPlan& plan) {
  const std::vector<Endpoint> endpoints = LACUNA_TRY(nic::tcp::resolve(address));
  const Secret shared = LACUNA_TRY(Secret::create(secret));
  if (plan.rank == 0) return host(endpoints, shared, plan);
  Fullest fullest;
  std::string reason;
  for (std::size_t attempt = 0; base::now_ns() < plan.deadline; ++attempt) {
    std::optional<Group> group = LACUNA_TRY(join(endpoints[attempt % endpoints.size()], shared, plan, fullest, reason));
    if (group) return std::move(*group);
    pause_until(std::min(plan.deadline, base::now_ns() + kRetryNs));
  }
  return std::unexpected(fullest.timeout(fmt::format("rank 0 of the group at {}: {}", plan.where, reason)));
}

}  // namespace lacuna::protocol::bootstrap
