#include "lacuna/mpi/messages/batch.hpp"

#include <algorithm>
#include <utility>

namespace lacuna::mpi {

Batch::Batch(Job& job, int count, Request* requests, Takes takes) : job_(job), count_(count), requests_(requests) {
  const auto lock = job.enter();
  if (takes == Takes::ended && !job.operations.some_alone()) late_ = true;
  poll_orphans(job);
  if (late_) {
    taken_->reserve(1);
    if (!holds()) job.operations.begin_ending();
    ending_.emplace(job.remembered);
    return;
  }
  handles_->assign(requests, requests + count);
  for (const Request handle : *handles_) promote(job, handle);
  taken_->resize(handles_->size());
  ours_->reserve(handles_->size());  // before any is taken out
  alone_->reserve(handles_->size());
  for (std::size_t i = 0; i < handles_->size(); ++i) {
    Operations::Taken& taken = (*taken_)[i];
    taken = job.operations.take((*handles_)[i]);
    if (taken.empty()) continue;
    ours_->push_back(static_cast<int>(i));
    if (!taken.mapped()->alone()) continue;
    (*handles_)[i] = host().no_request;
    alone_->push_back(static_cast<int>(i));
  }
}

void Batch::look_at(int first, int count) {
  first_ = first;
  handles_->assign(requests_ + first, requests_ + first + count);
}

int Batch::not_null(int from) const {
  const auto found = std::find_if(requests_ + from, requests_ + count_, [none = host().no_request](Request each) { return each != none; });
  return static_cast<int>(found - requests_);
}

void Batch::make_room(int ended) {
  if (late_) taken_->reserve(static_cast<std::size_t>(ended));
}

Batch::~Batch() {
  const auto lock = job_.enter();
  const auto put_back = [&](Operations::Taken& taken) {
    if (!taken.empty()) job_.operations.put_back(std::move(taken));
  };
  if (late_) {
    std::ranges::for_each(*taken_, put_back);
    if (!holds()) job_.operations.end_ending();
  }
  for (const int i : *ours_) put_back((*taken_)[static_cast<std::size_t>(i)]);
}

// Not by a look at one of the requests: MPICH forgets what became of a persistent one that it has told of.
void let_host_progress(const Job& job, int looks) {
  constexpr int kNoMessages = 32767;  // a tag that every MPI has; what it finds stays where it is
  if (job.library != Library::mpich) return;
  int found = 0;
  for (int i = 0; i < looks; ++i) host().Iprobe(kAnySource, kNoMessages, host().world, &found, ignored());
}

Batch::Hold::Hold(Batch& batch) : batch_(batch) {
  if (!batch.holds()) return;
  lock_ = batch.job_.enter();
  batch.job_.operations.begin_ending();
}

Batch::Hold::~Hold() {
  if (lock_.owns_lock()) batch_.job_.operations.end_ending();
}

int Batch::alone() {
  std::erase_if(*alone_, [&](int i) { return !is_alone(i); });
  return static_cast<int>(alone_->size());
}

int Batch::ready_alone() {
  const auto lock = job_.enter();
  const auto found = std::ranges::find_if(*alone_, [&](int i) { return is_alone(i) && ready(i); });
  return found == alone_->end() ? -1 : *found;
}

bool Batch::all_ready_alone() {
  const auto lock = job_.enter();
  return std::ranges::all_of(*alone_, [&](int i) { return !is_alone(i) || ready(i); });
}

void Batch::host_completed(int i, const Status& theirs, int error) {
  const auto k = static_cast<std::size_t>(i);
  const auto lock = job_.enter();
  mpi::host_completed(job_, *(*taken_)[k].mapped(), handle(i), theirs, error);
  handle(i) = host().no_request;
  alone_->push_back(i);
}

void Batch::ended(int i, Status& theirs, int& error) {
  if (!late_) return;
  const auto lock = job_.enter();
  const Request handle = requests_[static_cast<std::size_t>(i)];
  Remembered what;
  if (!job_.remembered.take_ended(handle, what)) {
    taken_->push_back(job_.operations.take_ended(handle));
    return;
  }
  taken_->emplace_back();
  if (!leaves_more(what, error, theirs)) return;
  try {
    if (bytes_of(theirs) == Descriptor::kBytes) {
      taken_->back() = operation_outside(job_, handle, what);
    } else {
      error = complete(job_, what, error, theirs, ignored()).error;
    }
  } catch (const std::bad_alloc&) {
    error = kErrNoMem;
  }
  failed_ = failed_ || error != kSuccess;
  theirs.error = error;
}

Ended Batch::end(int i, Status* status) {
  const auto k = static_cast<std::size_t>(i);
  const auto lock = job_.enter();
  return mpi::end(job_, std::move((*taken_)[k]), &requests_[k], status);
}

Ended Batch::end(int i, const Status& theirs, int error, Status* status) {
  const auto k = static_cast<std::size_t>(i);
  if (late_) {
    if (Operations::Taken taken = std::move(taken_->at(next_ended_++)); !taken.empty()) {
      {
        const auto lock = job_.enter();
        mpi::host_completed(job_, *taken.mapped(), handle(i), theirs, error);
      }
      wait_for(job_, *taken.mapped());
      const auto lock = job_.enter();
      return mpi::end(job_, std::move(taken), &requests_[k], status);
    }
  } else if (is_ours(i)) {
    host_completed(i, theirs, error);
    wait_for(job_, *(*taken_)[k].mapped());
    return end(i, status);
  }
  requests_[k] = handle(i);
  put_status(status, theirs);
  return {.error = error, .raised = !failed_, .persistent = false, .comm = host().world};
}

void AtOnce::fill() {
  std::erase(places_, kNone);
  const std::size_t most = kMost - std::min(kMost, static_cast<std::size_t>(batch_.alone()));
  for (; places_.size() < most && !last(); ++next_) {
    if (batch_.theirs()[next_] != host().no_request) places_.push_back(next_);
  }
  handles_.clear();
  for (const int place : places_) handles_.push_back(batch_.theirs()[place]);
}

int AtOnce::take(int which) {
  const int place = std::exchange(places_[static_cast<std::size_t>(which)], kNone);
  batch_.theirs()[place] = handles_[static_cast<std::size_t>(which)];
  return place;
}

void Outcomes::put(Status* statuses) const {
  const bool failed = std::ranges::any_of(*all, [](const One& one) { return one.how.error != kSuccess; });
  for (std::size_t k = 0; k < all->size() && statuses != ignored(); ++k) {
    put_status(&statuses[k], (*all)[k].status);
    if (failed) statuses[k].error = (*all)[k].how.error;
  }
}

int Outcomes::result() const {
  if (failed_) return kErrInStatus;
  const auto ours = std::ranges::find_if(*all, [](const One& one) { return one.how.error != kSuccess && !one.how.raised; });
  return ours == all->end() ? kSuccess : raise_in_status(ours->how);
}

}  // namespace lacuna::mpi
