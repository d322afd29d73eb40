// Communicators: which of their ranks are processes of this job on this node, and the messages that were probed in them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "lacuna/mpi/descriptor.hpp"
#include "lacuna/mpi/host.hpp"
#include "lacuna/mpi/mutex.hpp"

namespace lacuna::mpi {

/// A message that a probe took from the host. If it has a descriptor's size it was received, else the host still has its bytes.
struct Probed {
  Comm comm{};
  Status status;  ///< as the program is to see it
  Message message;
  bool received = false;
  Descriptor::Wire wire;
  std::optional<Descriptor> descriptor;
  std::int64_t size = 0;  ///< of its bytes in the host
  [[nodiscard]] std::int64_t bytes() const { return descriptor ? static_cast<std::int64_t>(descriptor->bytes) : size; }
};

struct CommOf {
  std::vector<int>
      local;  ///< of each rank, of the remote group if it is an intercommunicator: its rank on this node; -1: it has none, or is this process
  std::deque<std::unique_ptr<Probed>> stash;  ///< of each source, what came first

  [[nodiscard]] Probed* find(int source, int tag) const {
    for (const auto& one : stash) {
      if ((source == kAnySource || source == one->status.source) && (tag == kAnyTag || tag == one->status.tag)) return one.get();
    }
    return nullptr;
  }
  std::unique_ptr<Probed> take(const Probed& which) {
    for (auto at = stash.begin(); at != stash.end(); ++at) {
      if (at->get() != &which) continue;
      std::unique_ptr<Probed> found = std::move(*at);
      stash.erase(at);
      return found;
    }
    return nullptr;
  }
};

class Comms {
 public:
  /// `local`: of each rank of MPI_COMM_WORLD, as CommOf has it.
  explicit Comms(std::vector<int> local);
  /// Null: the host knows no such communicator.
  CommOf* find(Comm comm);
  /// The rank on this node of whoever a message goes to, or comes from; -1: none.
  int local(Comm comm, int rank) {
    const CommOf* found = rank < 0 ? nullptr : find(comm);
    return found != nullptr && static_cast<std::size_t>(rank) < found->local.size() ? found->local[static_cast<std::size_t>(rank)] : -1;
  }
  /// Whether it is known and was not freed.
  [[nodiscard]] bool lives(Comm comm);

 private:
  static int copied(Comm, int, void*, void*, void*, int* flag);
  static int deleted(Comm comm, int, void*, void* comms);
  Mutex mutex_;
  std::vector<int> world_;
  CommOf of_world_;
  std::unordered_map<Comm, std::unique_ptr<CommOf>> known_;
  Group group_{};
  int keyval_ = 0;
};

}  // namespace lacuna::mpi
