// rendezvous: a message whose bytes a device or the kernel moves, after both ends have said where their memory is. It
// hides endpoints, staging memory, and the state of parts that are under way.
//
//   sender                                   receiver
//   announce: bytes, its layout ───────────▶ matched; cuts it into parts (choice); chooses the first one's way
//      ◀──────────────────────────────────── answer: the cut, the way, its layout, its target
//   prepares; ready: its target ───────────▶ (where the receiver reaches into the sender's memory)
//   start ══════════ the method ═══════════▶ start
//      ◀──────────────────────────────────── part: the next one's way and target, while the first one moves
//   ...
//
// Transfers of one direction between two ranks go one after the other, in the order of the answers. Of one transfer, as
// many parts are under way as the path has endpoints, each of which runs one operation at a time. Part k goes over
// endpoint k modulo their number.
//
// Where the layouts do not fit one another (a receive that is longer or shorter than its message, a layout too long to
// be told), that end packs into, or unpacks out of, memory of its own, as it does with the parts that are to be copied.
//
// message/rendezvous_transfers.hpp moves requests by it. A rendezvous of another kind stands beside it: rget.hpp, by
// RDMA READ of packed memory, for messages that another library announces and matches.
#pragma once

#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/guide/guide.hpp"
#include "lacuna/method/method.hpp"
#include "lacuna/protocol/choice/choice.hpp"
#include "lacuna/protocol/registration/registration.hpp"

namespace lacuna::protocol {

/// What a receiver said of a part.
struct PartAnswer {
  guide::Way way;
  method::Target target;
  bool copied = false;
};

/// One end of one part that is under way.
struct MovingPart {
  std::uint32_t index = 0;
  guide::Way way;
  Layout own;                 ///< what is moved here,
  std::byte* base = nullptr;  ///< from here on
  bool copied = false;
  method::Target target;  ///< the other end's
  bool target_came = false;
  bool told = false;  ///< the own target went
  bool started = false;
  std::uint32_t trial = 0;  ///< of the learner
  std::int64_t begun_ns = 0;
  Registrations::Lease lease;
  std::unique_ptr<method::Operation> operation;

  /// Whether the receiver reaches into the sender's memory, so that it has to know the sender's target.
  [[nodiscard]] bool pulls() const { return way.method->one_sided() && way.method->initiator == method::Role::receiver; }
};

/// One end of one message by rendezvous.
struct RendezvousTransfer {
  Request* request = nullptr;
  std::uint32_t peer_number = 0;
  std::uint32_t own_number = 0;  ///< of the own layout, as it was told; 0: it was not
  std::optional<Layout> theirs;  ///< the other end's layout, if it told it
  bool theirs_shared = false;
  bool theirs_known = false;  ///< its memory is registered
  bool unfit = false;         ///< at the receiver: its own memory cannot be registered
  /// At the receiver: both ends' memory is registered, so that keys may be bound to it already
  bool known = false;
  Cut cut;                       ///< the receiver makes it
  std::uint32_t made = 0;        ///< parts that are, or were, under way
  std::deque<MovingPart> parts;  ///< under way, by index
  std::deque<PartAnswer> said;   ///< at the sender: of parts from `made` on
};

/// Parts of a message that are under way over a path whose bytes a device moves: while one flies, the next one is
/// registered.
inline constexpr std::size_t kPartsAtOnce = 2;

/// All transfers of one direction with one peer, at one end.
class RendezvousLine {
  /// One endpoint of a path, and the memory for what is copied over it.
  struct Lane {
    nic::RegisteredBuffer staging;  // before the endpoint, whose keys may stand for it
    std::unique_ptr<method::Endpoint> endpoint;
  };
  std::vector<Lane> lanes_;  // before `transfers`: operations end before their endpoint does

 public:
  /// Makes one of its endpoints; they are numbered from 0 on.
  using Connect =
      std::function<Result<std::unique_ptr<method::Endpoint>>(nic::Path path, int number, const method::Endpoint::Options& options)>;
  /// Both ends make their endpoints in the same order. Errors: those of `make`.
  Result<void> connect(const nic::Limits& limits, const Connect& make);
  [[nodiscard]] bool connected() const { return !lanes_.empty(); }
  /// Ends all transfers, and the connection: from now on the peer reaches none of their memory.
  void end() {
    transfers.clear();
    lanes_.clear();
  }
  /// The path's endpoint for this part. Null if there is no such path.
  [[nodiscard]] method::Endpoint* endpoint(nic::Path path, std::uint32_t part) const;
  [[nodiscard]] std::size_t endpoints(nic::Path path) const;
  /// Registered memory for a part that is copied. Errors: those of RegisteredBuffer::create(), and of
  /// Endpoint::forget().
  Result<const nic::RegisteredBuffer*> staging(nic::Path path, std::uint32_t part, std::int64_t bytes, std::int64_t timeout_ns);
  /// Before a region goes. Errors: the first of Endpoint::forget().
  Result<void> forget(const nic::Region& region, std::int64_t timeout_ns);

  /// The queue pair that copies directly between two processes' memory. Null: this system has none.
  [[nodiscard]] nic::QueuePair* copying() const;

  std::list<RendezvousTransfer> transfers;  ///< the first one is under way

 private:
  [[nodiscard]] const Lane* lane(nic::Path path, std::uint32_t part) const;
};

}  // namespace lacuna::protocol
