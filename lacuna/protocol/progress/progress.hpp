// progress: what moves a communicator on. It hides in which order peers, arrivals, queued heads, streams and parts get
// their turn.
//
//   advance(): each peer in turn ── arrivals ──▶ dispatch.hpp ──▶ receives, streams, rendezvous, accesses
//                                ├─ what waits for room in its channel
//                                └─ its streams, and its transfers by rendezvous
//   idle(): after rounds in which nothing moved, now and then, whether a peer is gone; and what that look has found
#pragma once

#include <algorithm>
#include <mutex>

#include "lacuna/protocol/access/access.hpp"
#include "lacuna/protocol/message/message.hpp"
#include "lacuna/protocol/progress/dispatch.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class Progress {
 public:
  Progress(LocalRank& local, Completion& completion, Dispatch& dispatch, Sends& sends, StreamTransfers& streams,
           RendezvousTransfers& rendezvous, Accesses& accesses)
      : local_(local),
        completion_(completion),
        dispatch_(dispatch),
        sends_(sends),
        streams_(streams),
        rendezvous_(rendezvous),
        accesses_(accesses) {}

  /// Rounds of waiting before the context is asked to wait: a peer that answers at once shall not wait for a look at
  /// the clock.
  void spin(int rounds) { spins_ = rounds; }

  /// One round of all peers; true if something moved.
  bool advance();
  /// Errors, of the peer: those of what it says.
  Result<bool> advance(Peer& peer);
  /// After a round in which nothing moved. True: requests ended all the same, since a peer is gone, or something came
  /// while that was looked for, for which the context wakes nobody.
  bool idle() {
    const bool suspects = suspects_ || (local_.hub != nullptr && !local_.hub->failing().empty());
    return (++idle_ % kIdlePerLook == 0 || suspects) && look();
  }
  /// Peers whose channel is broken are lost. Whether there are some.
  bool look_for_faults();
  /// Until `ready` says true; `lock` is free now and then. Errors: timeout.
  template <class Ready>
  Result<void> until(std::unique_lock<std::mutex>& lock, const Ready& ready, std::int64_t timeout_ns) {
    nic::Context& context = local_.context;
    const std::int64_t deadline = timeout_ns == Communicator::kForever ? Communicator::kForever : context.now() + timeout_ns;
    int spins = spins_;
    while (!ready()) {
      if (advance()) continue;
      if (--spins >= 0) {
        base::cpu_relax();
        continue;
      }
      if (idle()) continue;
      LACUNA_TRY(context.wait(deadline));
      if (!lock.owns_lock()) continue;
      lock.unlock();
      lock.lock();
    }
    return {};
  }
  /// Says goodbye, and waits until the peers have taken what was sent to them, as far as they take it: rings are this
  /// end's memory.
  void close();

 private:
  bool look();
  bool advance_or_lose(Peer& peer);
  bool tell_lost(Peer& peer);
  bool look_for_fault(Peer& peer);
  bool advance_by_hub();
  bool take_from_hub();
  static constexpr std::uint32_t kIdlePerLook = 64;
  LocalRank& local_;
  Completion& completion_;
  Dispatch& dispatch_;
  Sends& sends_;
  StreamTransfers& streams_;
  RendezvousTransfers& rendezvous_;
  Accesses& accesses_;
  bool suspects_ = false;  // a channel, of being broken
  std::uint32_t idle_ = 0;
  int spins_ = 0;
};

}  // namespace lacuna::protocol
