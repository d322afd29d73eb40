// MPI_Request_get_status and its like, which end nothing.
#include <algorithm>

#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {

bool concerns_us(Job* j, int count, const Request* requests) {
  if (!takes_messages(j) || count < 0) return false;  // the host says what is wrong
  const auto lock = j->enter();
  if (!j->operations.orphans().empty()) return true;
  if (j->operations.empty() && j->remembered.empty()) return false;
  return std::any_of(requests, requests + count, [&, none = host().no_request](Request request) {
    // most may be null
    return request != none && (j->operations.find(request) != nullptr || j->remembered.find(request) != nullptr);
  });
}

bool may_concern_us(Job* j, int count, const Request* requests) {
  if (Mutex::multiple() || !takes_messages(j)) return concerns_us(j, count, requests);
  return count >= 0 && (!j->operations.empty() || !j->remembered.empty() || !j->operations.orphans().empty());
}

namespace {

// The requests of a call, with null requests where they are ours. False: none is.
class Looks {
 public:
  Looks(int count, const Request* requests) : job_(job), requests_(requests) {
    if (!concerns_us(job_, count, requests)) return;
    lock_ = job_->enter();
    handles_.assign(requests, requests + count);
    for (int i = 0; i < count; ++i) promote(*job_, requests[i]);
    for (int i = 0; i < count; ++i) {
      const Operation* operation = job_->operations.find(requests[i]);
      if (operation == nullptr || !operation->active) continue;
      ours_.push_back(i);
      handles_[static_cast<std::size_t>(i)] = host().no_request;
    }
  }
  explicit operator bool() const { return lock_.owns_lock(); }
  [[nodiscard]] const std::vector<int>& ours() const { return ours_; }
  [[nodiscard]] const Request* theirs() const { return handles_.data(); }
  [[nodiscard]] const Status& status(int i) { return job_->operations.find(requests_[i])->status; }
  [[nodiscard]] bool is_ready(int i) { return poll(*job_, *job_->operations.find(requests_[i])); }
  [[nodiscard]] bool ours_are_ready() {
    bool ready = true;
    for (const int i : ours_) ready = is_ready(i) && ready;
    return ready;
  }

 private:
  Job* job_;
  std::unique_lock<Mutex> lock_;
  const Request* requests_;
  std::vector<Request> handles_;
  std::vector<int> ours_;
};

}  // namespace

LACUNA_MPI_CALL(Request_get_status, (Request request, int* flag, Status* status)) {
  Job* const j = job;
  if (!concerns_us(j, 1, &request))
    return passed(j, Function::Request_get_status, why_passed(j), [&] { return host().Request_get_status(request, flag, status); });
  const auto lock = j->enter();
  if (j->remembered.find(request) != nullptr) {
    Status mine{};
    Status& seen = status == ignored() ? mine : *status;
    const int error = host().Request_get_status(request, flag, &seen);
    const Remembered* const what = j->remembered.find(request);  // an error handler may have ended it
    if (*flag == 0 || what == nullptr || !leaves_more(*what, error, seen)) return error;
    promote(*j, request);
  }
  Operation* const operation = j->operations.find(request);
  if (operation == nullptr || !operation->active)
    return passed(j, Function::Request_get_status, Why::of_host, [&] { return host().Request_get_status(request, flag, status); });
  *flag = poll(*j, *operation) ? 1 : 0;
  if (*flag != 0) put_status(status, operation->status);
  return kSuccess;
}
LACUNA_MPI_CAUGHT

#if !defined(LACUNA_MPI_ABI_OPENMPI)
// MPICH's own. It says that of the host's request, and nothing of the bytes that belong to it; of a request of ours it
// would never say it.
extern "C" __attribute__((visibility("default"))) int MPIX_Request_is_complete(Request request) {
  int flag = 0;
  if (concerns_us(job, 1, &request) || host().Request_is_complete == nullptr) {
    MPI_Request_get_status(request, &flag, ignored());
    return flag;
  }
  return host().Request_is_complete(request);
}
extern "C" __attribute__((visibility("default"), alias("MPIX_Request_is_complete"))) int PMPIX_Request_is_complete(Request request);
#endif

// Of MPI-4.1. Nothing is ended.
LACUNA_MPI_CALL(Request_get_status_all, (int count, const Request* requests, int* flag, Status* statuses)) {
  Looks looks(count, requests);
  if (!looks)
    return passed(job, Function::Request_get_status_all, why_passed(job),
                  [&] { return host().Request_get_status_all(count, requests, flag, statuses); });
  const bool ready = looks.ours_are_ready();
  const int result = host().Request_get_status_all(count, looks.theirs(), flag, statuses);
  if (!ready) *flag = 0;
  for (const int i : looks.ours()) {
    if (*flag != 0 && statuses != ignored()) put_status(&statuses[i], looks.status(i));
  }
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Request_get_status_any, (int count, const Request* requests, int* index, int* flag, Status* status)) {
  Looks looks(count, requests);
  if (!looks)
    return passed(job, Function::Request_get_status_any, why_passed(job),
                  [&] { return host().Request_get_status_any(count, requests, index, flag, status); });
  for (const int i : looks.ours()) {
    if (!looks.is_ready(i)) continue;
    *flag = 1;
    *index = i;
    put_status(status, looks.status(i));
    return kSuccess;
  }
  const int result = host().Request_get_status_any(count, looks.theirs(), index, flag, status);
  if (*flag != 0 && *index == kUndefined && !looks.ours().empty()) *flag = 0;
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Request_get_status_some, (int count, const Request* requests, int* ended, int* indices, Status* statuses)) {
  Looks looks(count, requests);
  if (!looks)
    return passed(job, Function::Request_get_status_some, why_passed(job),
                  [&] { return host().Request_get_status_some(count, requests, ended, indices, statuses); });
  std::vector<Status> theirs(static_cast<std::size_t>(count) + 1);
  const int result = host().Request_get_status_some(count, looks.theirs(), ended, indices, theirs.data());
  if (*ended == kUndefined && looks.ours().empty()) return result;
  std::vector<std::pair<int, Status>> all;
  all.reserve(theirs.size());
  for (int k = 0; k < *ended; ++k) all.emplace_back(indices[k], theirs[static_cast<std::size_t>(k)]);
  for (const int i : looks.ours()) {
    if (looks.is_ready(i)) all.emplace_back(i, looks.status(i));
  }
  std::ranges::sort(all, {}, &std::pair<int, Status>::first);
  *ended = static_cast<int>(all.size());
  for (std::size_t k = 0; k < all.size(); ++k) {
    indices[k] = all[k].first;
    if (statuses != ignored()) put_status(&statuses[k], all[k].second);
  }
  return result;
}
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
