// drawn: random programs for the fake MPI. A program is drawn from a seed before it runs, so that it is the same with
// the interposer and without. What each rank sees of it is a list of lines: what its calls returned, the statuses, and
// digests of the memory that it received into. No line depends on what comes first where MPI leaves that open.
//
// A program goes in rounds. In each, some messages go between some ranks: their two sides are begun, or blocking, and
// the blocking ones follow one order on all ranks, so that none waits for ever.
#pragma once

#include <string>
#include <vector>

#include "tests/interposer/fake.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test::fake {

/// One side of a message: elements of some datatype, in memory of some kind.
struct DrawnSide {
  std::uint64_t type = 0;  ///< the seed of a datatype for so many
  std::int64_t bytes = 0;  ///< that go, or may come
  int way = 0;             ///< by which call
  bool on_device = false;
  bool freed_early = false;  ///< the datatype, while it is in use
};

struct DrawnMessage {
  int comm = 0, tag = 0, from = 0, to = 0;
  bool send_begins = false, receive_begins = false;  ///< else they block
  bool any_source = false, any_tag = false;
  bool exchange = false;  ///< the other way, too, by one call on each side
  DrawnSide out, in;
};

struct DrawnRound {
  std::vector<DrawnMessage> messages;
  int completion = 0;          ///< how what was begun is completed
  std::vector<int> cancelled;  ///< ranks that cancel a receive that nothing is sent for
  int collective = -1;         ///< none
  std::uint64_t seed = 0;
};

struct Drawn {
  int ranks = 2, comms = 1;
  bool devices = false;  ///< some memory is a GPU's
  std::vector<DrawnRound> rounds;
};

Drawn draw(support::Random& random, int ranks, bool devices);

/// What a rank does of it, in communicators of its own; what it saw.
std::vector<std::string> run(const Host& mpi, int rank, const Drawn& program, const std::vector<Comm>& comms);

}  // namespace lacuna::test::fake
