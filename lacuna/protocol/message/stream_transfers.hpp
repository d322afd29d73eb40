// Requests whose bytes travel by a stream: packed into a ring and unpacked out of it, or copied directly.
#pragma once

#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class StreamTransfers {
 public:
  StreamTransfers(LocalRank& local, Completion& completion) : local_(local), completion_(completion) {}

  /// Whether a message that is too long for a small one goes by a stream (docs/design/messages.md says what that was
  /// compared with).
  [[nodiscard]] bool possible(const Peer& peer) const {
    return peer.channel->shares_memory() && local_.options.force.method == nullptr && !local_.options.force.path;
  }
  /// Whether it does so if a ring is free, even if it is a small message: from 2 KiB on it is with the receiver sooner.
  [[nodiscard]] bool preferred(const Peer& peer, std::int64_t bytes) const {
    return possible(peer) && bytes > std::min(local_.options.eager_bytes, guide::usual::kStreamedBytes);
  }

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
  /// Takes a direct copy that the sender offers, or refuses it.
  void take_directly(Peer& peer, Request& receive, InStream& in);

 private:
  Result<bool> copy_out(Peer& peer, Request& send, OutStream& out);
  Result<bool> unpack(Request& receive, InStream& in);
  LocalRank& local_;
  Completion& completion_;
};

}  // namespace lacuna::protocol
