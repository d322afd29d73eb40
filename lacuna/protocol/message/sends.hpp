// Sends: which way a message goes, and how it starts.
#pragma once

#include "lacuna/protocol/message/rendezvous_transfers.hpp"
#include "lacuna/protocol/message/self_messages.hpp"
#include "lacuna/protocol/message/stream_transfers.hpp"

namespace lacuna::protocol {

class Sends {
 public:
  using Chosen = MessageWays::Chosen;
  Sends(LocalRank& local, Completion& completion, MessageWays& ways, SelfMessages& self, StreamTransfers& streams,
        RendezvousTransfers& rendezvous)
      : local_(local), completion_(completion), ways_(ways), self_(self), streams_(streams), rendezvous_(rendezvous) {}

  /// Sends a message at once if its way is eager, and needs no request for it. Its way if it did not go.
  std::optional<Chosen> send_small(Peer& peer, const void* base, const Layout& layout, int tag) {
    if (peer.channel == nullptr) return Chosen{};
    const Chosen chosen = choose(peer, layout);
    if (chosen.way == MessageWay::eager && send_eager(peer, base, layout, tag)) return std::nullopt;
    return chosen;
  }
  /// Begins a send that did not go at once. Errors: those of Context::allocate, register_memory and transpack.
  Result<void> begin(Request& send, const Chosen& chosen);
  /// Sends what waits for room in the peer's channel; true if something went.
  bool flush(Peer& peer);

 private:
  [[nodiscard]] Chosen choose(const Peer& peer, const Layout& layout) {
    const std::int64_t bytes = layout.size();
    if (bytes < ways_.least()) return {};
    if (peer.channel->shares_memory()) return ways_.choose(layout, streams_.situation(peer));
    return {.way = bytes <= local_.options.eager_bytes ? MessageWay::eager : MessageWay::rendezvous};
  }
  // How each way starts.
  Result<void> start_eager(Peer& peer, Request& send, const Chosen& chosen);
  Result<void> start_stream(Peer& peer, Request& send, const Chosen& chosen);
  Result<void> start_rendezvous(Peer& peer, Request& send, const Chosen& chosen);
  bool send_eager(Peer& peer, const void* base, const Layout& layout, int tag);
  void announce(Peer& peer, Request& send, bool by_stream);
  LocalRank& local_;
  Completion& completion_;
  MessageWays& ways_;
  SelfMessages& self_;
  StreamTransfers& streams_;
  RendezvousTransfers& rendezvous_;
};

}  // namespace lacuna::protocol
