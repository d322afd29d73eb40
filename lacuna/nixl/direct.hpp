// direct: writes and reads of the peer's memory by this end alone: a request for each piece that is contiguous on both
// sides. The peer's CPU does nothing for them, so they suit few pieces, and peers that are busy. It hides queues.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "lacuna/nic/nic.hpp"
#include "lacuna/nixl/nixl.hpp"

namespace lacuna::nixl {

class Direct {
 public:
  /// The peer connects at the same time. Null: the two have no path that leaves the peer's CPU alone. Errors: those of
  /// the bootstrap.
  static Result<std::unique_ptr<Direct>> connect(nic::Context& context, nic::Bootstrap& bootstrap, std::int64_t timeout_ns);

  [[nodiscard]] nic::Path path() const { return queue_pair_->path(); }

  /// What moves a pair of layouts once.
  class Job {
   public:
    struct Side {
      std::uint64_t addr = 0;  ///< of the layout's base
      std::uint32_t key = 0;
    };
    /// Errors: invalid_argument (the sizes differ).
    static Result<Job> create(bool writes, const Layout& ours, Side own, const Layout& theirs, Side there);
    /// No request of it is under way, and none will be.
    [[nodiscard]] bool over() const { return all_posted() && waiting_ == 0; }
    [[nodiscard]] bool all_posted() const { return pieces_.done(); }

   private:
    friend class Direct;
    Job(bool writes, layout::Intersection pieces, Side own, Side there)
        : writes_(writes), pieces_(std::move(pieces)), own_(own), there_(there) {}
    bool writes_;
    layout::Intersection pieces_;
    Side own_, there_;
    int waiting_ = 0;  // requests under way
  };

  /// Posts of the job what the queue has room for; again and again until it is over. The job stays where it is until
  /// then. Errors, for all jobs from then on: invalid_argument (the peer has no such memory any more), peer_lost,
  /// transfer.
  Result<void> advance(Job& job);
  [[nodiscard]] bool failed() const { return failed_.has_value(); }
  /// Completions so far, of all jobs.
  [[nodiscard]] std::int64_t completed() const { return completed_; }

 private:
  Direct(nic::Context& context, std::unique_ptr<nic::CompletionQueue> queue, std::unique_ptr<nic::QueuePair> queue_pair);
  Result<void> poll();
  Result<void> post(Job& job);
  [[nodiscard]] base::Error why(nic::Status status) const;

  struct Chain {
    Job* job;
    int requests;
  };
  nic::Context& context_;
  std::unique_ptr<nic::CompletionQueue> queue_;
  std::unique_ptr<nic::QueuePair> queue_pair_;
  std::int64_t most_bytes_;    // of a request
  std::int64_t most_at_once_;  // bytes of a call: a CPU that copies them is in it meanwhile
  int room_;                   // requests that the queue takes now
  std::deque<Chain> chains_;
  std::int64_t completed_ = 0;
  std::optional<base::Error> failed_;
};

}  // namespace lacuna::nixl
