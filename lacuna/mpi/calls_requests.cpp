// MPI_Wait, MPI_Test and their like, and what else is done to requests.
//
// Among the requests of one call, those that are operations of ours are polled one by one; the others go to the host together.
#include <algorithm>

#include "lacuna/mpi/calls.hpp"

namespace lacuna::mpi {
namespace {

bool concerns_us(Job* j, int count, const Request* requests) {
  if (!takes_messages(j)) return false;
  const auto lock = j->enter();
  if (j->operations.empty() && j->operations.orphans().empty()) return false;
  return !j->operations.orphans().empty() ||
         std::any_of(requests, requests + std::max(count, 0), [&](Request request) { return j->operations.find(request) != nullptr; });
}

// The requests of a call: ours, by their indices, and a copy of all with null requests in their places, which the host takes.
class Batch {
 public:
  Batch(Job& j, int count, Request* requests, Status* statuses)
      : job_(j), requests_(requests), statuses_(statuses), handles_(requests, requests + count), results_(handles_.size() + 1) {
    for (int i = 0; i < count; ++i) {
      const Operation* operation = j.operations.find(requests[i]);
      if (operation == nullptr || !operation->active) continue;
      ours_.push_back(i);
      handles_[static_cast<std::size_t>(i)] = host().no_request;
    }
  }

  [[nodiscard]] const std::vector<int>& ours() const { return ours_; }
  [[nodiscard]] const Request* theirs() const { return handles_.data(); }
  [[nodiscard]] bool is_ready(int i) { return poll(job_, *job_.operations.find(requests_[i])); }
  [[nodiscard]] bool ours_are_ready() {
    bool ready = true;
    for (const int i : ours_) ready = is_ready(i) && ready;
    return ready;
  }
  [[nodiscard]] bool theirs_are_ready() const {
    return std::ranges::all_of(handles_, [](Request request) {
      int over = 0;
      Status status{};
      return request == host().no_request || host().Request_get_status(request, &over, &status) != kSuccess || over != 0;
    });
  }

  // All, which are complete, or the host's to wait for. MPI_ERROR of a status is set only if one of them failed.
  int end_all() {
    int result = host().Waitall(size(), handles_.data(), results_.data());
    bool failed = result != kSuccess;
    std::vector<int> errors(handles_.size(), kSuccess);
    for (std::size_t i = 0; i < handles_.size() && result == kErrInStatus; ++i) errors[i] = results_[i].error;
    for (const int i : ours_) {
      const auto k = static_cast<std::size_t>(i);
      errors[k] = finish(job_, *job_.operations.find(requests_[i]), &requests_[i], &results_[k]);
      handles_[k] = requests_[i];
      if (errors[k] == kSuccess) continue;
      failed = true;
      result = kErrInStatus;
    }
    std::ranges::copy(handles_, requests_);
    for (std::size_t i = 0; i < handles_.size() && statuses_ != ignored(); ++i) {
      put_status(&statuses_[i], results_[i]);
      if (failed) statuses_[i].error = errors[i];
    }
    return result;
  }
  // As MPI_Testany does it, of the host's.
  int test_any_of_theirs(int* index, int* flag, Status* status) {
    const int result = host().Testany(size(), handles_.data(), index, flag, status);
    if (*flag != 0 && *index != kUndefined) requests_[*index] = handles_[static_cast<std::size_t>(*index)];
    return result;
  }
  struct Ended {
    int index;
    Status status;
    int error;
  };
  // Adds the host's that are complete; false: none is active.
  bool test_some_of_theirs(std::vector<Ended>& ended, int& result) {
    int count = 0;
    std::vector<int> indices(handles_.size() + 1);
    result = host().Testsome(size(), handles_.data(), &count, indices.data(), results_.data());
    if (count == kUndefined) return false;
    for (std::size_t n = 0; std::cmp_less(n, count); ++n) {
      requests_[indices[n]] = handles_[static_cast<std::size_t>(indices[n])];
      ended.push_back({indices[n], results_[n], result == kErrInStatus ? results_[n].error : kSuccess});
    }
    return true;
  }

 private:
  [[nodiscard]] int size() const { return static_cast<int>(handles_.size()); }
  Job& job_;
  Request* requests_;
  Status* statuses_;
  std::vector<int> ours_;
  std::vector<Request> handles_;
  std::vector<Status> results_;
};

int test_any(Job& j, int count, Request* requests, int* index, int* flag, Status* status) {
  const auto lock = j.enter();
  poll_orphans(j);
  Batch batch(j, count, requests, ignored());
  for (const int i : batch.ours()) {
    if (!batch.is_ready(i)) continue;
    *flag = 1;
    *index = i;
    return finish(j, *j.operations.find(requests[i]), &requests[i], status);
  }
  const int result = batch.test_any_of_theirs(index, flag, status);
  if (*flag != 0 && *index == kUndefined && !batch.ours().empty()) *flag = 0;
  return result;
}

int test_some(Job& j, int count, Request* requests, int* ended, int* indices, Status* statuses) {
  const auto lock = j.enter();
  poll_orphans(j);
  Batch batch(j, count, requests, ignored());
  std::vector<Batch::Ended> found;
  for (const int i : batch.ours()) {
    if (!batch.is_ready(i)) continue;
    Status status{};
    const int error = finish(j, *j.operations.find(requests[i]), &requests[i], &status);
    found.push_back({i, status, error});
  }
  int result = kSuccess;
  const bool active = batch.test_some_of_theirs(found, result) || !batch.ours().empty();
  *ended = active ? static_cast<int>(found.size()) : kUndefined;
  const bool failed = std::ranges::any_of(found, [](const auto& one) { return one.error != kSuccess; });
  for (std::size_t k = 0; k < found.size(); ++k) {
    indices[k] = found[k].index;
    if (statuses == ignored()) continue;
    put_status(&statuses[k], found[k].status);
    if (failed) statuses[k].error = found[k].error;
  }
  return failed ? kErrInStatus : result;
}

int start(Job& j, Request* request) {
  Operation* const operation = j.operations.find(*request);
  if (operation == nullptr || operation->active) return host().Start(request);
  operation->state = Operation::State::posted;
  operation->status = {};
  operation->began = j.report.on() ? base::now_ns() : 0;
  if (operation->offers) {
    if (const int wrong = prepare_start(j, *operation); wrong != kSuccess) return raise(operation->comm, wrong);
  }
  if (operation->receives) {
    if (const Probed* found = stashed(j, operation->comm, operation->from, operation->tag); found != nullptr) {
      const std::unique_ptr<Probed> probed = j.comms->find(operation->comm)->take(*found);
      operation->active = true;
      begin_delivery(j, *probed, *operation);
      return kSuccess;
    }
  }
  const int result = host().Start(request);
  operation->active = result == kSuccess;
  return result;
}

}  // namespace

int wait(Request* request, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return host().Wait(request, status);
  Operation* operation = nullptr;
  {
    const auto lock = j->enter();
    operation = j->operations.find(*request);
    poll_orphans(*j);
  }
  if (operation == nullptr || !operation->active) return host().Wait(request, status);
  wait_for(*j, *operation);
  const auto lock = j->enter();
  return finish(*j, *operation, request, status);
}

LACUNA_MPI_CALL MPI_Wait(Request* request, Status* status) { return wait(request, status); }

LACUNA_MPI_CALL MPI_Test(Request* request, int* flag, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return host().Test(request, flag, status);
  const auto lock = j->enter();
  poll_orphans(*j);
  Operation* const operation = j->operations.find(*request);
  if (operation == nullptr || !operation->active) return host().Test(request, flag, status);
  *flag = poll(*j, *operation) ? 1 : 0;
  return *flag == 0 ? kSuccess : finish(*j, *operation, request, status);
}

LACUNA_MPI_CALL MPI_Waitall(int count, Request* requests, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Waitall(count, requests, statuses);
  std::optional<Batch> made;
  for (int rounds = 0;;) {
    {
      const auto lock = j->enter();
      poll_orphans(*j);
      if (!made) made.emplace(*j, count, requests, statuses);
      Batch& batch = *made;
      if (batch.ours_are_ready() && (!j->multiple || batch.theirs_are_ready())) return batch.end_all();
    }
    pause(rounds);
  }
}

LACUNA_MPI_CALL MPI_Testall(int count, Request* requests, int* flag, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Testall(count, requests, flag, statuses);
  const auto lock = j->enter();
  poll_orphans(*j);
  Batch batch(*j, count, requests, statuses);
  const bool ready = batch.ours_are_ready();
  *flag = batch.theirs_are_ready() && ready ? 1 : 0;
  return *flag != 0 ? batch.end_all() : kSuccess;
}

LACUNA_MPI_CALL MPI_Testany(int count, Request* requests, int* index, int* flag, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Testany(count, requests, index, flag, status);
  return test_any(*j, count, requests, index, flag, status);
}

LACUNA_MPI_CALL MPI_Waitany(int count, Request* requests, int* index, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Waitany(count, requests, index, status);
  for (int rounds = 0, flag = 0;;) {
    const int result = test_any(*j, count, requests, index, &flag, status);
    if (flag != 0 || result != kSuccess) return result;
    pause(rounds);
  }
}

LACUNA_MPI_CALL MPI_Testsome(int count, Request* requests, int* ended, int* indices, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Testsome(count, requests, ended, indices, statuses);
  return test_some(*j, count, requests, ended, indices, statuses);
}

LACUNA_MPI_CALL MPI_Waitsome(int count, Request* requests, int* ended, int* indices, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Waitsome(count, requests, ended, indices, statuses);
  for (int rounds = 0;;) {
    const int result = test_some(*j, count, requests, ended, indices, statuses);
    if (*ended != 0 || result != kSuccess) return result;
    pause(rounds);
  }
}

LACUNA_MPI_CALL MPI_Request_get_status(Request request, int* flag, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, 1, &request)) return host().Request_get_status(request, flag, status);
  const auto lock = j->enter();
  Operation* const operation = j->operations.find(request);
  if (operation == nullptr || !operation->active) return host().Request_get_status(request, flag, status);
  *flag = poll(*j, *operation) ? 1 : 0;
  if (*flag != 0) put_status(status, operation->status);
  return kSuccess;
}

// Of MPI-4.1. Nothing is ended.
LACUNA_MPI_CALL MPI_Request_get_status_all(int count, const Request* requests, int* flag, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Request_get_status_all(count, requests, flag, statuses);
  const auto lock = j->enter();
  std::vector<Request> all(requests, requests + count);
  Batch batch(*j, count, all.data(), ignored());
  const bool ready = batch.ours_are_ready();
  const int result = host().Request_get_status_all(count, batch.theirs(), flag, statuses);
  if (!ready) *flag = 0;
  for (const int i : batch.ours()) {
    if (*flag != 0 && statuses != ignored()) put_status(&statuses[i], j->operations.find(requests[i])->status);
  }
  return result;
}

LACUNA_MPI_CALL MPI_Request_get_status_any(int count, const Request* requests, int* index, int* flag, Status* status) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Request_get_status_any(count, requests, index, flag, status);
  const auto lock = j->enter();
  std::vector<Request> all(requests, requests + count);
  Batch batch(*j, count, all.data(), ignored());
  for (const int i : batch.ours()) {
    if (!batch.is_ready(i)) continue;
    *flag = 1;
    *index = i;
    put_status(status, j->operations.find(requests[i])->status);
    return kSuccess;
  }
  const int result = host().Request_get_status_any(count, batch.theirs(), index, flag, status);
  if (*flag != 0 && *index == kUndefined && !batch.ours().empty()) *flag = 0;
  return result;
}

LACUNA_MPI_CALL MPI_Request_get_status_some(int count, const Request* requests, int* ended, int* indices, Status* statuses) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Request_get_status_some(count, requests, ended, indices, statuses);
  const auto lock = j->enter();
  std::vector<Request> all(requests, requests + count);
  Batch batch(*j, count, all.data(), ignored());
  const int result = host().Request_get_status_some(count, batch.theirs(), ended, indices, statuses);
  if (*ended == kUndefined && !batch.ours().empty()) *ended = 0;
  for (const int i : batch.ours()) {
    if (!batch.is_ready(i)) continue;
    if (statuses != ignored()) put_status(&statuses[*ended], j->operations.find(requests[i])->status);
    indices[(*ended)++] = i;
  }
  return result;
}

LACUNA_MPI_CALL MPI_Start(Request* request) {
  Job* const j = job;
  if (!takes_messages(j)) return host().Start(request);
  const auto lock = j->enter();
  return start(*j, request);
}

LACUNA_MPI_CALL MPI_Startall(int count, Request* requests) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return host().Startall(count, requests);
  const auto lock = j->enter();
  for (int i = 0; i < count; ++i) {
    if (const int result = start(*j, &requests[i]); result != kSuccess) return result;
  }
  return kSuccess;
}

LACUNA_MPI_CALL MPI_Request_free(Request* request) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return host().Request_free(request);
  const auto lock = j->enter();
  const Operation* const operation = j->operations.find(*request);
  if (operation == nullptr) return host().Request_free(request);
  if (operation->active) {
    j->operations.orphan(*request);
    *request = host().no_request;
    return kSuccess;
  }
  j->operations.remove(*request);
  return host().Request_free(request);
}

LACUNA_MPI_CALL MPI_Cancel(Request* request) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return host().Cancel(request);
  const auto lock = j->enter();
  const Operation* const operation = j->operations.find(*request);
  // What is matched is not cancelled.
  if (operation != nullptr && (operation->generalized || operation->state != Operation::State::posted)) return kSuccess;
  return host().Cancel(request);
}

}  // namespace lacuna::mpi
