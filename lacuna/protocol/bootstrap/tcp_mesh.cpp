#include "lacuna/protocol/bootstrap/tcp_mesh.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace lacuna::protocol::bootstrap {
namespace {

using base::Code;
using nic::tcp::connect_to;
using nic::tcp::Endpoint;
using nic::tcp::far_end;
using nic::tcp::kHostBytes;
using nic::tcp::near_end;
using nic::tcp::random_bytes;
using nic::tcp::send_at_once;
using nic::tcp::TcpBootstrap;

constexpr std::size_t kEntryBytes = kHostBytes + sizeof(std::uint32_t);
constexpr std::int64_t kRetryNs = 5'000'000;
constexpr std::int64_t kReasonNs = 200'000'000;

Group group_of(int rank, std::vector<base::Fd> sockets) {
  Group group{.rank = rank, .peers = {}, .one_machine = false};
  for (base::Fd& socket : sockets) {
    group.peers.emplace_back();
    if (socket) group.peers.back() = std::make_unique<TcpBootstrap>(std::move(socket));
  }
  return group;
}

// Each connects to those of lower rank, and then hears those of higher rank. Rank 1 hears at once, so no ranks wait in
// a circle.
class Joining {
 public:
  Joining(MeshMember member, const Secret& secret, const BootstrapPlan& plan)
      : member_(std::move(member)), secret_(secret), plan_(plan), sockets_(static_cast<std::size_t>(plan.size)) {}

  Result<Group> run(std::string_view told) {
    Result<void> connected = connect_all(told);
    if (!connected) return std::unexpected(give_up(std::move(connected).error()));
    tell(member_.control.get(), {.kind = MessageKind::done});  // if rank 0 has given up and gone, it has said why
    LACUNA_TRY(hear_rank_0(MessageKind::go));
    sockets_[0] = std::move(member_.control);
    return group_of(plan_.rank, std::move(sockets_));
  }

 private:
  Result<void> connect_all(std::string_view told) {
    if (told.size() != kDigestBytes + static_cast<std::size_t>(plan_.size - 1) * kEntryBytes)
      return base::fail(Code::malformed, "rank 0 told where to find another number of processes than there are");
    member_.claim.group_id = take(told, kDigestBytes);
    for (int rank = 1; rank < plan_.rank; ++rank) {
      Endpoint endpoint = LACUNA_TRY(near_end(member_.control.get()));  // of the same family
      endpoint.set_host(take(told, kHostBytes));
      endpoint.set_port(static_cast<std::uint16_t>(take(told)));
      Result<base::Fd> socket = connect_to_rank(rank, endpoint);
      if (!socket) return base::fail(socket.error().code, fmt::format("rank {} at {}: {}", rank, endpoint.text(), socket.error().message));
      sockets_[static_cast<std::size_t>(rank)] = std::move(*socket);
    }
    return accept_higher();
  }

  Result<base::Fd> connect_to_rank(int rank, const Endpoint& endpoint) {
    member_.claim.to = static_cast<std::uint32_t>(rank);
    for (;;) {
      base::Fd socket = LACUNA_TRY(connect_to(endpoint, plan_.deadline));  // it listens unless it is gone
      const Result<void> known = introduce(socket.get(), secret_, member_.claim, plan_.deadline);
      if (known) return socket;
      if (known.error().code != Code::peer_lost || base::now_ns() >= plan_.deadline) return std::unexpected(known.error());
      pause_until(std::min(plan_.deadline, base::now_ns() + kRetryNs));  // it dropped this process as too slow
    }
  }

  Result<void> accept_higher() {
    Acceptor acceptor(std::move(member_.listener), kTcpRequestBytes, static_cast<std::size_t>(plan_.size) + 64, challenge);
    const auto missing = [&] {
      return std::any_of(sockets_.begin() + plan_.rank + 1, sockets_.end(), [](const base::Fd& socket) { return !socket; });
    };
    while (missing()) {
      if (base::now_ns() >= plan_.deadline) return base::fail(Code::timeout, "not all processes connected to one another in time");
      pollfd control{member_.control.get(), POLLIN, 0};
      std::optional<Caller> caller = LACUNA_TRY(acceptor.next({&control, 1}, plan_.deadline));
      if (control.revents != 0) LACUNA_TRY(hear_rank_0(MessageKind::failed));
      if (!caller) continue;
      const Result<Claim> claim = verify(secret_, *caller);
      if (!claim || !expected(*claim)) continue;
      send_at_once(caller->socket.get());
      // In the place of an earlier one, which the other end has given up
      sockets_[claim->rank] = std::move(caller->socket);
    }
    return {};
  }

  [[nodiscard]] bool expected(const Claim& claim) const {
    return claim.group_id == member_.claim.group_id && std::cmp_equal(claim.size, plan_.size) && std::cmp_equal(claim.to, plan_.rank) &&
           std::cmp_greater(claim.rank, plan_.rank) && std::cmp_less(claim.rank, plan_.size);
  }

  // Rank 0 tells the others. It may know better why: one that is gone may be gone since it was told so.
  base::Error give_up(base::Error error) {
    const int control = member_.control.get();
    tell(control, refusal(MessageKind::failed, error));
    if (error.code != Code::peer_lost) return error;
    const Result<Message> told = receive(control, std::min(plan_.deadline, base::now_ns() + kReasonNs));
    return told && told->kind == MessageKind::failed ? told_error(*told) : error;
  }

  Result<void> hear_rank_0(MessageKind kind) {
    const Result<Message> message = receive(member_.control.get(), plan_.deadline);
    if (!message)
      return base::fail(message.error().code, fmt::format("rank 0, while all were being connected: {}", message.error().message));
    if (message->kind == MessageKind::failed) return std::unexpected(told_error(*message));
    if (message->kind != kind) return base::fail(Code::malformed, "rank 0 said what was not expected");
    return {};
  }

  MeshMember member_;
  const Secret& secret_;
  const BootstrapPlan& plan_;
  std::vector<base::Fd> sockets_;  // by rank
};

Result<void> tell_mesh(const Gathered& gathered, std::int64_t deadline) {
  Message mesh{.kind = MessageKind::mesh, .value = 0, .bytes = random_bytes(kDigestBytes), .file = {}};
  for (const Member& member : gathered.members) {
    if (!member.socket) continue;
    const Endpoint far = LACUNA_TRY(far_end(member.socket.get()));
    mesh.bytes += far.host();
    put(mesh.bytes, claim_of(member.request).port);
  }
  for (const Member& member : gathered.members)
    if (member.socket) LACUNA_TRY(send(member.socket.get(), mesh, deadline));
  return conclude(gathered, deadline);
}

}  // namespace

Result<Group> host_mesh(Gathered gathered, const BootstrapPlan& plan) {
  if (Result<void> connected = tell_mesh(gathered, plan.deadline); !connected)
    return std::unexpected(bootstrap::give_up(gathered, std::move(connected).error()));
  std::vector<base::Fd> sockets;
  sockets.reserve(gathered.members.size());
  for (Member& member : gathered.members) sockets.push_back(std::move(member.socket));
  return group_of(gathered.rank, std::move(sockets));
}

Result<Group> join_mesh(MeshMember member, const Secret& secret, std::string_view told, const BootstrapPlan& plan) {
  return Joining(std::move(member), secret, plan).run(told);
}

}  // namespace lacuna::protocol::bootstrap
