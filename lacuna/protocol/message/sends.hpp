// Sends: small ones go into the channel, large ones by a stream, or by an announcement.
#pragma once

#include "lacuna/protocol/message/rendezvous_transfers.hpp"
#include "lacuna/protocol/message/self_messages.hpp"
#include "lacuna/protocol/message/stream_transfers.hpp"

namespace lacuna::protocol {

class Sends {
 public:
  Sends(LocalRank& local, Completion& completion, SelfMessages& self, StreamTransfers& streams, RendezvousTransfers& rendezvous)
      : local_(local), completion_(completion), self_(self), streams_(streams), rendezvous_(rendezvous) {}

  /// Sends a small message at once, and needs no request for it. False: it is not small, or there is no room.
  bool send_small(Peer& peer, const void* base, const Layout& layout, int tag) {
    return peer.channel != nullptr && !streams_.preferred(peer, layout.size()) && send_eager(peer, base, layout, tag);
  }
  /// Begins a send that did not go at once. Errors: those of Context::allocate, register_memory and transpack.
  Result<void> begin(Request& send);
  /// Sends what waits for room in the peer's channel; true if something went.
  bool flush(Peer& peer);

 private:
  bool send_eager(Peer& peer, const void* base, const Layout& layout, int tag);
  void announce(Peer& peer, Request& send);
  LocalRank& local_;
  Completion& completion_;
  SelfMessages& self_;
  StreamTransfers& streams_;
  RendezvousTransfers& rendezvous_;
};

}  // namespace lacuna::protocol
