// Two processes, on two machines or in two networks, that messages of Lacuna connect and nothing else.
#pragma once

#include <memory>
#include <string>

#include "lacuna/protocol/protocol.hpp"
#include "tools/bench/copy/mpi.hpp"

namespace lacuna::bench {

struct Network {
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<protocol::Communicator> ranks;
};

/// Meets the other rank: `address` is host:port of rank 0. Throws Broken.
Network meet_other(const std::string& nic, const std::string& address, int rank, const std::string& secret);

/// Contiguous messages of these ranks in the place of an MPI's: loops by hand go around the same endpoints as Lacuna's
/// own messages. One of them at a time.
std::unique_ptr<Mpi> messages_of(protocol::Communicator& ranks);

}  // namespace lacuna::bench
