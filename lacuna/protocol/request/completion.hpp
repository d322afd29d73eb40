// How messages end: done, failed, given up, or with the peer that they needed.
#pragma once

#include <functional>

#include "lacuna/protocol/request/local_rank.hpp"

namespace lacuna::protocol {

class Completion {
 public:
  explicit Completion(LocalRank& local) : local_(local) {}

  /// Its bytes are where they should be. A put waits for the peer's word then.
  void done(Request& request);
  void fail(Request& request, base::Error error);
  /// Its caller waits for it no longer, and its memory is the caller's. The peer is lost if it relies on the message.
  void give_up(Request& request);
  /// Everything that needs the peer fails. Its small messages that came before stay.
  void lose(Peer& peer, base::Error error);

  /// Whether all other ranks are lost.
  [[nodiscard]] bool all_lost() const;
  /// Whether a rank that a receive waits for may still send. Errors: peer_lost, or why the rank was lost.
  [[nodiscard]] Result<void> still_there(int source) const;

  /// What happens with a request that serves a peer's access once it is done (access/access.hpp).
  void on_served(std::function<void(Request&)> ends) { served_ = std::move(ends); }

 private:
  void stop_copying(Request& request);
  LocalRank& local_;
  std::function<void(Request&)> served_;
};

}  // namespace lacuna::protocol
