// What a rank keeps of each peer.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/rendezvous/rendezvous.hpp"
#include "lacuna/protocol/request/requests.hpp"
#include "lacuna/protocol/stream/stream.hpp"

namespace lacuna::protocol {

/// What waits for room in a channel: a head with its payload, or a small send.
struct QueuedHead {
  Head head;
  std::vector<std::byte> payload;
  Request* eager = nullptr;
};

/// Streams to and from a peer.
struct PeerStreams {
  StreamRings rings;
  Stores stores;
  Transits transits;
  SeenRings seen;
  DirectLayouts layouts;
  std::vector<Request*> sending;    ///< being packed
  std::vector<Request*> receiving;  ///< being unpacked
  std::list<Request*> for_rings;    ///< answered sends that wait for a ring
};

/// Messages, by number, that wait for an answer of the peer, or for what an answer asked it for.
struct PeerAnnouncements {
  std::unordered_map<std::uint32_t, Request*> announced;
  std::unordered_map<std::uint32_t, Request*> expected;
  std::uint32_t numbers = 0;  ///< given so far
  std::int64_t waiting = 0;   ///< the peer's announcements that no receive took
};

/// Puts and gets.
struct PeerAccesses {
  /// Of this end, of which the peer has said nothing yet; by number
  std::unordered_map<std::uint32_t, Request*> begun;
  std::size_t served = 0;  ///< of the peer, under way
};

struct Peer {
  int rank = 0;
  std::unique_ptr<nic::Bootstrap> bootstrap;
  std::unique_ptr<Channel> channel;  ///< null: this is the own rank
  std::list<QueuedHead> outbox;
  std::optional<base::Error> lost;
  bool left = false;                    ///< the peer said that nothing follows
  bool queued = false, moving = false;  ///< it is in the list of that name (LocalRank)
  bool copies = false;                  ///< copying() is there, as it was when the peer was connected

  Credit credit;
  LayoutsTold told;
  LayoutsHeard heard;
  PeerStreams streams;
  PeerAnnouncements announcements;
  PeerAccesses accesses;
  RendezvousLine outgoing, incoming;

  /// Copies directly between the two processes' memory. Null: this system has nothing that does.
  [[nodiscard]] nic::QueuePair* copying(bool sends) const {
    nic::QueuePair* const own = channel->copying();
    return own != nullptr ? own : (sends ? outgoing : incoming).copying();
  }
  /// No message is under way, though one may arrive.
  [[nodiscard]] bool idle() const {
    return streams.sending.empty() && streams.receiving.empty() && streams.for_rings.empty() && outgoing.transfers.empty() &&
           incoming.transfers.empty();
  }
};

}  // namespace lacuna::protocol
