// The fake's requests: waiting for them, looking at them, starting, cancelling and freeing them.
#include <algorithm>
#include <utility>

#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {

using mpi::kErrInStatus;
using mpi::kErrPending;
using mpi::kSuccess;
using mpi::kUndefined;

namespace {

using Kind = RequestObject::Kind;

Request null_request() { return reinterpret_cast<Request>(mpi::kRequestNull); }

// Null: a null request, or one that is none.
Held find(Request request) {
  if (request == null_request()) return nullptr;
  const auto found = me->requests.find(request);
  if (found != me->requests.end()) return found->second;
  complain("a request that is none");
  return nullptr;
}

bool is_active(const Held& request) { return request != nullptr && request->active; }

// What a call leaves of one that is over. Errors: the operation's.
int end(Request* handle, Status* status) {
  const Held request = find(*handle);
  if (!is_active(request)) {
    if (status != mpi::ignored()) *status = empty_status();
    return kSuccess;
  }
  if (request->kind == Kind::general) request->query(request->extra, &request->status);
  if (request->kind == Kind::group && !request->parts.empty()) {
    for (const Held& part : request->parts) request->error = std::max(request->error, part->error);
    if (request->start == nullptr) request->status = request->parts.front()->status;  // MPI_Isendrecv's receive
  }
  if (status != mpi::ignored()) {
    const int error = status->error;
    *status = request->status;
    status->error = error;
    status->internal[2] = request->cancelled ? 1 : 0;
  }
  if (request->persistent) {
    request->active = false;
  } else {
    if (request->kind == Kind::general) request->free(request->extra);
    me->requests.erase(*handle);
    *handle = null_request();
  }
  return request->error;
}

bool seen(Request handle) {
  const Held request = find(handle);
  return !is_active(request) || fake::seen(*request);
}

// Waits for some of them; whether that is so.
template <class Enough>
bool await(Lock& lock, bool waits, const Enough& enough) {
  while (!enough()) {
    if (!waits) {
      looked_in_vain(lock);
      return false;
    }
    if (me->world->options.slow == 0) {
      me->world->changed.wait(lock);
    } else {
      me->world->changed.wait_for(lock, std::chrono::microseconds(50));  // what is over may not have been seen
    }
  }
  return true;
}

// MPI_COMM_WORLD, where the request has none, or one that was freed meanwhile.
Comm comm_of(Request request) {
  const Held found = request == null_request() ? nullptr : find(request);
  return found == nullptr || !me->comms.contains(found->comm) ? mpi::host().world : found->comm;
}

int one(bool waits, Request* request, int* flag, Status* status) {
  Comm comm{};
  int error = kSuccess;
  {
    Lock lock = enter();
    comm = comm_of(*request);
    *flag = await(lock, waits, [&] { return seen(*request); }) ? 1 : 0;
    if (*flag != 0) error = end(request, status);
  }
  return error == kSuccess ? kSuccess : raise(comm, error);
}

int any(bool waits, int count, Request* requests, int* index, int* flag, Status* status) {
  Comm comm{};
  int error = kSuccess;
  {
    Lock lock = enter();
    *index = kUndefined;
    const auto found = [&] {
      bool none = true;
      for (int i = 0; i < count; ++i) {
        const Held request = find(requests[i]);
        if (!is_active(request)) continue;
        none = false;
        if (!fake::seen(*request)) continue;
        *index = i;
        return true;
      }
      return none;
    };
    *flag = await(lock, waits, found) ? 1 : 0;
    if (*flag == 0) return kSuccess;
    if (*index == kUndefined) {
      if (status != mpi::ignored()) *status = empty_status();
      return kSuccess;
    }
    comm = comm_of(requests[*index]);
    error = end(&requests[*index], status);
  }
  return error == kSuccess ? kSuccess : raise(comm, error);
}

int some(bool waits, int count, Request* requests, int* ended, int* indices, Status* statuses) {
  bool failed = false;
  Comm comm = mpi::host().world;
  {
    Lock lock = enter();
    me->calls[kLooks] += count;
    std::vector<int> ready;
    bool none = true;
    const auto found = [&] {
      ready.clear();
      none = true;
      for (int i = 0; i < count; ++i) {
        const Held request = find(requests[i]);
        if (!is_active(request)) continue;
        none = false;
        if ((ready.empty() || !me->world->options.singly) && fake::seen(*request)) ready.push_back(i);
      }
      return none || !ready.empty();
    };
    await(lock, waits, found);
    *ended = none ? kUndefined : static_cast<int>(ready.size());
    std::vector<int> errors;
    for (std::size_t k = 0; k < ready.size(); ++k) {
      indices[k] = ready[k];
      const Comm of = comm_of(requests[ready[k]]);
      errors.push_back(end(&requests[ready[k]], statuses == mpi::ignored() ? mpi::ignored() : &statuses[k]));
      if (errors.back() != kSuccess && !std::exchange(failed, true)) comm = of;
    }
    for (std::size_t k = 0; k < errors.size() && failed && statuses != mpi::ignored(); ++k) statuses[k].error = errors[k];
  }
  return failed ? raise(comm, kErrInStatus) : kSuccess;
}

int all(bool waits, int count, Request* requests, int* flag, Status* statuses) {
  bool failed = false;
  Comm comm = mpi::host().world;
  {
    Lock lock = enter();
    const auto over = [&] {
      bool all = true;
      for (int i = 0; i < count; ++i) all = seen(requests[i]) && all;
      return all;
    };
    *flag = await(lock, waits, over) ? 1 : 0;
    if (*flag == 0) return kSuccess;
    std::vector<int> errors;
    for (int i = 0; i < count; ++i) {
      const Comm of = comm_of(requests[i]);
      errors.push_back(end(&requests[i], statuses == mpi::ignored() ? mpi::ignored() : &statuses[i]));
      if (errors.back() != kSuccess && !std::exchange(failed, true)) comm = of;
    }
    for (int i = 0; i < count && failed && statuses != mpi::ignored(); ++i) statuses[i].error = errors[static_cast<std::size_t>(i)];
  }
  return failed ? raise(comm, kErrInStatus) : kSuccess;
}

}  // namespace

bool seen(RequestObject& request) {
  bool over = request.over;
  if (request.kind == Kind::group) {
    over = true;
    for (const Held& part : request.parts) over = fake::seen(*part) && over;
  }
  if (!over) return false;
  if (request.looks == 0) return true;
  --request.looks;
  return false;
}

namespace calls {

int Wait(Request* request, Status* status) {
  int flag = 0;
  return one(true, request, &flag, status);
}
int Test(Request* request, int* flag, Status* status) { return one(false, request, flag, status); }
int Waitany(int count, Request* requests, int* index, Status* status) {
  int flag = 0;
  return any(true, count, requests, index, &flag, status);
}
int Testany(int count, Request* requests, int* index, int* flag, Status* status) {
  return any(false, count, requests, index, flag, status);
}
int Waitsome(int count, Request* requests, int* ended, int* indices, Status* statuses) {
  return some(true, count, requests, ended, indices, statuses);
}
int Testsome(int count, Request* requests, int* ended, int* indices, Status* statuses) {
  return some(false, count, requests, ended, indices, statuses);
}
int Waitall(int count, Request* requests, Status* statuses) {
  int flag = 0;
  return all(true, count, requests, &flag, statuses);
}
int Testall(int count, Request* requests, int* flag, Status* statuses) { return all(false, count, requests, flag, statuses); }

int Request_get_status(Request handle, int* flag, Status* status) {
  Lock lock = enter();
  const Held request = find(handle);
  if (!is_active(request)) {
    *flag = 1;
    if (status != mpi::ignored()) *status = empty_status();
    return kSuccess;
  }
  *flag = fake::seen(*request) ? 1 : 0;
  if (*flag == 0) looked_in_vain(lock);
  if (*flag != 0 && status != mpi::ignored()) {
    *status = request->kind == Kind::group && !request->parts.empty() ? request->parts.front()->status : request->status;
    status->error = request->error;
    status->internal[2] = request->cancelled ? 1 : 0;
  }
  return kSuccess;
}

// MPICH's own: nothing moves by it.
int Request_is_complete(Request handle) {
  Lock lock = enter();
  const Held request = find(handle);
  const bool complete = !is_active(request) || fake::seen(*request);
  if (!complete) looked_in_vain(lock);
  return complete ? 1 : 0;
}

int Start(Request* handle) {
  const Lock lock = enter();
  const Held request = find(*handle);
  if (request == nullptr || !request->persistent || request->active) {
    complain("MPI_Start of a request that cannot be started");
    return kErrRequest;
  }
  if (!me->world->options.renews) {
    go(request);
    return kSuccess;
  }
  const auto renewed = std::make_shared<RequestObject>(*request);
  *handle = add(renewed);
  me->requests.erase(reinterpret_cast<Request>(request.get()));
  go(renewed);
  return kSuccess;
}
int Startall(int count, Request* requests) {
  for (int i = 0; i < count; ++i) {
    if (const int wrong = Start(&requests[i]); wrong != kSuccess) return wrong;
  }
  return kSuccess;
}

// One that is active goes on: the message that matches it holds it.
int Request_free(Request* handle) {
  const Lock lock = enter();
  if (find(*handle) == nullptr) return kErrRequest;
  me->requests.erase(*handle);
  *handle = null_request();
  return kSuccess;
}

int Cancel(Request* handle) {
  const Lock lock = enter();
  const Held request = find(*handle);
  if (request == nullptr) return kErrRequest;
  if (request->kind == Kind::general) return request->cancel(request->extra, request->over ? 1 : 0);
  if (request->over || request->kind != Kind::receive) return kSuccess;  // sends are not cancelled any more (MPI-4.0)
  const auto posted = std::ranges::find(me->posted, request);
  if (posted == me->posted.end()) return kSuccess;
  me->posted.erase(posted);
  request->over = request->cancelled = true;
  me->world->changed.notify_all();
  return kSuccess;
}
int Test_cancelled(const Status* status, int* flag) {
  *flag = status->internal[2];
  return kSuccess;
}

int Grequest_start(int (*query)(void*, Status*), int (*free)(void*), int (*cancel)(void*, int), void* extra, Request* request) {
  const Lock lock = enter();
  auto made = std::make_shared<RequestObject>();
  made->kind = Kind::general;
  made->query = query;
  made->free = free;
  made->cancel = cancel;
  made->extra = extra;
  *request = add(made);
  return kSuccess;
}
int Grequest_complete(Request handle) {
  const Lock lock = enter();
  const Held request = find(handle);
  if (request == nullptr) return kErrRequest;
  request->over = true;
  me->world->changed.notify_all();
  return kSuccess;
}

}  // namespace calls
}  // namespace lacuna::test::fake
