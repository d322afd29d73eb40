// What the communicator keeps of a message at this end: a request of the program, or a message that came before its receive.
#pragma once

#include <memory>
#include <optional>

#include "lacuna/protocol/matching/matching.hpp"
#include "lacuna/protocol/protocol.hpp"
#include "lacuna/protocol/registration/registrations.hpp"
#include "lacuna/protocol/stream/stream.hpp"

namespace lacuna::protocol {

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
  bool offered = false;  ///< somebody else announces it (offers.cpp)
  // Accesses (access.cpp).
  bool served = false;                ///< a part of the peer's put or get: nobody asks for it, and it goes once it is done
  bool needs_word = false;            ///< a put: done once the peer says so,
  bool word_came = false;             ///< which it did,
  bool went = false;                  ///< and its data went
  std::uint32_t access = 0;           ///< its number; of a served one, the peer's
  std::uint32_t exposed = 0;          ///< of a served one: the memory
  std::optional<base::Code> refused;  ///< of a served one: why it moves nothing
  Protocol protocol = Protocol::eager;
  std::uint32_t number = 0;        ///< its name for the peer while it waits for something from there; 0: none
  std::uint32_t told = 0;          ///< the number of its layout there; 0: none
  int peer = 0;                    ///< of a receive, once it is matched
  const Layout* layout = nullptr;  ///< the caller's, where he waits; else
  Layout kept;
  std::byte* base = nullptr;  ///< of a send: not written
  std::int64_t bytes = 0;     ///< of the message
  Status status;
  std::optional<base::Error> error;
  std::optional<OutStream> out;
  std::vector<Windows::Hold> rest;  ///< of an offer that will be left behind: where what `out` has no room for goes
  std::optional<InStream> in;
  std::optional<Stores> aside;     ///< of an offer that no other call moves on: its own copy of the peer's
  std::optional<DirectCopy> copy;  ///< instead of what `out` and `in` do
  Registrations::Lease lease;      ///< of a send by rendezvous, where it was doubtful that there would be one
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

}  // namespace lacuna::protocol
