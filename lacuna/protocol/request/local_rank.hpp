// What all parts of a communicator share at this rank.
#pragma once

#include <deque>
#include <ranges>
#include <string_view>
#include <vector>

#include "lacuna/protocol/request/peer.hpp"

namespace lacuna::protocol {

struct LocalRank {
  LocalRank(nic::Context& of, int own, int ranks, Options wanted)
      : context(of), rank(own), options(std::move(wanted)), pool(of, options.shared_bytes_of(ranks), options.idle_thread) {}

  nic::Context& context;
  const int rank;
  Options options;
  RingPool pool;  ///< before `peers`, whose rings it has
  Statistics statistics;
  Matcher matcher;
  std::unique_ptr<HubChannels> hub;  ///< of a group that the NIC connects when two ranks first talk; before `peers`
  /// By rank. Null, of a hub: nothing was said to it, or by it.
  std::vector<std::unique_ptr<Peer>> peers;
  // Of a hub, the peers of which there is something to do.
  std::deque<Peer*> queued;      ///< something waits in the outbox; in this order
  std::vector<Peer*> moving;     ///< a message is under way
  std::vector<nic::Card> cards;  ///< of a group that has these instead of connections; by rank
  RequestPool requests;
  std::optional<base::Error> lost;  ///< why the first peer is lost

  [[nodiscard]] int size() const { return static_cast<int>(peers.size()); }
  [[nodiscard]] Peer& peer(int number) {
    Peer* const known = peers[static_cast<std::size_t>(number)].get();
    return known != nullptr ? *known : make(number);
  }
  /// Those that there are.
  [[nodiscard]] auto known() const {
    return peers | std::views::filter([](const auto& peer) { return peer != nullptr; }) |
           std::views::transform([](const auto& peer) -> Peer& { return *peer; });
  }
  Peer& make(int number);
  /// Something waits in its outbox.
  void queue(Peer& peer) {
    if (hub != nullptr && !std::exchange(peer.queued, true)) queued.push_back(&peer);
  }
  /// A message begins to move.
  void move(Peer& peer) {
    if (hub != nullptr && !std::exchange(peer.moving, true)) moving.push_back(&peer);
  }

  /// Reaches a peer of a group of cards, if this rank has not yet. Errors: those of Context::attach.
  Result<void> attach(Peer& peer);

  /// Connects a line over the hub, before the first message that goes by it. Errors: those of Hub::connect.
  Result<void> connect_line(Peer& peer, bool sends);

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
