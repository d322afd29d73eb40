// Sends: by the host as they are, packed here for the host, or offered, with a descriptor in their place.
#include <sched.h>

#include <climits>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

constexpr int kSpinsPerLook = 64;
// Bytes of a message that a sender without a CPU of its own leaves behind at once: a longer one keeps pace with its
// receiver, since so much memory for each send may be more than a node has.
constexpr std::int64_t kMostLeft = 4 << 20;
constexpr std::int64_t kYieldAfter = 50'000;  // ns without a move: then the receiver may have no CPU

// Null: it cannot be offered now.
protocol::Request* offer(Job& job, const Source& source, protocol::Behind behind, Descriptor::Wire& wire) try {
  Descriptor descriptor;
  base::Result<protocol::Request*> offered = job.ranks->offer(source.base, source.layout, source.to.local, behind, descriptor.ticket);
  if (!offered) return nullptr;
  descriptor.bytes = static_cast<std::uint64_t>(source.bytes);
  descriptor.source = job.local_rank;
  wire = descriptor.encode(job.nonce);
  return *offered;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// What an offer ends with; why it failed is said here.
int outcome_of(const base::Result<protocol::Status>& ended) {
  if (ended) return kSuccess;
  tell("MPI send", ended.error());
  return kErrOther;
}

// Packs all that is left of an offer, and ends it. Nothing: there is no memory for it, which only one has whose
// receiver was to keep pace.
std::optional<int> leave(Job& job, protocol::Request* offered) try {
  if (!job.ranks->leave(offered)) return std::nullopt;
  const auto left = job.ranks->test(offered);
  return left ? outcome_of(*left) : kSuccess;
} catch (const std::bad_alloc&) {
  return std::nullopt;
}

// The same of one that has memory for all. The bytes are packed without the lock: other threads' sends go on.
int leave_all(Job& job, protocol::Request* offered) {
  {
    const auto lock = job.enter();
    job.ranks->set_aside(offered);
  }
  job.ranks->pack(offered);
  for (;;) {
    const auto lock = job.enter();
    if (const std::optional<int> left = leave(job, offered)) return *left;
  }
}

// Another look at a stream that goes on. Returns what it ends with, if it is left.
std::optional<int> look(Job& job, protocol::Request* offered, std::int64_t now, std::int64_t& since) {
  const auto lock = job.enter();
  const bool moved = job.ranks->progress();
  poll_receives(job);
  poll_orphans(job);
  if (since == 0 || moved) since = now;
  if (now - since < job.patience_ns) return std::nullopt;
  since = now;  // if it is not left, its receiver makes room, or others do
  return leave(job, offered);
}

// With a receiver that keeps pace, through windows that stay in the caches. `directly`: it was copied past them. Where
// a look finds no memory, nothing has moved.
int stream(Job& job, protocol::Request* offered, bool& directly) {
  std::int64_t since = 0;
  for (int spins = 1;; ++spins) {
    std::int64_t now = 0;
    try {
      {
        const auto lock = job.enter();
        if (const auto gone = job.ranks->test(offered)) {
          directly = *gone && (*gone)->protocol == protocol::Protocol::direct;
          return outcome_of(*gone);
        }
      }
      if (spins % kSpinsPerLook != 0) {
        base::cpu_relax();
        continue;
      }
      now = base::now_ns();
      if (const std::optional<int> left = look(job, offered, now, since)) return *left;
    } catch (const std::bad_alloc&) {
      now = base::now_ns();
    }
    if (job.crowded || now - since > kYieldAfter) sched_yield();
  }
}

MessageReport::Way way_of(const OutgoingMessage& outgoing) {
  return outgoing.by_device() ? MessageReport::Way::read_out : MessageReport::Way::chunked_out;
}

// Of a message on this node.
MessageReport::Expected expected_of(const Job& job, MessageReport::Way way, const Source& source) {
  using Reported = MessageReport::Way;
  const bool offered = way == Reported::offered || way == Reported::offered_directly;
  if (source.contiguous() || (!offered && way != Reported::packed)) return {};
  const MpiWay taken = offered ? MpiWay::offered : MpiWay::packed;
  const std::optional<double> ns = job.ways.expected_ns(source.use, taken, *source.type.get(), source.count, source.distance);
  const auto best = job.ways.best_beside(source.use, taken, *source.type.get(), source.count, source.distance);
  if (!ns || !best) return {};
  return {.ns = *ns, .best_ns = best->second, .best = guide::mpi_way_name(best->first)};
}

// Counts a message, and now and then what the host takes to pack the same.
void count(Job& job, MessageReport::Way way, const Source& source, std::int64_t began) {
  if (began == 0) return;
  job.report.count(way, source.type.get(), source.count, source.dest, source.bytes, base::now_ns() - began, expected_of(job, way, source));
  // MPICH packs nothing from MPI_BOTTOM.
  if (source.base == nullptr || source.contiguous() || source.bytes > INT_MAX || source.count > INT_MAX ||
      !job.report.samples(source.type.get(), source.count, source.dest, way))
    return;
  const Bounce bounce = job.bounces.take(source.bytes);
  if (bounce.data() == nullptr) return;
  int position = 0;
  const std::int64_t start = base::now_ns();
  host().Pack(source.base, static_cast<int>(source.count), source.handle, bounce.data(), static_cast<int>(source.bytes), &position,
              host().self);
  job.report.sampled(source.type.get(), source.count, source.dest, way, base::now_ns() - start);
}

}  // namespace

Bounce packed(Job& job, const Source& source) {
  Bounce bounce = job.bounces.take(source.bytes);
  if (bounce.data() == nullptr) return bounce;
  copy::pack(source.layout, source.base, 0, source.bytes, bounce.data(), copy::Caching::kept);
  return bounce;
}

namespace {

// Null: too much is on the way, or there is no memory.
std::unique_ptr<OutgoingMessage> begin_outgoing(Job& job, const Source& source, protocol::Behind behind, Descriptor::Wire& wire) try {
  const auto chunk = static_cast<std::int32_t>(std::min(source.bytes, job.from.chunk));
  Descriptor::InterNode head;
  std::unique_ptr<OutgoingMessage> made = job.transport->begin_outgoing(source.to.remote, source.bytes, chunk, behind, head);
  if (made != nullptr) wire = Descriptor::of(head, source.bytes, job.world_rank).encode(job.nonce);
  return made;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Until the last chunk is with the host, and taken, or nobody takes any.
int send_chunks(Job& job, const Source& source, std::unique_ptr<OutgoingMessage> outgoing) {
  for (int rounds = 0;; pause(rounds)) try {
      const auto lock = job.enter();
      outgoing->pack(source.layout, source.base, false);
      outgoing->reap();
      if (outgoing->gone() && outgoing->error() == kSuccess) {
        outgoing.reset();  // while the lock is held: what it gives back is shared
        return kSuccess;
      }
      poll_receives(job);
      poll_orphans(job);
      const bool stands = outgoing->stands();
      if (stands) outgoing->pack(source.layout, source.base, true);
      const int error = outgoing->error();
      if (error == kSuccess && !(stands && outgoing->packed())) continue;
      job.transport->leave(std::move(outgoing));
      return error;
    } catch (const std::bad_alloc&) {
      continue;  // at another round
    }
}

// What a send returns whose message the host has taken, and whose bytes have gone by us: without the job's lock, since
// the program's error handler may call MPI.
int result_of(int error, Comm comm) { return error == kSuccess ? kSuccess : raise(Call::message, comm, error); }

}  // namespace

bool send(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, int& result) {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  if (how == How::chunked) {
    Descriptor::Wire wire;
    std::unique_ptr<OutgoingMessage> outgoing;
    {
      const auto lock = job.enter();
      outgoing = begin_outgoing(job, source, protocol::Behind::no, wire);
    }
    if (outgoing == nullptr) return false;
    result = Bytes::send(mode, wire.data(), Descriptor::kBytes, source.dest, tag, comm);
    const MessageReport::Way way = way_of(*outgoing);
    if (result == kSuccess) {
      result = result_of(send_chunks(job, source, std::move(outgoing)), comm);
    } else {
      const auto lock = job.enter();
      outgoing.reset();
    }
    count(job, way, source, began);
    return true;
  }
  MessageReport::Way way = how == How::packed ? MessageReport::Way::packed : MessageReport::Way::offered;
  if (how == How::packed) {
    const Bounce bounce = packed(job, source);
    if (bounce.data() == nullptr) return false;
    result = Bytes::send(mode, bounce.data(), source.bytes, source.dest, tag, comm);
  } else {
    Descriptor::Wire wire;
    protocol::Request* offered = nullptr;
    const bool leaves = job.crowded && source.bytes <= kMostLeft;
    {
      const auto lock = job.enter();
      offered = offer(job, source, leaves ? protocol::Behind::bounded : protocol::Behind::no, wire);
      if (offered == nullptr) return false;
    }
    result = Bytes::send(mode, wire.data(), Descriptor::kBytes, source.dest, tag, comm);
    if (result != kSuccess) {
      const auto lock = job.enter();
      job.ranks->cancel(offered);
    } else {
      bool directly = false;
      result = result_of(leaves ? leave_all(job, offered) : stream(job, offered, directly), comm);
      if (directly) way = MessageReport::Way::offered_directly;
    }
  }
  count(job, way, source, began);
  return true;
}

namespace {

// Keeps a send that the host has begun until it is over for the program. Null: it is. What is over for the host may
// share its handle with others that are.
Operation* keep(Job& job, std::unique_ptr<Operation> operation, Request* request, int& result) {
  if (!is_over(*request)) return &job.operations.add(*request, std::move(operation));
  const OutgoingMessage* const outgoing = operation->outgoing.get();
  const bool goes_on = outgoing != nullptr && (!outgoing->gone() || outgoing->error() != kSuccess);
  if (!goes_on && operation->failed == kSuccess) return nullptr;
  host().Wait(request, &operation->status);
  operation->state = goes_on ? Operation::State::moving : Operation::State::done;
  operation->error = operation->failed;
  Operation* const kept = operation.get();
  result = generalize(job, operation, request);
  return result == kSuccess ? kept : nullptr;
}

// What is packed in an operation's bounce.
int isend_of(Job& job, SendMode mode, std::unique_ptr<Operation> operation, std::int64_t bytes, int dest, int tag, Request* request) {
  const auto lock = job.enter();
  job.operations.make_room();
  const int result = Bytes::isend(mode, operation->bounce.data(), bytes, dest, tag, operation->comm, request);
  if (result != kSuccess) return result;
  int kept = kSuccess;
  keep(job, std::move(operation), request, kept);
  return kept;
}

}  // namespace

bool isend(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result) {
  if (how == How::packed && may_be_remembered(job, source.bytes)) return isend_remembered(job, mode, source, tag, comm, request, result);
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  auto operation = std::make_unique<Operation>();
  operation->comm = comm;
  if (how == How::packed) {
    operation->bounce = packed(job, source);
    if (operation->bounce.data() == nullptr) return false;
    result = isend_of(job, mode, std::move(operation), source.bytes, source.dest, tag, request);
    if (result == kSuccess) count(job, MessageReport::Way::packed, source, began);
    return true;
  }
  MessageReport::Way way = MessageReport::Way::offered;
  protocol::Request* offered = nullptr;
  Operation* kept = nullptr;
  {
    const auto lock = job.enter();
    job.operations.make_room();
    if (how == How::chunked) {
      operation->outgoing = begin_outgoing(job, source, protocol::Behind::bounded, operation->wire);
      if (operation->outgoing != nullptr) way = way_of(*operation->outgoing);
    } else {
      offered = offer(job, source, protocol::Behind::bounded, operation->wire);
    }
    if (offered == nullptr && operation->outgoing == nullptr) {  // no room
      const bool packs = how == How::offered && Bytes::fits(source.bytes) && !source.contiguous() &&
                         job.ways.packs(source.use, *source.type.get(), source.count, source.distance);
      return packs && isend(job, How::packed, mode, source, tag, comm, request, result);
    }
    result = Bytes::isend(mode, operation->wire.data(), Descriptor::kBytes, source.dest, tag, comm, request);
    if (offered != nullptr && result != kSuccess) job.ranks->cancel(offered);
    if (result != kSuccess) return operation.reset(), true;
    if (way == MessageReport::Way::read_out)
      operation->outgoing->pack(source.layout, source.base, true);  // a device is one thread's at a time
    if (offered != nullptr) job.ranks->set_aside(offered);
    kept = keep(job, std::move(operation), request, result);
  }
  // Other bytes are packed without the lock: threads that begin sends pack at once. Nothing else touches the operation
  // before its request is the program's.
  if (offered != nullptr) {
    job.ranks->pack(offered);
    const auto lock = job.enter();
    std::optional<int> left = leave(job, offered);
    while (!left) left = leave(job, offered);  // it has memory for all
    const int failed = *left;
    if (kept != nullptr) kept->failed = failed;
    if (kept == nullptr && failed != kSuccess) {  // the host's part is over
      auto ended = std::make_unique<Operation>();
      ended->comm = comm;
      ended->failed = failed;
      keep(job, std::move(ended), request, result);
    }
  } else if (kept != nullptr && kept->outgoing != nullptr && way != MessageReport::Way::read_out) {
    kept->outgoing->pack(source.layout, source.base, true);
  }
  if (result == kSuccess) count(job, way, source, began);
  return true;
}

int isend_packed(Job& job, Bounce bounce, std::int64_t bytes, int dest, int tag, Comm comm, Request* request) {
  auto operation = std::make_unique<Operation>();
  operation->bounce = std::move(bounce);
  operation->comm = comm;
  return isend_of(job, SendMode::standard, std::move(operation), bytes, dest, tag, request);
}

bool send_init(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result) {
  if (how == How::packed) source.why = Why::too_short;
  if (how != How::offered && how != How::chunked) return false;
  auto operation = std::make_unique<Operation>();
  operation->source = source;
  operation->source.type.keep();
  operation->persistent = operation->offers = true;
  operation->active = false;
  operation->comm = comm;
  operation->tag = tag;
  const Host& h = host();
  const auto lock = job.enter();
  job.operations.make_room();
  const auto call = mode == SendMode::standard ? h.Send_init : h.Rsend_init;
  result = call(operation->wire.data(), Descriptor::kBytes, h.byte, source.dest, tag, comm, request);
  if (result != kSuccess) return true;
  job.operations.add(*request, std::move(operation));
  return true;
}

namespace {

int pack_instead(Job& job, Operation& operation, Starts& starts) {
  if (!Bytes::fits(operation.source.bytes)) return kErrNoMem;
  operation.bounce = packed(job, operation.source);
  starts = Starts::instead;
  return operation.bounce.data() == nullptr ? kErrNoMem : kSuccess;
}

}  // namespace

int send_instead(Job& job, Operation& operation) {
  const Source& source = operation.source;
  operation.instead = host().no_request;  // what an MPI leaves that has told of an error, and returns none
  const int result = Bytes::isend(SendMode::standard, operation.bounce.data(), source.bytes, source.dest, operation.tag, operation.comm,
                                  &operation.instead);
  if (result != kSuccess) {
    operation.instead = {};
    return result;
  }
  operation.active = true;
  operation.state = Operation::State::moving;
  job.operations.taken_while_here(operation);
  return kSuccess;
}

int prepare_start(Job& job, Operation& operation, Starts& starts) {
  operation.failed = kSuccess;
  const Source& source = operation.source;
  if (source.to.remote >= 0) {
    operation.outgoing = begin_outgoing(job, source, protocol::Behind::always, operation.wire);
    if (operation.outgoing == nullptr) return pack_instead(job, operation, starts);
    operation.outgoing->pack(source.layout, source.base, true);
    if (operation.began != 0)
      job.report.count(way_of(*operation.outgoing), source.type.get(), source.count, source.dest, source.bytes,
                       base::now_ns() - operation.began);
    const int error = operation.outgoing->error();
    if (error != kSuccess) job.transport->leave(std::move(operation.outgoing));  // the host may read some of it still
    return error;
  }
  operation.offered = offer(job, source, protocol::Behind::always, operation.wire);  // one that is started has to go
  return operation.offered == nullptr ? pack_instead(job, operation, starts) : kSuccess;
}

void after_start(Job& job, Operation& operation, bool starts) {
  if (!starts && operation.outgoing != nullptr) job.transport->leave(std::move(operation.outgoing));
  protocol::Request* const offered = std::exchange(operation.offered, nullptr);
  if (offered == nullptr) return;
  if (!starts) {  // no receiver hears of it
    job.ranks->cancel(offered);
    return;
  }
  std::optional<int> left = leave(job, offered);
  while (!left) left = leave(job, offered);  // it has memory for all
  operation.failed = *left;
  // Nothing to compare with: the program may have freed the datatype since it made the request.
  const Source& source = operation.source;
  if (operation.began != 0)
    job.report.count(MessageReport::Way::offered, source.type.get(), source.count, source.dest, source.bytes,
                     base::now_ns() - operation.began);
}

}  // namespace lacuna::mpi
