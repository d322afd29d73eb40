// offer: messages that another library, an MPI for example, announces and matches: only their bytes go by a stream. It
// hides where an offer is packed whose sender may not wait for its receiver.
//
//   sender     offer(): a ring, a ticket ──── the ticket, by whatever means ────▶ accept()   receiver
//   then       test(), wait(): packed as the ring empties  ◀─────────────────────  unpacked as it fills
//   or         leave(): all the rest is packed at once, into extra rings, and the sender goes on
#pragma once

#include "lacuna/protocol/progress/progress.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class Offers {
 public:
  Offers(LocalRank& local, Completion& completion, Choices& choices, StreamTransfers& streams, Progress& progress)
      : local_(local), completion_(completion), choices_(choices), streams_(streams), progress_(progress) {}

  // As Communicator's.
  Result<Request*> offer(const void* base, const Layout& layout, int dest, Behind behind, Ticket& ticket);
  void set_aside(Request* offer);
  void pack(Request* offer);
  Result<void> leave(Request* offer);
  Result<Request*> accept(void* base, const Layout& layout, int source, std::int64_t bytes, const Ticket& ticket);
  /// Of an offer whose ticket was not given away; false: it is done.
  bool take_back(Request* offer);

 private:
  Result<Peer*> sharing(int rank, std::int64_t bytes);
  [[nodiscard]] Transit forced_transit(Peer& peer, const Layout& layout, bool may_copy);
  [[nodiscard]] Transit transit_for(Peer& peer, const Layout& layout, Behind behind);
  [[nodiscard]] base::Error no_room(std::int64_t bytes, int rank) const;
  Result<RingHold> ring_for(Peer& peer, const Layout& layout, Behind behind);
  Result<std::vector<RingHold>> rings_for_rest(Peer& peer, const OutStream& out, std::int64_t bytes);
  bool take_up(Peer& peer, Request& offer, const Stores& aside);
  Result<void> move_on(Peer& peer, Request& offer, OutStream& out);
  LocalRank& local_;
  Completion& completion_;
  Choices& choices_;
  StreamTransfers& streams_;
  Progress& progress_;
};

}  // namespace lacuna::protocol
