// What completes operations. A request is looked at without being freed (MPI_Request_get_status) until all that belongs to it is there, and then
// freed by the host's own MPI_Wait, which cannot block any more.
#include <sched.h>

#include <algorithm>

#include "lacuna/mpi/messages.hpp"

namespace lacuna::mpi {
namespace {

// Whether one part of a pair is complete, whoever's it is.
bool ready(Job& job, Request request) {
  if (request == host().no_request) return true;
  if (Operation* operation = job.operations.find(request); operation != nullptr) return poll(job, *operation);
  int over = 0;
  Status status{};
  return host().Request_get_status(request, &over, &status) != kSuccess || over != 0;
}

int end_part(Job& job, Request& request, Status* status) {
  if (request == host().no_request) return kSuccess;
  if (Operation* operation = job.operations.find(request); operation != nullptr) return finish(job, *operation, &request, status);
  return host().Wait(&request, status);
}

void poll_payload(Job& job, Operation& operation) {
  const std::optional<base::Result<protocol::Status>> moved = job.ranks->test(operation.payload);
  if (!moved) return;
  operation.payload = nullptr;
  operation.state = Operation::State::done;
  if (!*moved) operation.error = moved->error().code == base::Code::truncated ? kErrTruncate : kErrOther;
  if (!*moved && moved->error().code != base::Code::truncated) base::log(base::Level::error, "MPI receive: " + moved->error().text());
  if (operation.began != 0)
    job.report.count(Report::Way::accepted, operation.target.type.get(), operation.target.count, operation.status.source,
                     Bytes::received(operation.status), base::now_ns() - operation.began);
}

}  // namespace

bool poll(Job& job, Operation& operation) {
  if (operation.state == Operation::State::posted) {
    if (operation.pair) {
      const bool first = ready(job, operation.parts[0]);
      if (!ready(job, operation.parts[1]) || !first) return false;
      operation.state = Operation::State::done;
      return true;
    }
    int over = 0;
    operation.status.error = kSuccess;
    const int said = host().Request_get_status(operation.handle, &over, &operation.status);
    if (said == kSuccess && over == 0) return false;
    // The host's MPI_Wait may say it again, or not: MPICH forgets what became of a persistent request that it has told of.
    operation.error = said != kSuccess ? said : operation.status.error;
    operation.raised = said != kSuccess;
    operation.state = Operation::State::done;
    if (operation.receives) arrived(job, operation);
  }
  if (operation.state == Operation::State::moving) poll_payload(job, operation);
  return operation.state == Operation::State::done;
}

int finish(Job& job, Operation& operation, Request* request, Status* status) {
  int result = kSuccess;
  Status theirs{};
  if (operation.pair) {
    Status sent{};
    const int of_send = end_part(job, operation.parts[0], &sent);
    result = end_part(job, operation.parts[1], &operation.status);
    if (result == kSuccess) result = of_send;
  }
  Request handle = operation.handle;
  if (operation.generalized) {
    host().Grequest_complete(handle);
    host().Wait(&handle, &theirs);
  } else if (!operation.taken) {
    const int said = host().Wait(&handle, &theirs);
    if (said != kSuccess) {
      operation.raised = true;
      operation.error = said;
    }
    if (!operation.receives) operation.status = theirs;
  }
  put_status(status, operation.status);
  if (operation.error != kSuccess) result = operation.raised ? operation.error : raise(operation.comm, operation.error);
  if (operation.persistent && handle == operation.handle) {  // Open MPI frees one that failed
    operation.active = false;
    operation.state = Operation::State::posted;
    operation.error = kSuccess;
    operation.raised = operation.taken = false;
  } else {
    job.operations.remove(operation.handle);
    if (request != nullptr) *request = host().no_request;
  }
  return result;
}

void poll_orphans(Job& job) {
  auto& orphans = job.operations.orphans();
  if (orphans.empty()) return;
  std::erase_if(orphans, [&](const std::unique_ptr<Operation>& orphan) {
    if (!poll(job, *orphan)) return false;
    Request handle = orphan->handle;
    if (orphan->generalized) host().Grequest_complete(handle);
    if (orphan->persistent) {
      host().Request_free(&handle);
    } else {
      host().Wait(&handle, ignored());
    }
    return true;
  });
}

void poll_receives(Job& job) {
  job.operations.each([&](Operation& operation) {
    if (operation.active && operation.receives) poll(job, operation);
  });
}

void pause(int& rounds) {
  constexpr int kRoundsPerYield = 1024;  // ranks may be more than CPUs
  if (++rounds % kRoundsPerYield == 0) {
    sched_yield();
  } else {
    base::cpu_relax();
  }
}

void wait_for(Job& job, Operation& operation) {
  for (int rounds = 0;;) {
    {
      const auto lock = job.enter();
      if (poll(job, operation)) return;
    }
    pause(rounds);
  }
}

}  // namespace lacuna::mpi
