// A rendezvous: both ends know both layouts, and a method moves the bytes.
//
//   sender                                   receiver
//   announce: bytes, its layout ───────────▶ matched; guide chooses; prepare
//      ◀──────────────────────────────────── answer: the way, its layout, its target
//   prepare; ready: its target ────────────▶ (where the receiver reaches into the sender's memory)
//   start ══════════ the method ═══════════▶ start
//
// Transfers of one direction between two ranks go one after the other, in the order of the answers: an endpoint runs one operation at a time.
// Where layouts do not fit one another (a receive that is longer or shorter than its message, a layout too long to be told), that end packs
// into, or unpacks out of, one piece of memory.
#pragma once

#include <deque>

#include "lacuna/method/method.hpp"
#include "lacuna/protocol/request.hpp"

namespace lacuna::protocol {

/// One end of one transfer.
struct Carried {
  Request* request = nullptr;
  std::uint32_t peer_number = 0;
  std::uint32_t own_number = 0;  ///< of the own layout, as it was told; 0: it was not
  std::byte* base = nullptr;     ///< of what the operation moves
  std::optional<Layout> theirs;  ///< the other end's layout, if it told it
  bool theirs_shared = false;
  guide::Way way;
  method::Target target;  ///< the other end's
  bool target_came = false;
  bool told = false;  ///< the own target went
  bool started = false;
  nic::Region region;           ///< registered for this transfer,
  nic::RegisteredBuffer piece;  ///< or where the own layout cannot be used
  std::unique_ptr<method::Operation> operation;

  /// Whether the receiver reaches into the sender's memory, so that it has to know the sender's target.
  [[nodiscard]] bool pulls() const {
    return way.method != nullptr && way.method->one_sided() && way.method->initiator == method::Role::receiver;
  }
};

/// All transfers of one direction with one peer, at one end.
class Line {
  std::vector<std::unique_ptr<method::Endpoint>> endpoints_;  // operations end before their endpoint does

 public:
  /// The peer at the same time. Errors: those of Endpoint::connect().
  Result<void> connect(nic::Context& context, nic::Bootstrap& bootstrap);
  [[nodiscard]] method::Endpoint* endpoint(nic::Path path) const;

  /// Null: this system lets nobody copy past the queues.
  [[nodiscard]] nic::QueuePair* copying() const;

  std::deque<Carried> carried;  ///< the first one is under way
};

}  // namespace lacuna::protocol
