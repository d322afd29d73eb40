// What completes operations. The host completes its requests as the program asks for it, by MPI_Wait or another call,
// so that errors are told to whom the host tells them; then what belongs to them is awaited, which needs no other call
// (mpi.hpp, the second rule). Where nothing may be freed yet, a request is looked at by MPI_Request_get_status.
#include <algorithm>

#include "lacuna/mpi/messages/exchange.hpp"
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

// Whether one part of a pair is complete, be it ours or the host's, and with which status.
bool ready(Job& job, Request request, Status& status) {
  if (Operation* operation = request == host().no_request ? nullptr : job.operations.find(request); operation != nullptr) {
    const bool over = poll(job, *operation);
    status = operation->status;
    return over;
  }
  int over = 0;
  return host().Request_get_status(request, &over, &status) != kSuccess || over != 0;
}

// One that is ready.
int end_part(Job& job, Request& request, Status* status) {
  Operations::Taken taken = job.operations.take(request);
  if (!taken) return host().Wait(&request, status);
  Operation& operation = *taken.mapped();
  if (!operation.alone()) {
    Request left = request;
    Status theirs{};
    const int error = host().Wait(&left, &theirs);
    host_completed(job, operation, left, theirs, error);
  }
  return end(job, std::move(taken), &request, status).error;
}

void poll_payload(Job& job, Operation& operation) {
  const std::optional<base::Result<protocol::Status>> moved = job.ranks->test(operation.payload);
  if (!moved) return;
  operation.payload = nullptr;
  operation.state = Operation::State::done;
  if (!*moved) operation.error = moved->error().code == base::Code::truncated ? kErrTruncate : kErrOther;
  if (operation.error == kErrOther) tell("MPI receive", moved->error());
  if (operation.through.data() != nullptr) return came_through(job, operation);
  const bool directly = *moved && (*moved)->protocol == protocol::Protocol::direct;
  if (operation.began != 0)
    job.report.count(directly ? MessageReport::Way::accepted_directly : MessageReport::Way::accepted, operation.target.type.get(),
                     operation.target.count, operation.status.source, bytes_of(operation.status), base::now_ns() - operation.began);
}

// Of a persistent send: what the host sends instead of it.
void poll_instead(Operation& operation) {
  int over = 0;
  operation.error = host().Test(&operation.instead, &over, &operation.status);
  if (operation.error == kSuccess && over == 0) return;
  operation.raised = operation.error != kSuccess;
  operation.instead = {};
  operation.bounce = {};
  operation.state = Operation::State::done;
}

// What goes to another node, or comes from one.
void poll_chunks(Job& job, Operation& operation) {
  if (operation.outgoing != nullptr) {
    operation.outgoing->reap();
    operation.error = operation.outgoing->error();
    const bool gone = operation.outgoing->gone();
    if (!gone && operation.error == kSuccess && !operation.outgoing->stands()) return;
    if (!gone) job.transport->leave(std::move(operation.outgoing));
    operation.outgoing.reset();
  } else {
    if (!operation.incoming->move()) return;
    operation.error = operation.incoming->error();
    const MessageReport::Way way = operation.incoming->by_device() ? MessageReport::Way::read_in : MessageReport::Way::chunked_in;
    operation.incoming.reset();
    const std::int64_t bytes = bytes_of(operation.status);
    if (operation.error == kSuccess && bytes > operation.target.capacity) operation.error = kErrTruncate;
    if (operation.through.data() != nullptr) {
      came_through(job, operation);
    } else if (operation.began != 0)
      job.report.count(way, operation.target.type.get(), operation.target.count, operation.status.source, bytes,
                       base::now_ns() - operation.began);
  }
  operation.state = Operation::State::done;
}

// Whether a rank has died that it may wait for. The program may have freed the communicator.
bool is_lost(Job& job, Operation& operation) {
  constexpr std::uint32_t kLooks = 64;
  if (++operation.looks % kLooks != 0 || !job.comms->lives(operation.comm)) return false;
  operation.error = operation.lost = detail::look_for_dead(operation.comm);
  operation.raised = operation.error != kSuccess;
  return operation.raised;
}

void poll_standing(Job& job, Operation& operation) {
  if (!operation.standing->move()) {
    if (is_lost(job, operation)) operation.state = Operation::State::done;
    return;
  }
  operation.error = operation.standing->error();
  if (operation.store && operation.error == kSuccess) operation.error = operation.store();
  operation.state = Operation::State::done;
  if (operation.began == 0) return;
  operation.standing->each([&, took = base::now_ns() - operation.began](bool out, const Block& block, int peer) {
    const auto way = out ? MessageReport::Way::exchanged_out : MessageReport::Way::exchanged_in;
    job.report.count(way, block.type.get(), block.count, peer, block.bytes, took);
  });
}

bool move_on(Job& job, Operation& operation) {
  if (operation.state == Operation::State::posted) {
    if (operation.pair) {
      Status sent{};
      const bool first = ready(job, operation.parts[0], sent);
      if (!ready(job, operation.parts[1], operation.status) || !first) return false;
      operation.state = Operation::State::done;
      return true;
    }
    int over = 0;
    operation.status.error = kSuccess;
    const int said = host().Request_get_status(operation.handle, &over, &operation.status);
    if (said == kSuccess && over == 0) return false;
    // The host's MPI_Wait may say it again, or not: MPICH forgets what became of a persistent request that it has told
    // of.
    operation.error = said != kSuccess ? said : operation.status.error;
    operation.raised = said != kSuccess;
    if (operation.error == kSuccess) operation.error = operation.failed;
    operation.state = operation.outgoing != nullptr ? Operation::State::moving : Operation::State::done;
    if (operation.receives) arrived(job, operation);
  }
  if (operation.state == Operation::State::moving) {
    if (operation.standing != nullptr) {
      poll_standing(job, operation);
    } else if (operation.payload != nullptr) {
      poll_payload(job, operation);
    } else if (operation.aside.data() != nullptr) {
      poll_aside(job, operation);
    } else if (operation.instead != Request{}) {
      poll_instead(operation);
    } else {
      poll_chunks(job, operation);
    }
  }
  return operation.state == Operation::State::done;
}

}  // namespace

bool poll(Job& job, Operation& operation) try { return move_on(job, operation); } catch (const std::bad_alloc&) {
  return false;  // nothing has moved: at another look
}

void host_completed(Job& job, Operation& operation, Request left, const Status& status, int error) {
  operation.left = left;
  operation.taken = true;
  if (error != kSuccess) {
    operation.error = error;
    operation.raised = true;
  } else if (operation.error == kSuccess) {
    operation.error = operation.failed;
  }
  if (!operation.receives || operation.state == Operation::State::posted) operation.status = status;
  if (operation.state != Operation::State::posted) return;
  operation.state = operation.outgoing != nullptr ? Operation::State::moving : Operation::State::done;
  if (operation.receives) arrived(job, operation);
}

Ended end(Job& job, Operations::Taken taken, Request* request, Status* status) {
  Operation& operation = *taken.mapped();
  if (operation.pair) {
    Status sent{};
    const int of_send = end_part(job, operation.parts[0], &sent);
    const int of_receive = end_part(job, operation.parts[1], &operation.status);
    operation.error = of_receive != kSuccess ? of_receive : of_send;
  }
  if (operation.generalized) {
    host().Grequest_complete(operation.handle);
    operation.left = operation.handle;
    host().Wait(&operation.left, ignored());
  }
  put_status(status, operation.status);
  const Ended ended{.error = operation.error, .raised = operation.raised, .persistent = operation.persistent, .comm = operation.comm};
  if (operation.persistent && operation.left == operation.handle) {  // Open MPI frees one that failed
    operation.active = false;
    operation.state = Operation::State::posted;
    operation.error = kSuccess;
    operation.raised = operation.taken = false;
    job.operations.put_back(std::move(taken));
  } else {
    if (operation.standing != nullptr) job.idle_requests.give_back(operation.handle);
    *request = host().no_request;
  }
  return ended;
}

namespace {

// An orphan that is complete.
void end_orphan(Job& job, Operation& orphan) {
  Request handle = orphan.handle;
  for (Request& part : orphan.parts)
    if (orphan.pair) end_part(job, part, ignored());
  if (orphan.generalized) host().Grequest_complete(handle);
  if (orphan.persistent || orphan.standing != nullptr) {
    host().Request_free(&handle);
  } else {
    host().Wait(&handle, ignored());
  }
}

}  // namespace

void poll_orphans(Job& job) {
  Operations::Orphans& orphans = job.operations.orphans();
  if (orphans.empty()) return;
  // Meanwhile an error handler of the program's may free others, and whatever is thrown, none is lost.
  struct Some {
    Operations::Orphans& home;
    Operations::Orphans list;
    explicit Some(Operations::Orphans& home) : home(home) { list.swap(home); }
    ~Some() { home.splice(home.begin(), list); }
    Some(const Some&) = delete;
    Some& operator=(const Some&) = delete;
  } some(orphans);
  for (auto at = some.list.begin(); at != some.list.end();) {
    const auto one = at++;
    if (!poll(job, **one)) continue;
    Operations::Orphans ended;
    ended.splice(ended.begin(), some.list, one);
    end_orphan(job, *ended.front());
  }
}

void poll_receives(Job& job) {
  poll_remembered(job);
  job.operations.each([&](Operation& operation) {
    if (operation.active && operation.receives) poll(job, operation);
  });
}

void wait_for(Job& job, Operation& operation) {
  std::int64_t since = 0;
  for (int rounds = 0;;) {
    {
      const auto lock = job.enter();
      if (poll(job, operation)) return;
      if (job.transport != nullptr) poll_receives(job);
    }
    if (operation.standing == nullptr) {
      pause(rounds);
    } else {
      detail::await(job, host().world, {}, ++rounds, since);  // poll() looks for deaths
    }
  }
}

void end_messages(Job& job) {
  const auto lock = job.enter();
  poll_orphans(job);
  const auto goes_between_nodes = [](const Operation* operation) {
    return operation != nullptr && (operation->outgoing != nullptr || operation->incoming != nullptr);
  };
  const auto moves = [&](const std::unique_ptr<Operation>& orphan) {
    return goes_between_nodes(orphan.get()) || (orphan->pair && std::ranges::any_of(orphan->parts, [&](Request part) {
                                                  return goes_between_nodes(job.operations.find(part));
                                                }));
  };
  for (int rounds = 0; std::ranges::any_of(job.operations.orphans(), moves); pause(rounds)) poll_orphans(job);
}

}  // namespace lacuna::mpi
