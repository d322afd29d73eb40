// What all parts of a communicator share at this rank.
#pragma once

#include <string_view>
#include <vector>

#include "lacuna/protocol/request/peer.hpp"

namespace lacuna::protocol {

struct LocalRank {
  LocalRank(nic::Context& of, int own, int ranks, Options wanted)
      : context(of),
        rank(own),
        options(std::move(wanted)),
        pool(of, options.shared_bytes > 0 ? options.shared_bytes : usual_shared_bytes(ranks)) {}

  nic::Context& context;
  const int rank;
  Options options;
  RingPool pool;  ///< before `peers`, whose rings it has
  Statistics statistics;
  Matcher matcher;
  std::vector<Peer> peers;
  std::vector<nic::Card> cards;  ///< of a group that has these instead of connections; by rank
  RequestPool requests;

  [[nodiscard]] int size() const { return static_cast<int>(peers.size()); }
  [[nodiscard]] Peer& peer(int number) { return peers[static_cast<std::size_t>(number)]; }
  [[nodiscard]] const Peer& peer(int number) const { return peers[static_cast<std::size_t>(number)]; }

  /// Reaches a peer of a group of cards, if this rank has not yet. Errors: those of Context::attach.
  Result<void> attach(Peer& peer);

  /// For tests that end a process here.
  void step(std::string_view name) const {
    if (options.at_step) [[unlikely]]
      options.at_step(name);
  }
  /// Sends a head to a peer now, or behind what waits already.
  void say(Peer& to, Head head, std::span<const std::byte> payload = {});
  /// The number of a layout at a peer, which is told of it if it does not know it. 0: it is too long to be told.
  std::uint32_t tell(Peer& to, const Layout& layout);
  /// A message that no receive takes waits for one.
  void keep_unexpected(std::unique_ptr<Unexpected> message);
};

}  // namespace lacuna::protocol
