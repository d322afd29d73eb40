// A message at this end: a request of the program, or a message that came before its receive.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/protocol/channel/channel.hpp"
#include "lacuna/protocol/matching/matching.hpp"
#include "lacuna/protocol/protocol.hpp"
#include "lacuna/protocol/registration/registration.hpp"
#include "lacuna/protocol/stream/stream.hpp"

namespace lacuna::protocol {

/// Of a request whose bytes travel by a stream: its end of the stream.
struct StreamState {
  std::optional<OutStream> out;
  std::optional<InStream> in;
  std::optional<DirectCopy> copy;  ///< instead of what `out` or `in` does
  [[nodiscard]] bool under_way() const { return out || in; }
  void end() {
    out.reset();
    in.reset();
    copy.reset();
  }
};

/// Of an offer (offer/offer.hpp).
struct OfferState {
  bool offered = false;
  std::vector<RingHold> rest;   ///< of an offer that will be left behind: rings for what its first one has no room for
  std::optional<Stores> aside;  ///< of an offer that no other call moves on: its own copy of the peer's stores
};

/// Of a message that is announced, and waits for its answer or for what the answer asked for.
struct AnnounceState {
  std::uint32_t number = 0;    ///< its name for the peer; 0: none
  std::uint32_t layout = 0;    ///< the number of its layout there; 0: none
  Registrations::Lease lease;  ///< of a send by rendezvous, where the registration could have failed
};

/// Of a message that carries the data of a put or a get (access/access.hpp).
struct AccessState {
  std::uint32_t number = 0;           ///< the access's, given by its origin; 0: this is another message
  bool needs_word = false;            ///< a put: it is done once the peer says so,
  bool word_came = false;             ///< which the peer did,
  bool went = false;                  ///< and its data went
  bool served = false;                ///< at the target: no program waits for it
  std::uint32_t exposed = 0;          ///< at the target: the memory
  std::optional<base::Code> refused;  ///< at the target: why it moves nothing
};

/// A send or a receive. As a Matchable it is a receive that waits.
class Request : public Matchable {
 public:
  enum class State : std::uint8_t {
    waiting,  ///< a receive for its message; a send for room in the channel, or for its answer
    moving,   ///< its bytes are under way
    done,
  };
  State state = State::waiting;
  bool sends = false;
  Protocol protocol = Protocol::eager;
  int peer = 0;  ///< of a receive, once it is matched

  // Its bytes.
  const Layout* layout = nullptr;  ///< the caller's, where the caller waits; else
  Layout kept;
  std::byte* base = nullptr;  ///< of a send: not written
  std::int64_t bytes = 0;     ///< of the message

  // Its outcome.
  Status status;
  std::optional<base::Error> error;

  // What the way that it travels needs.
  StreamState stream;
  OfferState offer;
  AnnounceState announce;
  AccessState access;

  /// Its layout has to outlive the call that begins it.
  void keep(const Layout& of) {
    kept = of;
    layout = &kept;
  }
};

/// A message that waits for its receive.
struct Unexpected : Matchable {
  Head head;
  std::unique_ptr<std::byte[]> data;  ///< of an eager message
  std::optional<InStream> in;         ///< of a stream
  bool method = false;                ///< of an announcement: it goes by a method,
  std::optional<Layout> layout;       ///< from this layout
  Request* send = nullptr;            ///< of a message to oneself that was not copied
};

/// Requests keep their addresses, and are used again.
class RequestPool {
 public:
  Request* take() {
    if (free_.empty()) {
      if (free_.capacity() <= all_.size()) free_.reserve(2 * all_.size() + 16);  // give_back() must not need memory
      return &all_.emplace_back();
    }
    Request* request = free_.back();
    free_.pop_back();
    return request;
  }
  void give_back(Request* request) {
    *request = Request();
    free_.push_back(request);
  }
  /// Ends all of them, with what they hold.
  void clear() {
    free_.clear();
    all_.clear();
  }

 private:
  std::deque<Request> all_;
  std::vector<Request*> free_;
};

}  // namespace lacuna::protocol
