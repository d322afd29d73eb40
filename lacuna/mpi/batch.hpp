// The requests of one call (MPI_Waitall and its like). Those of ours are taken out of the table, since the host may give their handles to others once it has
// completed them; what has not ended goes back.
#pragma once

#include <vector>

#include "lacuna/mpi/messages.hpp"

namespace lacuna::mpi {

class Batch {
 public:
  Batch(Job& job, int count, Request* requests);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  [[nodiscard]] int size() const { return static_cast<int>(handles_.size()); }
  /// The host's to complete; null requests where it has nothing to.
  [[nodiscard]] Request* theirs() { return handles_.data(); }
  [[nodiscard]] bool is_ours(int i) const { return !taken_[static_cast<std::size_t>(i)].empty(); }
  [[nodiscard]] bool is_alone(int i) const { return is_ours(i) && taken_[static_cast<std::size_t>(i)].mapped()->alone(); }
  /// Whether there are some that only we can complete.
  [[nodiscard]] bool some_alone() const;
  /// One of them that is complete; -1: none is.
  [[nodiscard]] int ready_alone();
  [[nodiscard]] bool all_ready_alone();

  /// The host has completed its part of one of ours, which may be ready then, or once its bytes have come.
  void host_completed(int i, const Status& theirs, int error);
  /// Ends one that is complete.
  Ended end(int i, Status* status);
  /// Ends any one that the host has completed; waits for what belongs to it.
  Ended end(int i, const Status& theirs, int error, Status* status);

 private:
  Job& job_;
  Request* requests_;
  std::vector<Request> handles_;
  std::vector<Operations::Taken> taken_;
  std::vector<int> ours_;
};

/// What became of several requests, as MPI_Waitall says it.
class Outcomes {
 public:
  struct One {
    int index;
    Status status;
    Ended how;
  };
  std::vector<One> all;
  /// `result`: of the host's call.
  void host_returned(int result) { failed_ = failed_ || result != kSuccess; }
  /// Of each, in this order. MPI_ERROR is written only if one failed.
  void put(Status* statuses) const;
  /// What the call returns; tells the error handler, unless the host did.
  [[nodiscard]] int result() const;

 private:
  bool failed_ = false;
};

}  // namespace lacuna::mpi
