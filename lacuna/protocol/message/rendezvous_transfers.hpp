// Requests that travel by rendezvous (rendezvous/rendezvous.hpp has the flow): the receiver cuts them into parts and
// answers, methods move the parts.
#pragma once

#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class RendezvousTransfers {
 public:
  RendezvousTransfers(LocalRank& local, Completion& completion, Registrations& registrations, Choices& choices)
      : local_(local), completion_(completion), registrations_(registrations), choices_(choices) {}

  /// What the announcement of a send says of its memory.
  Announce announce(Peer& peer, Request& send);
  /// A matched receive of a message that was announced.
  void receive(Peer& peer, Request& receive, const Unexpected& message);
  /// What the peer says. Errors: malformed.
  Result<void> take_answer(Peer& peer, Request& send, const Answer& answer, std::span<const std::byte> target);
  Result<void> take_part(Peer& peer, const Channel::Arrival& arrival);
  Result<void> take_ready(Peer& peer, const Channel::Arrival& arrival);
  /// Moves the transfers of one direction on; true if something moved. Errors, of the peer. An error of one transfer
  /// alone ends that one, as long as the peer does not rely on it.
  Result<bool> advance(Peer& peer, method::Role role);
  /// Nothing may stand for a part of this region any more. Errors: the first of RendezvousLine::forget(), except of
  /// peers that are gone.
  Result<void> forget(const nic::Region& region);

 private:
  Result<void> cut(RendezvousTransfer& now);
  Result<void> make_part(Peer& peer, RendezvousTransfer& now, method::Role role);
  Result<bool> take_memory(RendezvousTransfer& now, MovingPart& part, method::Role role);
  Result<void> prepare(Peer& peer, RendezvousTransfer& now, MovingPart& part, method::Role role, const method::Transfer& layouts);
  Result<bool> make_next(Peer& peer, RendezvousTransfer& now, method::Role role);
  Result<bool> move_part(Peer& peer, RendezvousTransfer& now, MovingPart& part, method::Role role);
  void end_part(RendezvousTransfer& now, MovingPart& part, method::Role role);
  Result<void> tell_part(Peer& peer, RendezvousTransfer& now, const MovingPart& part, const method::Target& target, method::Role role);
  void drop(Peer& peer, std::uint32_t number, base::Code code);
  void count(const guide::Way& way, std::int64_t bytes);

  LocalRank& local_;
  Completion& completion_;
  Registrations& registrations_;
  Choices& choices_;
};

}  // namespace lacuna::protocol
