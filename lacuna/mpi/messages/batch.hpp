// The requests of one call (MPI_Waitall and its like). Those of ours are taken out of the table, since the host may
// give their handles to others once it has completed them; what has not ended goes back. A call that ends a few of many
// requests takes out those that it ends, and no others: else a loop of MPI_Waitany would take time that grows with the
// square of its requests. In a program whose threads call MPI at once it looks without waiting, and holds the job's
// lock until what has ended is out of the table, so that no other thread comes by its handle meanwhile.
#pragma once

#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "lacuna/mpi/messages/messages.hpp"
#include "lacuna/mpi/messages/room.hpp"

namespace lacuna::mpi {

/// A look at many requests is dear, and MPICH moves one message at each look. So MPICH moves some before it looks.
void let_host_progress(const Job& job, int looks);

class Batch {
 public:
  enum class Takes { all, ended };
  Batch(Job& job, int count, Request* requests, Takes takes = Takes::all);
  ~Batch();
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  [[nodiscard]] int size() const { return count_; }
  /// The host's to complete; null requests where it has nothing to.
  [[nodiscard]] Request* theirs() { return handles_->data(); }
  [[nodiscard]] bool is_ours(int i) const { return !(*taken_)[static_cast<std::size_t>(i)].empty(); }
  [[nodiscard]] bool is_alone(int i) const { return !late_ && is_ours(i) && (*taken_)[static_cast<std::size_t>(i)].mapped()->alone(); }
  /// How many there are that only we can complete.
  [[nodiscard]] int alone();
  [[nodiscard]] bool some_alone() { return alone() > 0; }
  /// Whether nothing is taken out before it has ended.
  [[nodiscard]] bool is_late() const { return late_; }
  /// Of a late batch: theirs() are some of the call's from now on.
  void look_at(int first, int count);
  /// The first of the call's requests from an index on that is not null, or their number.
  [[nodiscard]] int not_null(int from) const;
  /// Held while the host completes requests that are in the table. Then it may not wait.
  class Hold {
   public:
    explicit Hold(Batch& batch);
    ~Hold();
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    Batch& batch_;
    std::unique_lock<Mutex> lock_;
  };
  [[nodiscard]] bool holds() const { return late_ && Mutex::multiple(); }
  /// One of them that is complete; -1: none is.
  [[nodiscard]] int ready_alone();
  [[nodiscard]] bool all_ready_alone();

  /// Once the host has completed requests, nothing may want memory: what it has said of them would be lost. So room for
  /// what one call may end is made before; without this there is room for one.
  void make_room(int ended);
  /// The host has completed its part of one of ours, which may be ready then, or once its bytes have come.
  void host_completed(int i, const Status& theirs, int error);
  /// The host has completed these, all that one call did: said before any of them is ended, since to end one may mean
  /// to look at others, whose handles are gone. `error`: if that fails.
  void ended(int i, Status& theirs, int& error);
  /// Ends one that is complete.
  Ended end(int i, Status* status);
  /// Ends any one that the host has completed; waits for what belongs to it.
  Ended end(int i, const Status& theirs, int error, Status* status);

 private:
  [[nodiscard]] Request& handle(int i) { return (*handles_)[static_cast<std::size_t>(i - first_)]; }
  [[nodiscard]] bool ready(int i) { return poll(job_, *(*taken_)[static_cast<std::size_t>(i)].mapped()); }
  Job& job_;
  bool late_ = false;  ///< nothing is taken out before it has ended
  int count_;
  Request* requests_;
  Room<Request> handles_;          ///< theirs()
  int first_ = 0;                  ///< the index of the first of them
  Room<Operations::Taken> taken_;  ///< of a late batch: those that have ended, in the order of their ends
  Room<int, 0> ours_;
  Room<int, 1> alone_;  ///< of them, and some that have ended since
  std::size_t next_ended_ = 0;
  std::optional<RememberedRequests::Ending> ending_;  ///< of a late batch
  bool failed_ = false;                               ///< what the host had done, and its error handlers do not know
};

/// Those of a call's requests that the host is asked about at once. It looks at all that it is given, and there may be
/// thousands.
class AtOnce {
 public:
  static constexpr std::size_t kMost = 128;
  explicit AtOnce(Batch& batch) : batch_(batch) {
    const std::size_t most = std::min(kMost, static_cast<std::size_t>(batch.size()));
    places_.reserve(most);
    handles_.reserve(most);
  }
  /// Takes in what comes next, so that there are kMost with those that only we can complete.
  void fill();
  [[nodiscard]] int size() const { return static_cast<int>(handles_.size()); }
  [[nodiscard]] Request* theirs() { return handles_.data(); }
  /// Whether there is none behind these.
  [[nodiscard]] bool last() const { return next_ == batch_.size(); }
  /// The host has completed one of them: which one of the call's that is.
  int take(int which);
  /// The host has nothing to complete of these: they are null, or persistent and not started.
  void drop() { places_.clear(); }

 private:
  static constexpr int kNone = -1;
  Batch& batch_;
  int next_ = 0;
  std::vector<int> places_;  // in the call
  std::vector<Request> handles_;
};

/// Room for the statuses of a call of the host's, kept from call to call. Its errors are MPI_SUCCESS: hosts write them
/// only where one has failed.
class Statuses {
 public:
  explicit Statuses(int count) : all_(std::exchange(kept(), {})) {  // an error handler may be here again meanwhile
    if (std::cmp_less_equal(all_.size(), count)) all_.resize(static_cast<std::size_t>(count) + 1);
  }
  ~Statuses() {
    for (int i = 0; i < written_; ++i) (*this)[i].error = kSuccess;
    if (all_.size() <= kMostKept) kept() = std::move(all_);
  }
  Statuses(const Statuses&) = delete;
  Statuses& operator=(const Statuses&) = delete;
  /// The host has written up to so many.
  void written(int count) { written_ = std::max(written_, count); }
  [[nodiscard]] Status* data() { return all_.data(); }
  [[nodiscard]] Status& operator[](int i) { return all_[static_cast<std::size_t>(i)]; }

 private:
  static constexpr std::size_t kMostKept = 1 << 17;
  static std::vector<Status>& kept() {
    static thread_local std::vector<Status> statuses;
    return statuses;
  }
  std::vector<Status> all_;
  int written_ = 0;
};

/// What became of several requests, as MPI_Waitall says it.
class Outcomes {
 public:
  struct One {
    int index;
    Status status;
    Ended how;
  };
  Room<One> all;
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
