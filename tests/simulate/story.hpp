// story: what a simulated world is, and what its ranks do. All of it comes from a seed; what a failure needs of it is
// found by leaving steps out (shrink.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/simulate/luck.hpp"

namespace lacuna::simulate {

/// One thing that ranks do.
struct Step {
  enum class Kind : std::uint8_t {
    message,   ///< `from` sends to `to`
    put,       ///< `from` puts into `to`'s memory
    get,       ///< `from` gets out of `to`'s memory
    exchange,  ///< each to each
    nothing,   ///< `to` receives what no rank sends, and takes that back
    works,     ///< `from` makes no call for a while
  };
  Kind kind = Kind::message;
  int number = 0;  ///< of the story: also the slot of memory
  int from = 0, to = 0;
  int tag = 0;
  std::int64_t bytes = 0;
  bool any_source = false, any_tag = false;
  bool open = false;        ///< the receive takes any message of its round to this rank; all have as many bytes
  bool probes = false;      ///< the receiver looks for it first
  bool takes_back = false;  ///< the receive is taken back, unless its message is there, and begun again
  bool waits = false;       ///< of puts and gets: `from` begins nothing else before it has ended
  /// Of exchanges: all is well; `from` sends `to` a byte more than is received; `from` may not take part
  enum class Flaw : std::uint8_t { none, misfit, refused } flaw = Flaw::none;
  std::uint64_t seed = 0;     ///< of layouts and contents
  std::int64_t takes_ns = 0;  ///< of works

  [[nodiscard]] bool of(int rank) const {
    if (kind == Kind::exchange) return true;
    if (kind == Kind::nothing) return rank == to;
    if (kind == Kind::works) return rank == from;
    return rank == from || rank == to;
  }
};

/// What each rank begins, in this order, before it waits for all of it.
using Round = std::vector<Step>;

struct Story {
  std::uint64_t seed = 0;
  int ranks = 2, ranks_per_node = 1;
  bool hub = false;                                              ///< ranks are connected when they first talk
  std::string profile;                                           ///< of the NIC, by name
  int max_send_wr = 0, max_recv_wr = 0, max_sge = 0, keys = -1;  ///< 0, or -1: the NIC's own
  std::int64_t eager_bytes = 0, part_bytes = 0, registered_bytes = 0, unexpected_bytes = 0;
  std::size_t registered_entries = 0;
  int registering = 0;  ///< protocol::Registering
  std::string method;   ///< forced; empty: as chosen
  bool learns = false;
  Luck luck;
  std::vector<Round> rounds;

  [[nodiscard]] int steps() const;
  /// A few lines.
  [[nodiscard]] std::string describe() const;
};

/// Throws nothing but std::bad_alloc.
Story draw(std::uint64_t seed);

}  // namespace lacuna::simulate
