// access: puts to, and gets from, memory that a rank exposes. It hides that their data travels as messages: an access
// says what is meant, and the data follows as a message with a tag of its own.
//
//   put   origin: access, then the message ────▶ target: a receive within the exposed memory; accessed ──▶ origin: done
//   get   origin: a receive; then access ──────▶ target: a send out of the exposed memory ═══════════════▶ origin: done
//
// So all protocols, credit, and the loss of a peer are those of messages.
#pragma once

#include <unordered_map>
#include <vector>

#include "lacuna/protocol/message/message.hpp"
#include "lacuna/protocol/request/request.hpp"

namespace lacuna::protocol {

class Accesses {
 public:
  Accesses(LocalRank& local, Completion& completion, Sends& sends) : local_(local), completion_(completion), sends_(sends) {
    completion_.on_served([this](Request& request) { end_served(request); });
  }

  /// Errors: invalid_argument (no bytes, or a null pointer).
  Result<Exposed> expose(void* base, std::int64_t bytes);
  /// Accesses are refused from now on. Errors: invalid_argument (the memory is not exposed here).
  Result<void> refuse(const Exposed& exposed);
  [[nodiscard]] bool in_use(const Exposed& exposed) const { return exposed_.at(exposed.number).in_use > 0; }
  /// Once it is refused and not in use.
  void end(const Exposed& exposed) { exposed_.erase(exposed.number); }

  /// A put, or a get. Errors: as Communicator::put().
  Result<Request*> begin(Peer& peer, void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs,
                         bool gets);

  /// At the target: a peer's access. Errors: malformed.
  Result<void> serve(Peer& peer, const Head& head);
  /// At the origin: the outcome of an access. Errors: malformed.
  Result<void> take_accessed(Peer& peer, const Head& head);
  /// Gives back the requests of accesses that were served.
  void retire_served() {
    for (Request* request : served_) local_.requests.give_back(request);
    served_.clear();
  }

 private:
  struct Memory {
    std::byte* base = nullptr;
    std::int64_t bytes = 0;
    int in_use = 0;  // by requests that serve
  };
  Result<void> access_own(void* base, const Layout& own, const Exposed& there, std::int64_t offset, const Layout& theirs, bool gets);
  Result<Request*> begin_put(Peer& peer, Request* request, const Head& head);
  void tell_accessed(Peer& peer, std::uint32_t number, bool gets, std::optional<base::Code> refused);
  void end_served(Request& request);

  LocalRank& local_;
  Completion& completion_;
  Sends& sends_;
  std::unordered_map<std::uint32_t, Memory> exposed_;
  std::uint32_t exposures_ = 0;
  std::vector<Request*> served_;  // done, to be given back
};

}  // namespace lacuna::protocol
