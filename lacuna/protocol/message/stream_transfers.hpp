// Requests whose bytes travel by a stream: packed into a ring and unpacked out of it, or copied directly.
#pragma once

#include "lacuna/protocol/choice/choice.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class StreamTransfers {
 public:
  StreamTransfers(LocalRank& local, Completion& completion) : local_(local), completion_(completion) {}

  /// Whether a message to that peer can go by a stream.
  [[nodiscard]] bool possible(const Peer& peer) const {
    return peer.channel->shares_memory() && local_.options.force.method == nullptr && !local_.options.force.path;
  }
  /// What the choice has to know of a message to a peer that shares memory.
  [[nodiscard]] static MessageWays::Situation situation(const Peer& peer) { return {.copies = peer.copies}; }
  /// How a message goes whose way is a stream or a direct copy: what is chosen comes first, and others are tried now
  /// and then, unless it is forced.
  [[nodiscard]] static Transit transit(Peer& peer, const Layout& layout, const MessageWays::Chosen& chosen,
                                       Advice advice = Advice::impossible);
  /// Forces the stores of all peers, or lets them be learned.
  void force_stores();

  /// A send, into a ring that was taken for it. `answer`: the number of the answer that it follows, or 0.
  Result<void> begin(Peer& peer, Request& send, StreamRing& ring, std::uint32_t answer);
  /// A matched receive of a stream.
  void receive(Peer& peer, Request& receive, const Head& head, InStream stream);
  /// The peer streams what an answer asked for. Errors: malformed.
  Result<void> take_expected(Peer& peer, const Head& head, const RingDescriptor& ring);
  /// Moves all streams of a peer on; true if something moved. Errors, of the peer: malformed.
  Result<bool> advance(Peer& peer);
  /// Packs as much of a send as its ring has room for. Errors: as advance().
  Result<bool> pack(Peer& peer, Request& send);

  /// Whether a direct copy of this layout's runs may be faster. Forces hold for every layout.
  [[nodiscard]] bool may_gain_directly(const Layout& layout) const;
  /// Offers a direct copy of a send whose ring was taken for that.
  void offer_directly(Peer& peer, const Request& send, OutStream& out);

 private:
  void take_directly(Peer& peer, Request& receive, InStream& in);
  Result<bool> copy_out(Peer& peer, Request& send, OutStream& out);
  Result<bool> unpack(Request& receive, InStream& in);
  LocalRank& local_;
  Completion& completion_;
};

}  // namespace lacuna::protocol
