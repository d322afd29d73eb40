// MPI_Start and MPI_Startall, and what else is done to requests that are not complete.
#include <algorithm>
#include <span>
#include <utility>

#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

// Does what comes before the host's start of a request of ours; a receive that finds its message in the stash is under
// way without it. What the start fails with.
int prepare(Job& j, Operation& operation, Starts& starts) {
  operation.state = Operation::State::posted;
  operation.status = {};
  operation.began = j.report.on() ? base::now_ns() : 0;
  if (operation.offers) {
    if (const int wrong = prepare_start(j, operation, starts); wrong != kSuccess) return wrong;
  }
  if (operation.standing != nullptr) {
    if (operation.lost == kSuccess) operation.standing->start();
    operation.error = operation.lost;
    operation.state = operation.lost == kSuccess ? Operation::State::moving : Operation::State::done;
    operation.active = true;
    starts = Starts::already;
    j.operations.taken_while_here(operation);
  } else if (operation.collection != nullptr) {
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
    if (j.looks()) j.look_at(LineTimes::kByTurns);  // so that others, which may choose still, hear of this rank
    result = start(j, requests, wrong, comm);
  }
  return wrong == kSuccess ? result : raise(Call::message, comm, wrong);
}

}  // namespace

LACUNA_MPI_CALL(Start, (Request * request)) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, Function::Start, why_passed(j), [&] { return host().Start(request); });
  return start(*j, {request, 1});
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Startall, (int count, Request* requests)) {
  Job* const j = job;
  if (!concerns_us(j, count, requests))
    return passed(j, Function::Startall, why_passed(j), [&] { return host().Startall(count, requests); });
  return start(*j, {requests, static_cast<std::size_t>(count)});
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Request_free, (Request * request)) {
  Job* const j = job;
  if (!concerns_us(j, 1, request)) return passed(j, Function::Request_free, why_passed(j), [&] { return host().Request_free(request); });
  const auto lock = j->enter();
  promote(*j, *request);
  const Operation* const operation = j->operations.find(*request);
  if (operation == nullptr) return passed(j, Function::Request_free, why_passed(j), [&] { return host().Request_free(request); });
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
  if (!concerns_us(j, 1, request)) return passed(j, Function::Cancel, why_passed(j), [&] { return host().Cancel(request); });
  const auto lock = j->enter();
  const Operation* const operation = j->operations.find(*request);
  // What is matched is not cancelled.
  if (operation != nullptr && (operation->generalized || operation->outgoing != nullptr || operation->state != Operation::State::posted))
    return kSuccess;
  return host().Cancel(request);
}
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
