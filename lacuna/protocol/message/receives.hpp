// Receives: a message that arrives finds its receive, or waits for it.
#pragma once

#include "lacuna/protocol/message/rendezvous_transfers.hpp"
#include "lacuna/protocol/message/self_messages.hpp"
#include "lacuna/protocol/message/stream_transfers.hpp"

namespace lacuna::protocol {

/// Errors: invalid_argument (the layout names some bytes twice).
Result<void> check_destination(const Layout& layout);

class Receives {
 public:
  Receives(LocalRank& local, Completion& completion, SelfMessages& self, StreamTransfers& streams, RendezvousTransfers& rendezvous)
      : local_(local), completion_(completion), self_(self), streams_(streams), rendezvous_(rendezvous) {}

  /// Errors: invalid_argument (no such rank or tag, an overlapping layout), peer_lost, those of Context::transpack().
  Result<void> begin(Request& receive);
  /// A message that arrives: an eager one, a stream, an announcement. Errors: malformed.
  Result<void> take(Peer& peer, const Channel::Arrival& arrival);

 private:
  Result<void> take_eager(Peer& peer, const Channel::Arrival& arrival);
  Result<void> read(Peer& peer, const Head& head, Unexpected& message);
  Result<void> deliver(Request& receive, Unexpected& message);
  void deliver_eager(Request& receive, int source, const Head& head, const std::byte* data);
  void deliver_announced(Peer& peer, Request& receive, const Unexpected& message);
  void keep_eager(const Peer& peer, const Head& head, const std::byte* data);
  void release(Peer& peer, std::int64_t bytes);
  LocalRank& local_;
  Completion& completion_;
  SelfMessages& self_;
  StreamTransfers& streams_;
  RendezvousTransfers& rendezvous_;
};

}  // namespace lacuna::protocol
