// What a peer says goes to the part of the communicator that it is for.
#pragma once

#include "lacuna/protocol/access/access.hpp"
#include "lacuna/protocol/message/message.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class Dispatch {
 public:
  Dispatch(Completion& completion, Receives& receives, StreamTransfers& streams, RendezvousTransfers& rendezvous, Accesses& accesses)
      : completion_(completion), receives_(receives), streams_(streams), rendezvous_(rendezvous), accesses_(accesses) {}

  /// Errors: malformed, and others after which the peer is lost.
  Result<void> take(Peer& peer, const Channel::Arrival& arrival);

 private:
  Result<void> take_answer(Peer& peer, const Channel::Arrival& arrival);
  Result<void> take_dropped(Peer& peer, const Head& head);
  Completion& completion_;
  Receives& receives_;
  StreamTransfers& streams_;
  RendezvousTransfers& rendezvous_;
  Accesses& accesses_;
};

}  // namespace lacuna::protocol
