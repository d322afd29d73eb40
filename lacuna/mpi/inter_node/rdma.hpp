// Messages with gaps between nodes by RDMA: packed into registered memory, and read from there by the receiver's device
// (protocol/rendezvous/rget.hpp). This takes the place of chunks between two ranks that both have a device, found one
// another by it in MPI_Init, and have not lost one another since.
#pragma once

#include <memory>
#include <vector>

#include "lacuna/mpi/inter_node/inter_node.hpp"
#include "lacuna/mpi/process/comms.hpp"
#include "lacuna/mpi/process/descriptor.hpp"
#include "lacuna/protocol/rendezvous/rget.hpp"

namespace lacuna::mpi {

class Rdma {
 public:
  /// A queue pair for each rank of another node: jobs with more of them leave the wire to the host.
  static constexpr int kMostPeers = 128;

  /// Of so many ranks of the world.
  explicit Rdma(std::size_t ranks) : peers_(ranks, -1), have_(ranks) {}
  /// All ranks of the world at once; `world` is the same communicator, of ours alone. Throws nothing. False: no rank of
  /// another node is reached by a device. LACUNA_MPI_NIC names it, or says "off"; else it is the first of NIC
  /// verbs that is not emulated. `unsent` has to stay until the host's MPI_Finalize.
  using Unsent = std::vector<std::vector<std::byte>>;
  bool connect(Comm world, int own_rank, const std::vector<RankPlace>& places, Unsent& unsent);

  /// A message to a rank of the world. Null: it is not reached, or there is no room.
  std::unique_ptr<OutgoingMessage> begin_outgoing(int to, std::int64_t bytes, Descriptor::InterNode& head);
  /// Errors: those of protocol::Rget::accept(); malformed.
  base::Result<std::unique_ptr<IncomingMessage>> begin_incoming(int from, const Descriptor::InterNode& head, std::int64_t bytes,
                                                                const Destination& into);

 private:
  /// Throws nothing.
  bool meet(int number, int own_rank, int rank, nic::Bootstrap& bootstrap);
  [[nodiscard]] int peer(int rank) const;
  std::unique_ptr<protocol::Rget> rget_;
  std::vector<int> peers_;          // of each rank of the world, its number here, or -1
  std::vector<std::int32_t> have_;  // whether each has a device
};

}  // namespace lacuna::mpi
