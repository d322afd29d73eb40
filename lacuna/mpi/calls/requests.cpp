// MPI_Wait, MPI_Test and their like, and what else is done to requests.
//
// Each is the host's call, of the same requests, and then what belongs to those of ours that it has completed.
#include <sched.h>

#include <algorithm>
#include <span>
#include <utility>

#include "lacuna/mpi/calls/calls.hpp"
#include "lacuna/mpi/messages/batch.hpp"

namespace lacuna::mpi {
namespace {

// An operation whose request one call is about, out of the table. Empty: it is the host's alone.
Operations::Taken take(Job* j, Request request) {
  if (!takes_messages(j)) return {};
  const auto lock = j->enter();
  poll_orphans(*j);
  return j->operations.empty() ? Operations::Taken() : j->operations.take(request);
}

int end_one(Job& j, Operations::Taken taken, Request* request, Status* status) {
  wait_for(j, *taken.mapped());
  const Ended ended = [&] {
    const auto lock = j.enter();
    return end(j, std::move(taken), request, status);
  }();
  return raise(ended.persistent ? Call::message : Call::completion, ended);
}

// A moment of waiting for a batch. Where threads call MPI at once, the others get the lock.
void pause_in(const Batch& batch, int& rounds) {
  if (batch.holds()) {
    sched_yield();
  } else {
    pause(rounds);
  }
}

// MPI_Waitany, or MPI_Testany.
int any(Job& j, bool waits, int count, Request* requests, int* index, int* flag, Status* status) {
  Batch batch(j, count, requests, Batch::Takes::ended);
  for (int rounds = 0;; pause_in(batch, rounds)) {
    *flag = 1;
    *index = batch.ready_alone();
    if (*index >= 0) return raise(Call::completions, batch.end(*index, status));
    const bool alone = batch.some_alone();
    Status theirs{};
    int result = kSuccess;
    {
      const Batch::Hold hold(batch);
      result = waits && !alone && !batch.holds() ? host().Waitany(count, batch.theirs(), index, &theirs)
                                                 : host().Testany(count, batch.theirs(), index, flag, &theirs);
      if (*flag != 0 && *index >= 0) batch.ended(*index);
    }
    if (*flag != 0 && *index >= 0) return raise(Call::completions, batch.end(*index, theirs, result, status));
    if (result == kSuccess && alone) *flag = 0;
    if (*flag != 0) put_status(status, theirs);
    if (result != kSuccess || *flag != 0 || !waits) return result;
  }
}

// MPI_Waitsome, or MPI_Testsome.
int some(Job& j, bool waits, int count, Request* requests, int* ended, int* indices, Status* statuses) {
  Batch batch(j, count, requests, Batch::Takes::ended);
  batch.make_room(count);
  Outcomes outcomes;
  outcomes.all.reserve(static_cast<std::size_t>(count));
  for (int rounds = 0;; pause_in(batch, rounds)) {
    Statuses theirs(count);
    for (int i = batch.ready_alone(); i >= 0; i = batch.ready_alone()) {
      Status status{};
      const Ended how = batch.end(i, &status);
      outcomes.all.push_back({.index = i, .status = status, .how = how});
    }
    const bool alone = batch.some_alone();
    const auto call = waits && !alone && !batch.holds() && outcomes.all.empty() ? host().Waitsome : host().Testsome;
    int result = kSuccess;
    {
      const Batch::Hold hold(batch);
      if (batch.holds()) batch.let_host_progress();
      result = call(count, batch.theirs(), ended, indices, theirs.data());
      for (int k = 0; k < *ended && (result == kSuccess || result == kErrInStatus); ++k) batch.ended(indices[k]);
    }
    theirs.written(result == kSuccess ? *ended : count);
    if (result != kSuccess && result != kErrInStatus) return result;
    outcomes.host_returned(result);
    const bool none = *ended == kUndefined;
    for (int k = 0; k < *ended; ++k) {
      Status status{};
      const Ended how = batch.end(indices[k], theirs[k], theirs[k].error, &status);
      outcomes.all.push_back({.index = indices[k], .status = status, .how = how});
    }
    *ended = static_cast<int>(outcomes.all.size());
    if (*ended == 0 && none && !alone) {
      *ended = kUndefined;
      return result;
    }
    if (*ended == 0 && waits) continue;
    std::ranges::sort(outcomes.all, {}, &Outcomes::One::index);
    for (int k = 0; k < *ended; ++k) indices[k] = outcomes.all[static_cast<std::size_t>(k)].index;
    outcomes.put(statuses);
    return outcomes.result();
  }
}

Status status_of_none() {
  Request none = host().no_request;
  Status status{};
  host().Wait(&none, &status);
  return status;
}

// One by one as the host completes them, so that the bytes of one move while others are awaited.
int wait_all(Job& j, int count, Request* requests, Status* statuses) {
  Batch batch(j, count, requests);
  AtOnce now(batch);
  std::vector<int> indices(std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, AtOnce::kMost));
  std::vector<Status> theirs(indices.size());
  Outcomes outcomes;
  const Status of_none = status_of_none();
  for (int i = 0; i < count; ++i) outcomes.all.push_back({.index = i, .status = of_none, .how = {}});
  const auto at = [&](int i) -> Outcomes::One& { return outcomes.all[static_cast<std::size_t>(i)]; };
  for (int rounds = 0;; pause(rounds)) {
    for (int i = batch.ready_alone(); i >= 0; i = batch.ready_alone()) at(i).how = batch.end(i, &at(i).status);
    const bool alone = batch.some_alone();
    now.fill();
    int ended = 0;
    for (Status& status : theirs) status.error = kSuccess;  // written only where one failed
    const int result = (alone ? host().Testsome : host().Waitsome)(now.size(), now.theirs(), &ended, indices.data(), theirs.data());
    if (result != kSuccess && result != kErrInStatus) return result;
    outcomes.host_returned(result);
    for (int k = 0; k < ended; ++k) {
      const int i = now.take(indices[static_cast<std::size_t>(k)]);
      const Status& status = theirs[static_cast<std::size_t>(k)];
      if (batch.is_ours(i)) {
        batch.host_completed(i, status, status.error);
      } else {
        at(i).how = batch.end(i, status, status.error, &at(i).status);
      }
    }
    if (ended != kUndefined) continue;
    if (now.last() && !alone) break;
    now.drop();
  }
  outcomes.put(statuses);
  return outcomes.result();
}

int test_all(Job& j, int count, Request* requests, int* flag, Status* statuses) {
  Batch batch(j, count, requests, Batch::Takes::ended);
  *flag = 0;
  if (!batch.all_ready_alone()) return kSuccess;
  batch.make_room(count);
  Outcomes outcomes;
  outcomes.all.reserve(static_cast<std::size_t>(count));
  Statuses theirs(count);
  int result = kSuccess;
  {
    const Batch::Hold hold(batch);
    result = host().Testall(count, batch.theirs(), flag, theirs.data());
    theirs.written(count);
    const bool failed = std::any_of(theirs.data(), theirs.data() + count, [](const Status& each) { return each.error != kSuccess; });
    if ((*flag == 0 && !failed) || (result != kSuccess && result != kErrInStatus)) return result;
    for (int i = 0; i < count; ++i) {
      if (!batch.is_alone(i) && theirs[i].error != kErrPending) batch.ended(i);
    }
  }
  outcomes.host_returned(result);
  for (int i = 0; i < count; ++i) {
    const Status& each = theirs[i];
    const int error = each.error;
    Status status{};
    Ended how{.error = error, .raised = true, .persistent = false, .comm = {}};
    if (batch.is_alone(i)) {
      how = batch.end(i, &status);
    } else if (error != kErrPending) {  // where one failed, MPICH ends those that are complete
      how = batch.end(i, each, error, &status);
    }
    outcomes.all.push_back({.index = i, .status = status, .how = how});
  }
  outcomes.put(statuses);
  return outcomes.result();
}

// Does what comes before the host's start of a request of ours; a receive that finds its message in the stash is under
// way without it. What the start fails with.
int prepare(Job& j, Operation& operation, Starts& starts) {
  operation.state = Operation::State::posted;
  operation.status = {};
  operation.began = j.report.on() ? base::now_ns() : 0;
  if (operation.offers) {
    if (const int wrong = prepare_start(j, operation, starts); wrong != kSuccess) return wrong;
  }
  if (operation.collection != nullptr) {
    operation.collection->load(j);
  } else if (operation.receives) {
    if (Probed* found = stashed(j, operation.comm, operation.from, operation.tag); found != nullptr) {
      begin_delivery(j, *found, operation);
      if (!found->received && operation.error == kErrNoMem) {  // it stays in the stash
        operation.error = kSuccess;
        return kErrNoMem;
      }
      j.comms->find(operation.comm)->take(*found);
      operation.active = true;
      starts = Starts::already;
      j.operations.taken_while_here(operation);
    }
  }
  return kSuccess;
}

// Without memory it does not start.
int prepare_or_not(Job& j, Operation& operation, Starts& starts) try {
  return prepare(j, operation, starts);
} catch (const std::bad_alloc&) {
  if (operation.outgoing != nullptr) j.transport->leave(std::move(operation.outgoing));
  return kErrNoMem;
}

// The host has started these, or refused to. It may have put another request in a handle's place: Open MPI does where
// the last send of a persistent request is over for the program, but not yet for itself.
void started(Job& j, Request before, Request after, bool starts) {
  Operation* const operation = before == after ? j.operations.find(after) : j.operations.rename(before, after);
  if (operation == nullptr) return;
  operation->active = starts;
  after_start(j, *operation, starts);
}

// Requests of an array that the host starts by one call.
struct Together {
  std::vector<Request> handles;
  std::vector<std::pair<std::size_t, bool>> places;  // of each in the array; whether it is ours to start
};
int start_together(Job& j, std::span<Request> requests, Together& these) {
  if (these.handles.empty()) return kSuccess;
  std::vector<Request>& handles = these.handles;
  const int result = handles.size() == 1 ? host().Start(handles.data()) : host().Startall(static_cast<int>(handles.size()), handles.data());
  for (std::size_t k = 0; k < handles.size(); ++k) {
    const auto& [place, ours] = these.places[k];
    const Request before = std::exchange(requests[place], handles[k]);
    if (ours) started(j, before, handles[k], result == kSuccess);
  }
  these.handles.clear();
  these.places.clear();
  return result;
}

// In the array's order, which is that of the messages: all of ours are prepared, then the host starts them by one call.
// Preparing makes the host look after its requests, and Open MPI 5 takes a partitioned send for complete whose first
// partition is not ready yet when it does. `wrong`: what one could not be prepared for, which its communicator `comm`
// has to be told.
int start(Job& j, std::span<Request> requests, int& wrong, Comm& comm) {
  if (requests.size() == 1 && j.operations.find(requests.front()) == nullptr)
    return passed(&j, Function::Start, Why::of_host, [&] { return host().Start(requests.data()); });
  // Before anything is prepared
  if (const auto none = std::ranges::find(requests, host().no_request); none != requests.end()) {
    Request null = *none;
    return host().Start(&null);
  }
  Together together;
  together.handles.reserve(requests.size());  // before anything is prepared
  together.places.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size() && wrong == kSuccess; ++i) {
    Operation* const operation = j.operations.find(requests[i]);
    const bool ours = operation != nullptr && !operation->active;
    Starts starts = Starts::by_host;
    if (ours) wrong = prepare_or_not(j, *operation, starts);  // where one fails, those before it are under way
    if (wrong != kSuccess) comm = operation->comm;
    if (wrong != kSuccess || starts == Starts::already) continue;
    if (starts == Starts::instead) {
      int result = start_together(j, requests, together);
      if (result == kSuccess) result = send_instead(j, *operation);
      if (result != kSuccess) return result;
      continue;
    }
    together.handles.push_back(requests[i]);
    together.places.emplace_back(i, ours);
  }
  return start_together(j, requests, together);
}
// The program's error handler may call MPI, so it is called without the lock.
int start(Job& j, std::span<Request> requests) {
  int result = kSuccess, wrong = kSuccess;
  Comm comm{};
  {
    const auto lock = j.enter();
    result = start(j, requests, wrong, comm);
  }
  return wrong == kSuccess ? result : raise(Call::message, comm, wrong);
}

}  // namespace

namespace {

// A call that is about no request of ours.
template <class Pass>
int passed_by_host(Job* j, Function function, const Pass& pass) {
  return passed(j, function, why_passed(j), pass);
}

}  // namespace

int wait(Request* request, Status* status, bool counts) {
  Job* const j = job;
  Operations::Taken taken = take(j, *request);
  if (taken.empty()) return passed_by_host(counts ? j : nullptr, Function::Wait, [&] { return host().Wait(request, status); });
  if (!taken.mapped()->alone()) {
    Request left = *request;
    Status theirs{};
    const int error = host().Wait(&left, &theirs);
    const auto lock = j->enter();
    host_completed(*j, *taken.mapped(), left, theirs, error);
  }
  return end_one(*j, std::move(taken), request, status);
}

LACUNA_MPI_CALL(Wait, (Request * request, Status* status)) { return wait(request, status, true); }
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Test, (Request * request, int* flag, Status* status)) {
  Job* const j = job;
  Operations::Taken taken = take(j, *request);
  if (taken.empty()) return passed_by_host(j, Function::Test, [&] { return host().Test(request, flag, status); });
  Operation& operation = *taken.mapped();
  Request left = *request;
  Status theirs{};
  const int error = operation.alone() ? kSuccess : host().Test(&left, flag, &theirs);
  {
    const auto lock = j->enter();
    if (operation.alone()) {
      *flag = poll(*j, operation) ? 1 : 0;
    } else if (*flag != 0) {
      host_completed(*j, operation, left, theirs, error);
    }
    if (*flag == 0) {
      j->operations.put_back(std::move(taken));
      return error;
    }
  }
  return end_one(*j, std::move(taken), request, status);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Waitall, (int count, Request* requests, Status* statuses)) {
  Job* const j = job;
  return concerns_us(j, count, requests) ? wait_all(*j, count, requests, statuses)
                                         : passed_by_host(j, Function::Waitall, [&] { return host().Waitall(count, requests, statuses); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Testall, (int count, Request* requests, int* flag, Status* statuses)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? test_all(*j, count, requests, flag, statuses)
             : passed_by_host(j, Function::Testall, [&] { return host().Testall(count, requests, flag, statuses); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Testany, (int count, Request* requests, int* index, int* flag, Status* status)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? any(*j, false, count, requests, index, flag, status)
             : passed_by_host(j, Function::Testany, [&] { return host().Testany(count, requests, index, flag, status); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Waitany, (int count, Request* requests, int* index, Status* status)) {
  Job* const j = job;
  int flag = 0;
  return may_concern_us(j, count, requests)
             ? any(*j, true, count, requests, index, &flag, status)
             : passed_by_host(j, Function::Waitany, [&] { return host().Waitany(count, requests, index, status); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Testsome, (int count, Request* requests, int* ended, int* indices, Status* statuses)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? some(*j, false, count, requests, ended, indices, statuses)
             : passed_by_host(j, Function::Testsome, [&] { return host().Testsome(count, requests, ended, indices, statuses); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Waitsome, (int count, Request* requests, int* ended, int* indices, Status* statuses)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? some(*j, true, count, requests, ended, indices, statuses)
             : passed_by_host(j, Function::Waitsome, [&] { return host().Waitsome(count, requests, ended, indices, statuses); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Start, (Request * request)) {
  Job* const j = job;
  if (!takes_messages(j)) return passed_by_host(j, Function::Start, [&] { return host().Start(request); });
  return start(*j, {request, 1});
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Startall, (int count, Request* requests)) {
  Job* const j = job;
  if (!concerns_us(j, count, requests)) return passed_by_host(j, Function::Startall, [&] { return host().Startall(count, requests); });
  return start(*j, {requests, static_cast<std::size_t>(count)});
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Request_free, (Request * request)) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return passed_by_host(j, Function::Request_free, [&] { return host().Request_free(request); });
  const auto lock = j->enter();
  const Operation* const operation = j->operations.find(*request);
  if (operation == nullptr) return passed_by_host(j, Function::Request_free, [&] { return host().Request_free(request); });
  if (operation->active) {
    j->operations.orphan(*request);
    *request = host().no_request;
    return kSuccess;
  }
  j->operations.remove(*request);
  return host().Request_free(request);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Cancel, (Request * request)) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return passed_by_host(j, Function::Cancel, [&] { return host().Cancel(request); });
  const auto lock = j->enter();
  const Operation* const operation = j->operations.find(*request);
  // What is matched is not cancelled.
  if (operation != nullptr && (operation->generalized || operation->outgoing != nullptr || operation->state != Operation::State::posted))
    return kSuccess;
  return host().Cancel(request);
}
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
