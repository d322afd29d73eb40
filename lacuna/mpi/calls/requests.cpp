// MPI_Wait, MPI_Test and their like, and what else is done to requests.
//
// Each is the host's call, of the same requests, and then what belongs to those of ours that it has completed.
#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

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

// What is remembered of it.
std::optional<Remembered> take_remembered(Job* j, Request request) {
  if (!takes_messages(j) || j->remembered.empty()) return std::nullopt;
  poll_orphans(*j);
  return j->remembered.take(request);
}

// One that the host has completed.
int end_remembered(Job& j, Remembered& what, int error, Status& seen) {
  return leaves_more(what, error, seen) ? raise(Call::completion, complete(j, what, error, seen, &seen)) : error;
}

int end_one(Job& j, Operations::Taken taken, Request* request, Status* status) {
  wait_for(j, *taken.mapped());
  const Ended ended = [&] {
    const auto lock = j.enter();
    return end(j, std::move(taken), request, status);
  }();
  return raise(ended.persistent ? Call::message : Call::completion, ended);
}

Status status_of_none() {
  Request none = host().no_request;
  Status status{};
  host().Wait(&none, &status);
  return status;
}

// Whether something is remembered of some of them, and the others are the host's. False also where one needs more than
// one call of the host's: a long one is looked at as soon as it is there.
bool are_remembered(Job& j, int count, const Request* requests) {
  bool some = false;
  for (int i = 0; i < count; ++i) {
    if (const Remembered* const what = j.remembered.find(requests[i]); what != nullptr) {
      some = true;
      if (!may_be_remembered(j, what->bytes)) return false;
    } else if (!j.operations.empty() && j.operations.find(requests[i]) != nullptr) {
      return false;
    }
  }
  return some;
}

// What belongs to those that MPI_Waitall has completed, whose handles were these; returns what it returns.
int end_all_remembered(Job& j, int count, const Request* handles, const Request* requests, Status* seen, int result) {
  struct Descriptors {
    int index;
    Remembered what;
  };
  std::vector<Descriptors> later;  // to wait for one is to look at all that are in the table
  std::optional<Ended> failed;
  const auto ended = [&](int i, const Ended& how) {
    if (how.error == kSuccess) return;
    if (result == kSuccess && !failed) std::for_each(seen, seen + count, [](Status& each) { each.error = kSuccess; });
    seen[i].error = how.error;
    if (!failed) failed = how;
  };
  for (int i = 0; i < count; ++i) {
    Remembered what;
    if (requests[i] != host().no_request || !j.remembered.take_ended(handles[i], what)) continue;
    if (!leaves_more(what, result == kSuccess ? kSuccess : seen[i].error, seen[i])) continue;
    if (bytes_of(seen[i]) != Descriptor::kBytes) {
      ended(i, complete(j, what, kSuccess, seen[i], &seen[i]));
      continue;
    }
    try {
      at_second_try(j, [&] { later.emplace_back(); });
      later.back() = {.index = i, .what = std::move(what)};
    } catch (const std::bad_alloc&) {
      ended(i, {.error = kErrNoMem, .raised = false, .persistent = false, .comm = what.comm});
    }
  }
  for (Descriptors& one : later) ended(one.index, complete(j, one.what, kSuccess, seen[one.index], &seen[one.index]));
  return result == kSuccess && failed ? raise_in_status(*failed) : result;
}

// Of requests that the host completes alone: by one call. Nothing: there are others.
bool wait_all_remembered(Job& j, int count, Request* requests, Status* statuses, int& result) {
  if (j.remembered.empty() || count < 0 || !j.operations.orphans().empty() || !are_remembered(j, count, requests)) return false;
  const RememberedRequests::Ending ending(j.remembered);
  constexpr int kFew = 32;
  if (count <= kFew) {
    std::array<Request, kFew> handles;  // NOLINT(cppcoreguidelines-pro-type-member-init): as many as there are
    std::array<Status, kFew> few;       // NOLINT(cppcoreguidelines-pro-type-member-init): the host writes them
    std::copy_n(requests, count, handles.data());
    Status* const seen = statuses != ignored() ? statuses : few.data();
    result = end_all_remembered(j, count, handles.data(), requests, seen, host().Waitall(count, requests, seen));
    return true;
  }
  Room<Request> handles;
  handles->assign(requests, requests + count);
  if (statuses != ignored()) {
    result = end_all_remembered(j, count, handles->data(), requests, statuses, host().Waitall(count, requests, statuses));
    return true;
  }
  Statuses many(count);
  result = host().Waitall(count, requests, many.data());
  many.written(count);
  result = end_all_remembered(j, count, handles->data(), requests, many.data(), result);
  return true;
}

// One by one as the host completes them, so that the bytes of one move while others are awaited.
int wait_all(Job& j, int count, Request* requests, Status* statuses) {
  Batch batch(j, count, requests);
  AtOnce now(batch);
  std::vector<int> indices(std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, AtOnce::kMost));
  std::vector<Status> theirs(indices.size());
  Outcomes outcomes;
  const Status of_none = status_of_none();
  for (int i = 0; i < count; ++i) outcomes.all->push_back({.index = i, .status = of_none, .how = {}});
  const auto at = [&](int i) -> Outcomes::One& { return (*outcomes.all)[static_cast<std::size_t>(i)]; };
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

// Whether one of ours is not complete, so that the host need not look at all of them: a program may ask thousands of
// times. It goes on where the last call was told no. Now and then the host looks all the same: MPICH tells of one that
// has failed before the others are complete.
bool waits_for_one(Job& j, int count, const Request* requests) {
  constexpr int kCallsPerLook = 64;
  struct Last {
    const Request* requests = nullptr;
    int count = 0, index = 0, calls = 0;
  };
  static thread_local Last last;
  if (last.requests != requests || last.count != count) last = {.requests = requests, .count = count};
  if (++last.calls % kCallsPerLook == 0) return false;
  const auto lock = j.enter();
  poll_orphans(j);
  let_host_progress(j, 1);
  for (int left = j.operations.some_alone() ? 0 : count; left > 0; --left, last.index = (last.index + 1) % count) {
    const Request request = requests[last.index];
    if (request == host().no_request) continue;
    const Operation* const operation = j.operations.find(request);
    const bool remembered = operation == nullptr && j.remembered.find(request) != nullptr;
    if (!remembered && (operation == nullptr || operation->persistent || operation->state != Operation::State::posted)) return false;
    Status status{};
    const std::optional<bool> complete = is_complete(j, request, status);
    if (!complete) return false;
    if (!*complete) return true;
  }
  return false;
}

int test_all(Job& j, int count, Request* requests, int* flag, Status* statuses) {
  *flag = 0;
  if (waits_for_one(j, count, requests)) return kSuccess;
  Batch batch(j, count, requests, Batch::Takes::ended);
  if (!batch.all_ready_alone()) return kSuccess;
  batch.make_room(count);
  Outcomes outcomes;
  outcomes.all->reserve(static_cast<std::size_t>(count));
  Statuses theirs(count);
  int result = kSuccess;
  {
    const Batch::Hold hold(batch);
    if (batch.is_late()) batch.look_at(0, count);
    result = host().Testall(count, batch.theirs(), flag, theirs.data());
    theirs.written(count);
    const bool failed = std::any_of(theirs.data(), theirs.data() + count, [](const Status& each) { return each.error != kSuccess; });
    if ((*flag == 0 && !failed) || (result != kSuccess && result != kErrInStatus)) return result;
    for (int i = 0; i < count; ++i) {
      if (!batch.is_alone(i) && theirs[i].error != kErrPending) batch.ended(i, theirs[i], theirs[i].error);
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
    outcomes.all->push_back({.index = i, .status = status, .how = how});
  }
  outcomes.put(statuses);
  return outcomes.result();
}

// A call that is about no request of ours.
template <class Pass>
int passed_by_host(Job* j, Function function, const Pass& pass) {
  return passed(j, function, why_passed(j), pass);
}

}  // namespace

int wait(Request* request, Status* status, bool counts) {
  Job* const j = job;
  waits(j);
  if (auto what = take_remembered(j, *request)) {
    Status mine{};
    Status& seen = status == ignored() ? mine : *status;
    const int error = host().Wait(request, &seen);
    return end_remembered(*j, *what, error, seen);
  }
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
  const Request handle = *request;
  if (auto what = take_remembered(j, handle)) {
    Status mine{};
    Status& seen = status == ignored() ? mine : *status;
    const int error = host().Test(request, flag, &seen);
    if (*flag != 0) return end_remembered(*j, *what, error, seen);
    j->remembered.add(handle, std::move(*what));
    return error;
  }
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
  waits(j);
  int result = kSuccess;
  if (takes_messages(j) && wait_all_remembered(*j, count, requests, statuses, result)) return result;
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

}  // namespace lacuna::mpi
