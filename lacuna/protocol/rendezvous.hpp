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
};

/// All transfers of one direction with one peer, at one end.
class Line {
 public:
  /// The peer at the same time. Errors: those of Endpoint::connect().
  Result<void> connect(nic::Context& context, nic::Bootstrap& bootstrap);
  [[nodiscard]] method::Endpoint* endpoint(nic::Path path) const;

  std::deque<Carried> carried;  ///< the first one is under way

 private:
  std::vector<std::unique_ptr<method::Endpoint>> endpoints_;
};

}  // namespace lacuna::protocol
