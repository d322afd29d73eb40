// communicator: the parts of a communicator, made and put together. It hides them from protocol.hpp, whose class they
// implement.
//
//   a call ── alone, if there is a progress thread ──▶ one of the parts:
//
//     Sends, Receives      messages (message)            Offers      messages that others match (offer)
//     Accesses             puts and gets (access)        Progress    moves everything on (progress)
//
// communicator.cpp has the calls, connect.cpp what makes and ends them, explain.cpp what is said of them.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>

#include "lacuna/protocol/access/access.hpp"
#include "lacuna/protocol/choice/choice.hpp"
#include "lacuna/protocol/message/message.hpp"
#include "lacuna/protocol/offer/offer.hpp"
#include "lacuna/protocol/progress/progress.hpp"
#include "lacuna/protocol/registration/registration.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class Communicator::Parts {
 public:
  Parts(nic::Context& context, const std::string& nic, const Group& group, Options options);
  ~Parts();
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  /// With all of the group at the same time. Errors: as Communicator::create().
  Result<void> connect(Group group);

  /// A caller is alone, if there is a thread.
  [[nodiscard]] std::unique_lock<std::mutex> enter() const {
    return local.options.progress_thread ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  /// The peer of a message. Errors: invalid_argument (no such rank, a tag below 0), peer_lost.
  Result<Peer*> peer_of(int rank, int tag);
  /// The outcome of a request that is done; the request is gone then.
  Result<Status> end(Request* request);

 private:
  Registrations registrations_;  // before `local`, whose messages lease registrations

 public:
  LocalRank local;
  Choices choices;
  Completion completion;
  SelfMessages self;
  StreamTransfers streams;
  RendezvousTransfers rendezvous;
  Sends sends;
  Receives receives;
  Accesses accesses;
  Dispatch dispatch;
  Progress progress;
  Offers offers;
  std::uint32_t tags_taken = 0;
  std::optional<base::Error> planted;  ///< by a test: the outcome of every request
  [[nodiscard]] Registrations& registrations() { return registrations_; }

 private:
  Result<void> connect(Peer& peer);
  Result<void> agree(Peer& peer) const;
  void run_thread();

  static constexpr std::uint32_t kCallsPerAdvance = 256;
  std::uint32_t calls_ = 0;  // that name a peer
  mutable std::mutex mutex_;
  std::thread thread_;
  std::atomic<bool> stop_ = false;
};

}  // namespace lacuna::protocol
