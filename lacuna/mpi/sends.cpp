// Sends: by the host as they are, packed here for the host, or offered, with a descriptor in their place.
#include <sched.h>

#include <climits>

#include "lacuna/mpi/messages.hpp"

namespace lacuna::mpi {
namespace {

// A receiver that takes nothing for so long does something else: the rest is left behind.
constexpr std::int64_t kPatience = 1'000'000;  // ns
constexpr int kSpinsPerLook = 64;

// Null: it cannot be offered now.
protocol::Request* offer(Job& job, const Source& source, SendMode mode, bool whole, Descriptor::Wire& wire) {
  Descriptor descriptor;
  const auto until = mode == SendMode::synchronous ? protocol::Until::received : protocol::Until::packed;
  base::Result<protocol::Request*> offered = job.ranks->offer(source.base, source.layout, source.local, whole, until, descriptor.ticket);
  if (!offered) return nullptr;
  descriptor.bytes = static_cast<std::uint64_t>(source.bytes);
  descriptor.source = job.local_rank;
  wire = descriptor.encode(job.nonce);
  return *offered;
}

// Packs all that is left of an offer. Only memory can be wanting; then whoever takes it makes room. What it gives back has yet to be received.
protocol::Request* leave(Job& job, protocol::Request* offered) {
  std::optional<base::Result<protocol::Status>> left;
  if (job.ranks->leave(offered)) {
    left = job.ranks->test(offered);
  } else {
    left = job.ranks->wait(offered);
  }
  if (left && !*left) base::log(base::Level::error, "MPI send: " + left->error().text());
  return left ? nullptr : offered;
}

// The host's own messages, which a receiver may need first.
void progress_of_host() {
  int found = 0;
  host().Iprobe(kAnySource, kAnyTag, host().self, &found, ignored());
}

// With a receiver that keeps pace, through windows that stay in the caches. A synchronous send has to wait for any.
void stream(Job& job, protocol::Request* offered, SendMode mode) {
  std::int64_t since = 0;
  for (int spins = 1;; ++spins) {
    {
      const auto lock = job.enter();
      if (job.ranks->test(offered)) return;
    }
    if (spins % kSpinsPerLook != 0) {
      base::cpu_relax();
      continue;
    }
    const std::int64_t now = base::now_ns();
    const auto lock = job.enter();
    const bool moved = job.ranks->progress();
    poll_receives(job);
    poll_orphans(job);
    if (since == 0 || moved) since = now;
    if (now - since < kPatience) continue;
    if (mode != SendMode::synchronous) {
      leave(job, offered);
      return;
    }
    progress_of_host();
    sched_yield();
  }
}

SendMode of_descriptor(SendMode mode) { return mode == SendMode::ready ? mode : SendMode::standard; }

Bounce packed(Job& job, const Source& source) {
  Bounce bounce = job.bounces.take(source.bytes);
  copy::pack(source.layout, source.base, 0, source.bytes, bounce.data(), copy::Caching::kept);
  return bounce;
}

// Counts a message, and now and then what the host takes to pack the same.
void count(Job& job, How how, const Source& source, std::int64_t began) {
  if (began == 0) return;
  const Report::Way way = how == How::packed ? Report::Way::packed : Report::Way::offered;
  job.report.count(way, source.type.get(), source.count, source.dest, source.bytes, base::now_ns() - began);
  if (source.contiguous() || source.bytes > INT_MAX || source.count > INT_MAX ||
      !job.report.samples(source.type.get(), source.count, source.dest, way))
    return;
  const Bounce bounce = job.bounces.take(source.bytes);
  int position = 0;
  const std::int64_t start = base::now_ns();
  host().Pack(source.base, static_cast<int>(source.count), source.handle, bounce.data(), static_cast<int>(source.bytes), &position,
              host().self);
  job.report.sampled(source.type.get(), source.count, source.dest, way, base::now_ns() - start);
}

}  // namespace

bool Bytes::fits(std::int64_t bytes) { return bytes <= INT_MAX || host().Send_c != nullptr; }

int Bytes::send(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm) {
  const Host& h = host();
  if (bytes > INT_MAX) {
    const auto call = mode == SendMode::standard      ? h.Send_c
                      : mode == SendMode::synchronous ? h.Ssend_c
                      : mode == SendMode::ready       ? h.Rsend_c
                                                      : h.Bsend_c;
    return call(base, bytes, h.byte, dest, tag, comm);
  }
  const auto call = mode == SendMode::standard      ? h.Send
                    : mode == SendMode::synchronous ? h.Ssend
                    : mode == SendMode::ready       ? h.Rsend
                                                    : h.Bsend;
  return call(base, static_cast<int>(bytes), h.byte, dest, tag, comm);
}

int Bytes::isend(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm, Request* request) {
  const Host& h = host();
  if (bytes > INT_MAX) {
    const auto call = mode == SendMode::standard      ? h.Isend_c
                      : mode == SendMode::synchronous ? h.Issend_c
                      : mode == SendMode::ready       ? h.Irsend_c
                                                      : h.Ibsend_c;
    return call(base, bytes, h.byte, dest, tag, comm, request);
  }
  const auto call = mode == SendMode::standard      ? h.Isend
                    : mode == SendMode::synchronous ? h.Issend
                    : mode == SendMode::ready       ? h.Irsend
                                                    : h.Ibsend;
  return call(base, static_cast<int>(bytes), h.byte, dest, tag, comm, request);
}

How plan_send(Job& job, const void* base, Count count, Datatype type, int dest, Comm comm, SendMode mode, Source& source, int& wrong) {
  if (count <= 0 || dest < 0 || job.mode != Mode::full || job.ranks == nullptr) return How::host;
  source.local = job.comms->local(comm, dest);
  if (source.local < 0) return How::host;
  source.type = job.types.of_message(type, comm, wrong);
  if (wrong != kSuccess) return How::wrong;
  if (source.type == nullptr) {
    job.report.passed("a datatype that could not be decoded");
    return How::host;
  }
  source.bytes = source.type->bytes(count);
  source.base = static_cast<const std::byte*>(base);
  source.count = count;
  source.handle = type;
  source.dest = dest;
  if (source.bytes <= 0 || (base == nullptr && !source.type->absolute())) return How::host;
  const bool contiguous = source.contiguous();
  How how = contiguous ? How::host : How::packed;
  // A buffered send takes its room from the program's buffer, whatever becomes of the message. A probe receives what is as long as a descriptor from the
  // host, to which a synchronous send of so many bytes were over then: so it has to be one.
  if (mode == SendMode::buffered) {
    if (!Bytes::fits(source.bytes)) how = How::host;
  } else if (source.bytes >= (contiguous ? job.from.contiguous : job.from.gaps) ||
             (mode == SendMode::synchronous && source.bytes == Descriptor::kBytes)) {
    how = How::offered;
  }
  if (how == How::host) return how;
  base::Result<Layout> layout = source.type->of(count);
  if (!layout) return How::host;
  source.layout = std::move(*layout);
  return how;
}

bool send(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, int& result) {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  if (how == How::packed) {
    const Bounce bounce = packed(job, source);
    result = Bytes::send(mode, bounce.data(), source.bytes, source.dest, tag, comm);
  } else {
    Descriptor::Wire wire;
    protocol::Request* offered = nullptr;
    {
      const auto lock = job.enter();
      offered = offer(job, source, mode, false, wire);
      if (offered == nullptr) {
        job.report.passed("no room to offer it");
        return false;
      }
    }
    result = Bytes::send(of_descriptor(mode), wire.data(), Descriptor::kBytes, source.dest, tag, comm);
    if (result != kSuccess) {
      const auto lock = job.enter();
      job.ranks->cancel(offered);
    } else {
      stream(job, offered, mode);
    }
  }
  count(job, how, source, began);
  return true;
}

bool isend(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result) {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  auto operation = std::make_unique<Operation>();
  const auto lock = job.enter();
  const void* from = nullptr;
  std::int64_t bytes = Descriptor::kBytes;
  protocol::Request* offered = nullptr;
  if (how == How::packed) {
    operation->bounce = packed(job, source);
    from = operation->bounce.data();
    bytes = source.bytes;
  } else {
    offered = offer(job, source, mode, true, operation->wire);
    if (offered == nullptr) {
      job.report.passed("no room to offer it");
      return false;
    }
    from = operation->wire.data();
  }
  result = Bytes::isend(offered != nullptr ? of_descriptor(mode) : mode, from, bytes, source.dest, tag, comm, request);
  if (offered != nullptr && result != kSuccess) job.ranks->cancel(offered);
  if (result != kSuccess) return true;
  if (offered != nullptr) operation->payload = leave(job, offered);
  operation->comm = comm;
  int over = 0;
  if (host().Request_get_status(*request, &over, &operation->status) != kSuccess || over == 0) {
    job.operations.add(*request, std::move(operation));
  } else if (operation->payload != nullptr) {  // what is over may share its handle with others that are
    host().Wait(request, ignored());
    operation->state = Operation::State::moving;
    result = generalize(job, std::move(operation), request);
  }
  count(job, how, source, began);
  return true;
}

bool send_init(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result) {
  if (how != How::offered) return false;
  auto operation = std::make_unique<Operation>();
  operation->source = source;
  operation->persistent = operation->offers = true;
  operation->active = false;
  operation->comm = comm;
  const Host& h = host();
  operation->mode = mode;
  const auto call = mode == SendMode::ready ? h.Rsend_init : h.Send_init;
  result = call(operation->wire.data(), Descriptor::kBytes, h.byte, source.dest, tag, comm, request);
  if (result != kSuccess) return true;
  const auto lock = job.enter();
  job.operations.add(*request, std::move(operation));
  return true;
}

int prepare_start(Job& job, Operation& operation) {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  const Source& source = operation.source;
  protocol::Request* offered =
      offer(job, source, operation.mode, false, operation.wire);  // a send that is started has to go: no bound but memory
  if (offered == nullptr) return kErrNoMem;
  operation.payload = leave(job, offered);
  count(job, How::offered, source, began);
  return kSuccess;
}

}  // namespace lacuna::mpi
