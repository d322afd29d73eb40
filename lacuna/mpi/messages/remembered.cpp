// Requests that the host completes alone (job/remembered.hpp): how they begin, what belongs to one that is complete,
// and what becomes of those that have got a descriptor, or that a call is about which knows operations only.
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

// Of numbers without gaps; whether the host tells of its predefined types or not.
std::shared_ptr<const Type> numbers(Job& job, Datatype handle) {
  if (const Use known = job.types.find(handle); known != nullptr) return known.kept();
  base::Result<Layout> layout = Layout::bytes(job.types.whole_bytes(handle));
  return layout ? std::make_shared<const Type>(std::move(*layout)) : nullptr;
}

Target target_of(Job& job, const Remembered& what) {
  const std::shared_ptr<const Type> type = what.buffered != nullptr ? what.buffered->type : numbers(job, what.handle);
  Target target;
  target.base = what.base;
  target.handle = what.handle;
  target.type = Use(type);
  target.type.keep();
  target.make_room(what.count);
  return target;
}

Bounce bounce_of(Remembered& what) { return what.buffered == nullptr ? Bounce() : std::move(what.buffered->bounce); }

std::unique_ptr<Operation> operation_of(Job& job, const Remembered& what) {
  if (what.receives) {
    Target target = target_of(job, what);
    return operation_for(job, target, what.comm);
  }
  auto made = std::make_unique<Operation>();
  made->comm = what.comm;
  return made;
}

// What it has of the host's moves over.
void give(Remembered& from, Operation& to) {
  to.typed = from.typed();
  to.bounce = bounce_of(from);
}

Ended ended_with(int error, const Remembered& what, bool raised) {
  return {.error = error, .raised = raised, .persistent = false, .comm = what.comm};
}

}  // namespace

int irecv_remembered(Job& job, Remembered what, int source, int tag, Request* request) {
  job.remembered.make_room();
  const Host& h = host();
  const int result = what.typed() ? h.Irecv(what.base, static_cast<int>(what.count), what.handle, source, tag, what.comm, request)
                                  : h.Irecv(what.bounced() ? what.buffered->bounce.data() : what.base, static_cast<int>(what.bytes), h.byte,
                                            source, tag, what.comm, request);
  if (result == kSuccess) job.remembered.add(*request, std::move(what));
  return result;
}

bool isend_remembered(Job& job, SendMode mode, const Source& source, int tag, Comm comm, Request* request, int& result) {
  Remembered what{.bytes = source.bytes, .comm = comm, .buffered = std::make_unique<Buffered>(), .receives = false};
  const Bounce& bounce = what.buffered->bounce = packed(job, source);
  if (bounce.data() == nullptr) return false;
  job.remembered.make_room();
  result = Bytes::isend(mode, bounce.data(), source.bytes, source.dest, tag, comm, request);
  if (result == kSuccess && !is_over(*request)) job.remembered.add(*request, std::move(what));
  return true;
}

// Bytes that are no descriptor and lie in a buffer go where they belong; a descriptor's payload is awaited.
Ended complete(Job& job, Remembered& what, int error, const Status& theirs, Status* status) {
  const std::int64_t bytes = what.receives && error == kSuccess ? bytes_of(theirs) : 0;
  int cancelled = 0;
  if (bytes == Descriptor::kBytes || (bytes > 0 && what.bounced())) host().Test_cancelled(&theirs, &cancelled);
  put_status(status, theirs);
  if (cancelled != 0) return ended_with(error, what, true);
  try {
    if (bytes == Descriptor::kBytes) {
      Target target = at_second_try(job, [&] { return target_of(job, what); });
      const bool typed = what.typed();
      return received(job, target, theirs, what.comm, status, bounce_of(what), typed);
    }
    if (bytes <= 0 || !what.bounced()) return ended_with(error, what, true);
    Target target = target_of(job, what);  // wants no memory: the type is decoded
    return ended_with(put(job, target, theirs.source, what.buffered->bounce.data(), bytes) ? kSuccess : kErrOther, what, false);
  } catch (const std::bad_alloc&) {
    return ended_with(kErrNoMem, what, false);
  }
}

Operations::Taken operation_outside(Job& job, Request handle, Remembered& what) {
  std::unique_ptr<Operation> made = at_second_try(job, [&] { return operation_of(job, what); });
  at_second_try(job, [&] { job.operations.make_room(); });
  give(what, *made);
  return job.operations.outside(handle, std::move(made));
}

Operation* promote(Job& job, Request handle) {
  const Remembered* const found = job.remembered.find(handle);
  if (found == nullptr) return nullptr;
  job.operations.make_room();
  std::unique_ptr<Operation> made = operation_of(job, *found);
  Remembered taken;
  job.remembered.take(handle, taken);
  give(taken, *made);
  return &job.operations.add(handle, std::move(made));
}

std::optional<bool> is_complete(const Job& job, Request request, Status& status) {
  int over = 0;
  if (job.library != Library::open_mpi) {
    if (host().Request_is_complete == nullptr) return std::nullopt;
    return host().Request_is_complete(request) != 0;
  }
  if (host().Request_get_status(request, &over, &status) != kSuccess) return std::nullopt;
  return over != 0;
}

// Where the host tells no more than that one is complete, or not even that, an operation finds out what it has got.
void poll_remembered(Job& job) try {
  job.remembered.each([&](const RememberedRequests::Entry& entry) {
    if (!entry.what.receives) return;
    Status status{};
    const std::optional<bool> complete = is_complete(job, entry.handle, status);
    const bool wants_more =
        job.library != Library::open_mpi ? complete.value_or(true) : complete.value_or(false) && bytes_of(status) == Descriptor::kBytes;
    if (wants_more) promote(job, entry.handle);
  });
} catch (const std::bad_alloc&) {
  return;  // they are looked at again
}

}  // namespace lacuna::mpi
