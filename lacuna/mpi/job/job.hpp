// The job, as one of its processes sees it: what MPI_Init found out, and everything that lives until MPI_Finalize.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "lacuna/mpi/inter_node/transport.hpp"
#include "lacuna/mpi/job/operation.hpp"
#include "lacuna/mpi/job/remembered.hpp"
#include "lacuna/mpi/mpi.hpp"
#include "lacuna/mpi/process/comms.hpp"
#include "lacuna/mpi/process/descriptor.hpp"
#include "lacuna/mpi/process/distance.hpp"
#include "lacuna/mpi/process/process.hpp"
#include "lacuna/mpi/rma/rma.hpp"

namespace lacuna::mpi {

class Job : public Process {
 public:
  /// After the host's MPI_Init, by all ranks. Null: this job does without us.
  static std::unique_ptr<Job> begin();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  /// While MPI is still there, after the last message of the program (end_messages() in messages.hpp).
  void end();
  bool ends_with_self = false;  ///< an attribute of MPI_COMM_SELF calls end()

  /// For what measures: from now on data goes this way wherever it can, by the name of a way of the guide, or, to other
  /// nodes, "chunked BYTES"; null: as chosen. False: there is no such way. No other thread calls MPI meanwhile.
  bool force(const char* name);

  Mode mode = Mode::full;
  guide::MpiThresholds from;
  /// A receiver that takes nothing for so long does something else: the rest is packed
  std::int64_t patience_ns = 1'000'000;
  Nonce nonce{};
  int world_rank = 0;
  int local_rank = 0;    ///< on this node
  bool crowded = false;  ///< it has fewer CPUs than ranks: who waits lets others have his
  std::unique_ptr<Comms> comms;
  Operations operations;
  RememberedRequests remembered;
  Matched matched;
  RmaWindows windows;
  std::unique_ptr<nic::Context> context;
  std::unique_ptr<NodePeers> peers;               ///< with `ranks`,
  std::unique_ptr<LineTimes> lines;               ///< with `ranks`,
  std::unique_ptr<Boards> boards;                 ///< as these,
  std::unique_ptr<Inquiries> inquiries;           ///< and these, if all ranks of this node have some
  std::unique_ptr<protocol::Communicator> ranks;  ///< of this node; null: this process is alone there
  bool finds_orders = true;                       ///< of communicators: no call was missed for want of memory
  bool said_orders_full = false;                  ///< a rank has no room for more of them
  IdleRequests idle_requests;
  std::array<std::vector<Block>, 2> spare_blocks;  ///< room for those of a call; empty while one has it
  std::unique_ptr<InterNodeTransport> transport;   ///< to other nodes; null: there are none

  /// Whether a message is the host's, to any rank, told at once; false where that is not known.
  [[nodiscard]] bool leaves(MpiUse use, Datatype type, Count count) {
    return transport == nullptr && ways.leaves(use, types.seen(type), count);
  }
  /// Counts a call of a message or collective. True, now and then: look_at().
  bool looks() { return lines != nullptr && lines->count(); }
  /// How far a rank of this node is (LineTimes::look).
  void look_at(int local);
  /// The same of a rank of `comm`, any one, or MPI_PROC_NULL.
  void look_at(Comm comm, int rank);
  /// As for most ranks, where it is on another node.
  [[nodiscard]] guide::Distance distance_of(const RankPlace& place) const {
    return lines != nullptr && place.local >= 0 ? lines->of(place.local) : ways.distance();
  }

  /// For a thread that touches anything of the above that is not a table with a lock of its own: alone, if the program
  /// has threads that call MPI at once.
  [[nodiscard]] std::unique_lock<Mutex> enter() { return std::unique_lock(mutex_); }

 private:
  Job() = default;
  Mutex mutex_;
  std::optional<guide::MpiThresholds> chosen_from_;  // while others are forced
};

/// Null before MPI_Init, after MPI_Finalize, and if this job does without us.
#if defined(LACUNA_MPI_RANKS_ARE_THREADS)  // tests/interposer
extern thread_local Job* job;
#else
extern Job* job;
#endif

}  // namespace lacuna::mpi
