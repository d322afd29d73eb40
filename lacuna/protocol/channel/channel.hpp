// channel: what two ranks say to one another, in order, with nothing lost. It hides whether CPUs share memory
// (ring_channel.cpp), or messages go through queue pairs (queue_channel.cpp) or a hub (hub_channels.hpp). One that this
// end made alone (attached_channel.cpp) carries nothing, but reaches the peer's memory.
//
//   sender     claim(): room for a payload │ write it there │ commit(head) ──▶
//   receiver                                                     ──▶ next(): the oldest head │ pop(): it may go
//
//   head.hpp            what heads and their bodies say
//   credit.hpp          how many bytes of small messages may wait at the other end
//   known_layouts.hpp   layouts that travel once, then by number
//   hub_channels.hpp    channels to all peers of a rank by one hub
#pragma once

#include <memory>

#include "lacuna/nic/nic.hpp"
#include "lacuna/protocol/channel/credit.hpp"
#include "lacuna/protocol/channel/head.hpp"
#include "lacuna/protocol/channel/hub_channels.hpp"
#include "lacuna/protocol/channel/known_layouts.hpp"

namespace lacuna::protocol {

using base::Result;

inline constexpr std::size_t kMostPayload = 16 << 10;

class Channel {
 public:
  using Arrival = Arrived;
  Channel() = default;
  virtual ~Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  /// Room for a head and a payload of up to kMostPayload bytes; null while there is none.
  [[nodiscard]] virtual std::byte* claim(std::size_t bytes) = 0;
  /// Sends what was claimed last; head.payload is as many bytes.
  virtual void commit(Head& head) = 0;
  /// The oldest head that has come; it stays in place until pop(). Errors: malformed (the peer breaks the channel's
  /// rules).
  virtual Result<bool> next(Arrival& arrival) = 0;
  virtual void pop() = 0;
  /// Why nothing more can come or go, once all that came was taken; null while it works.
  [[nodiscard]] virtual const base::Error* fault() = 0;
  /// The peer is lost to this end. Where this end can say so by no head, since a request of it was refused, the peer
  /// hears of it otherwise.
  virtual void give_up() {}
  /// The peer's memory, where this CPU reaches it (QueuePair::rkey_ptr).
  [[nodiscard]] virtual std::byte* rkey_ptr(std::uint64_t addr, std::uint32_t rkey, std::size_t bytes) const = 0;
  /// Memory of this end for which the peer does that (QueuePair::keep).
  virtual void keep(const nic::SharedBuffer& memory) = 0;
  /// Whether it can at all.
  [[nodiscard]] virtual bool shares_memory() const = 0;
  /// Whether heads travel by it. Otherwise claim() has no room ever.
  [[nodiscard]] virtual bool carries() const { return true; }
  /// What copies directly between both processes' memory (QueuePair::copy); null: nothing of this channel's.
  [[nodiscard]] virtual nic::QueuePair* copying() const { return nullptr; }
};

/// Over memory that both CPUs reach; path mapped. Errors: as Context::connect(); unsupported.
Result<std::unique_ptr<Channel>> make_ring_channel(nic::Context& context, nic::Bootstrap& bootstrap);
/// To a process that this one reaches by itself. Errors: those of Context::attach.
Result<std::unique_ptr<Channel>> make_attached_channel(nic::Context& context, const nic::Card& card);
/// Over sends and receives of a queue pair.
Result<std::unique_ptr<Channel>> make_queue_channel(nic::Context& context, nic::Bootstrap& bootstrap, nic::Path path);

}  // namespace lacuna::protocol
