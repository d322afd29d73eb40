// Receives: the host puts bytes into the program's memory where they are contiguous, else into a bounce buffer. If they
// are a descriptor, what it names is unpacked where it belongs; else a bounce buffer is.
#include <climits>
#include <optional>

#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {
namespace {

int to_int(std::int64_t bytes) { return static_cast<int>(std::min<std::int64_t>(bytes, INT_MAX)); }

void fail(Operation& operation, int code) {
  operation.error = code;
  operation.state = Operation::State::done;
}

void fail_aloud(Operation& operation, const base::Error& why) {
  tell("MPI receive", why);
  fail(operation, kErrOther);
}

// What a payload is received into.
struct Into {
  Elements layout;
  std::byte* base = nullptr;
  std::byte* straight = nullptr;
  std::int64_t capacity = 0;
};
// Of a type that cannot be decoded, and of memory that the CPU cannot touch: a buffer, from which the host unpacks.
std::optional<Into> place_of(Job& job, Operation& operation, const Descriptor& descriptor) {
  Target& target = operation.target;
  if (target.know(job.types)) {
    base::Result<Elements> layout = target.type->of(target.count);
    if (!layout) return std::nullopt;
    return Into{.layout = std::move(*layout),
                .base = target.base,
                .straight = target.contiguous() ? target.start() : nullptr,
                .capacity = target.capacity};
  }
  const std::int64_t bytes = std::min(static_cast<std::int64_t>(descriptor.bytes), target.capacity);
  base::Result<Layout> layout = Layout::bytes(bytes);
  operation.through = job.bounces.take(bytes);
  std::byte* const to = operation.through.data();
  if (!layout || to == nullptr) return std::nullopt;
  return Into{.layout = Elements(std::move(*layout)), .base = to, .straight = to, .capacity = bytes};
}

void begin_payload_at_once(Job& job, Operation& operation, const Descriptor& descriptor) {
  put_bytes(operation.status, static_cast<std::int64_t>(descriptor.bytes));
  std::optional<Into> into = place_of(job, operation, descriptor);
  if (!into) return fail(operation, kErrNoMem);
  if (descriptor.is_inter_node()) {
    Destination destination{.layout = std::move(into->layout), .base = into->base, .straight = into->straight, .capacity = into->capacity};
    base::Result<std::unique_ptr<IncomingMessage>> begun =
        base::fail(base::Code::malformed, "a message from another node, and there is none");
    if (job.transport != nullptr)
      begun = job.transport->begin_incoming(descriptor.world_rank(), descriptor.inter_node(), static_cast<std::int64_t>(descriptor.bytes),
                                            std::move(destination));
    if (!begun) return fail_aloud(operation, begun.error());
    operation.incoming = std::move(*begun);
    operation.state = Operation::State::moving;
    return;
  }
  base::Result<protocol::Request*> begun =
      job.ranks == nullptr
          ? base::fail(base::Code::malformed, "an offer, and nobody to make it")
          : job.ranks->accept(into->base, into->layout, descriptor.source, static_cast<std::int64_t>(descriptor.bytes), descriptor.ticket);
  if (!begun) return fail_aloud(operation, begun.error());
  operation.payload = *begun;
  operation.state = Operation::State::moving;
}

// Without memory what is kept for other messages is given up, and then the message.
void begin_payload(Job& job, Operation& operation, const Descriptor& descriptor) {
  try {
    at_second_try(job, [&] { begin_payload_at_once(job, operation, descriptor); });
  } catch (const std::bad_alloc&) {
    fail(operation, kErrNoMem);
  }
}

}  // namespace

bool may_get_descriptor(Job& job, int source, Comm comm) {
  if (job.mode != Mode::full || (job.ranks == nullptr && job.transport == nullptr)) return false;
  return source == kAnySource ? !job.comms->of_host(comm) : job.comms->may_send_descriptors(comm, source);
}

namespace {

// As the sender chooses; where that is not known, as for most ranks.
guide::Distance distance_of(Job& job, Comm comm, int source) try {
  return job.ways.mixed() && source != kAnySource ? job.distance_of(job.comms->place(comm, source)) : job.ways.distance();
} catch (const std::bad_alloc&) {
  return job.ways.distance();
}

}  // namespace

How plan_receive(Job& job, void* base, Count count, Datatype type, int source, Comm comm, bool once, Target& target, int& wrong) {
  target.why = count <= 0 || source == kProcNull ? Why::no_data : Why::alone;
  if (count <= 0 || job.mode != Mode::full || (job.ranks == nullptr && job.transport == nullptr)) return How::host;
  if (source != kProcNull) target.why = source == kAnySource ? Why::of_host : Why::not_reached;
  if (!may_get_descriptor(job, source, comm)) return How::host;
  bool early = false;
  try {
    target.type = job.types.of_message(type, once && base != nullptr ? count : Types::kDecode, comm, early, wrong);
  } catch (const std::bad_alloc&) {
    early = true;  // there may be memory for it later, or no need
  }
  if (wrong != kSuccess) return How::wrong;
  target.base = static_cast<std::byte*>(base);
  target.handle = type;
  target.why = base != nullptr ? Why::too_short : Why::no_data;
  if (target.type == nullptr) {
    target.unknowable = !early;
    return target.make_room_undecoded(count) && target.capacity >= Descriptor::kBytes ? How::offered : How::host;
  }
  target.make_room(count);
  const bool contiguous = target.contiguous();
  if (contiguous && target.capacity < job.from.contiguous && !job.reports) target.type->leave(target.use, count);
  const bool may_land =
      job.library == Library::open_mpi && target.capacity > 0 && target.asked <= INT_MAX && target.type->takes_part_of_element(type);
  target.left_to_host = may_land && !contiguous &&
                        job.ways.choose(target.use, *target.type.get(), target.count, distance_of(job, comm, source)) == MpiWay::host;
  return target.capacity >= Descriptor::kBytes && (base != nullptr || target.type->absolute()) ? How::offered : How::host;
}

std::optional<int> target_of(Job& job, void* base, Count count, Datatype type, Comm comm, Target& target) {
  int wrong = kSuccess;
  bool early = false;
  try {
    target.type = job.types.of_message(type, Types::kDecode, comm, early, wrong);
    target.unknowable = target.type == nullptr;
  } catch (const std::bad_alloc&) {
    target.type = nullptr;  // there may be memory for it later, or no need
  }
  if (wrong != kSuccess) return wrong;
  target.base = static_cast<std::byte*>(base);
  target.handle = type;
  if (count < 0 || (target.type == nullptr && !target.make_room_undecoded(count))) return raise(Call::message, comm, kErrType);
  if (target.type != nullptr) target.make_room(count);
  target.keep(job.types);
  return std::nullopt;
}

std::unique_ptr<Operation> operation_for(Job& job, Target& target, Comm comm) {
  auto operation = at_second_try(job, [] { return std::make_unique<Operation>(); });
  operation->receives = true;
  operation->comm = comm;
  at_second_try(job, [&] { target.keep(job.types); });
  operation->target = std::move(target);
  operation->began = job.report.on() ? base::now_ns() : 0;
  return operation;
}

namespace {

// What the host is asked to receive: bytes, where it can count them.
struct Landing {
  void* base;
  std::int64_t count;
  Datatype type;
  bool large;
  bool typed = false;
};
// Whether the host has to put it where it belongs: it is of a type that is not decoded, or the CPU cannot touch the
// memory.
bool is_the_hosts(Target& target) { return target.type == nullptr || (!target.contiguous() && target.on_device()); }
// Open MPI does that with whatever comes.
bool lands_typed(const Job& job, Target& target) {
  return job.library == Library::open_mpi && (target.left_to_host || is_the_hosts(target));
}
// Where there is no memory for a bounce, or no need of one, Open MPI puts what comes where it belongs, a descriptor
// too. MPICH and Intel MPI take no part of a number, so there it cannot be received: nothing.
std::optional<Landing> landing_of(Job& job, Target& target, Bounce& bounce) {
  const Landing typed{.base = target.base, .count = target.asked, .type = target.handle, .large = target.asked > INT_MAX, .typed = true};
  if (lands_typed(job, target)) return typed;
  const bool large = target.capacity > INT_MAX;
  if (target.contiguous() && (!large || host().large))
    return Landing{.base = target.start(), .count = target.capacity, .type = host().byte, .large = large};
  if (!target.contiguous() && (!large || host().large)) bounce = job.bounces.take(target.capacity);
  if (bounce.data() != nullptr) return Landing{.base = bounce.data(), .count = target.capacity, .type = host().byte, .large = large};
  if (job.library != Library::open_mpi && !(large && !host().large)) return std::nullopt;
  return typed;
}
std::optional<Landing> landing_of(Job& job, Operation& operation) {
  const std::optional<Landing> at = landing_of(job, operation.target, operation.bounce);
  operation.typed = at && at->typed;
  return at;
}

// Of a message that came as it is, and that the host has put where it belongs.
void count_as_put_by_host(Job& job, Target& target) {
  if (!job.reports) return;
  Why why = Why::no_memory;  // for a buffer
  if (target.type == nullptr) {
    why = target.unknowable ? Why::undecodable : Why::first_use;
  } else if (target.contiguous()) {
    why = Why::contiguous;
  } else if (target.left_to_host) {
    why = Why::host_is_fast;
  } else if (target.on_device()) {
    why = Why::device_memory;
  }
  job.report.passed.add(target.function, why);
}

// A receive with more room gets no buffer of that length if its caller waits for it.
constexpr std::int64_t kLongestBounce = 4 << 20;
// What has come is looked at first: it is a descriptor, mostly. What is none the host puts where it belongs.
int recv_long(Job& job, Target& target, int source, int tag, Comm comm, Status* status) {
  Probed probed{};
  probed.comm = comm;
  if (const int error = host().Mprobe(source, tag, comm, &probed.message, &probed.status); error != kSuccess) return error;
  probed.size = bytes_of(probed.status);
  // A shorter one is unpacked here, which is faster; one that is too long has an error of this communicator's, of which
  // MPI_Mrecv knows nothing.
  const bool ours = !is_the_hosts(target) && probed.size <= kLongestBounce;
  const auto delivered = [&] {
    const std::unique_ptr<Operation> operation = begin_delivery_of(job, probed, target, comm);
    return end_delivery_of(job, *operation, Call::message, status);
  };
  if (probed.size != Descriptor::kBytes) {
    try {
      if (ours || probed.size > target.capacity) return delivered();
    } catch (const std::bad_alloc&) {
      job.bounces.drop();  // the host puts it there, which takes longer
    }
    count_as_put_by_host(job, target);
    return target.asked > INT_MAX ? host().Mrecv_c(target.base, target.asked, target.handle, &probed.message, status)
                                  : host().Mrecv(target.base, to_int(target.asked), target.handle, &probed.message, status);
  }
  if (const int error = host().Mrecv(probed.wire.data(), Descriptor::kBytes, host().byte, &probed.message, ignored()); error != kSuccess)
    return error;
  probed.received = true;
  probed.descriptor = Descriptor::decode(probed.wire.data(), job.nonce);
  put_bytes(probed.status, probed.bytes());
  return delivered();
}

// Those that have come to where they belong. False: there is no memory for it.
bool first_bytes(Job& job, Target& target, Descriptor::Wire& bytes) {
  if (target.know(job.types)) {
    const base::Result<Elements> layout = at_second_try(job, [&] { return target.type->of(target.count); });
    if (layout) copy::pack(*layout, target.base, 0, Descriptor::kBytes, bytes.data());
    return layout.has_value();
  }
  const std::int64_t size = size_of(target.handle);
  if (size <= 0 || size > INT_MAX / 2) return false;
  const auto elements = static_cast<int>((Descriptor::kBytes + size - 1) / size);
  const Bounce bounce = job.bounces.take(elements * size);
  int position = 0;
  if (bounce.data() == nullptr || host().Pack(target.base, elements, target.handle, bounce.data(), static_cast<int>(elements * size),
                                              &position, host().self) != kSuccess)
    return false;
  std::memcpy(bytes.data(), bounce.data(), bytes.size());
  return true;
}
bool has_first_bytes(Job& job, Target& target, Descriptor::Wire& bytes) try {
  return first_bytes(job, target, bytes);
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

void arrived(Job& job, Operation& operation) {
  int cancelled = 0;
  host().Test_cancelled(&operation.status, &cancelled);
  operation.state = Operation::State::done;
  if (operation.collection != nullptr) {
    if (operation.error == kSuccess) operation.collection->store(job);
    return;
  }
  if (cancelled != 0 || operation.plain) return;
  const std::int64_t bytes = bytes_of(operation.status);
  if (bytes == Descriptor::kBytes && operation.error == kSuccess) {
    Descriptor::Wire typed;
    const std::byte* landed = operation.bounce.data();
    if (operation.typed || (landed == nullptr && operation.target.on_device())) {
      if (!has_first_bytes(job, operation.target, typed)) return fail(operation, kErrNoMem);
      landed = typed.data();
    } else if (landed == nullptr) {
      landed = operation.target.start();
    }
    if (const auto descriptor = Descriptor::decode(landed, job.nonce)) return begin_payload(job, operation, *descriptor);
  }
  if (operation.bounce.data() == nullptr) {
    if (operation.error == kSuccess) count_as_put_by_host(job, operation.target);
  } else if (bytes > 0 && !put(job, operation.target, operation.status.source, operation.bounce.data(), bytes)) {
    fail(operation, kErrOther);
  }
}

void came_through(Job& job, Operation& operation) {
  const Bounce through = std::move(operation.through);
  operation.through = {};
  const std::int64_t bytes = std::min(bytes_of(operation.status), operation.target.capacity);
  if (operation.error == kSuccess && !put(job, operation.target, operation.status.source, through.data(), bytes))
    operation.error = kErrOther;
}

void begin_delivery(Job& job, Probed& probed, Operation& operation) {
  operation.status = probed.status;
  operation.state = Operation::State::done;
  if (probed.descriptor) return begin_payload(job, operation, *probed.descriptor);
  if (operation.target.capacity < probed.bytes()) operation.error = kErrTruncate;
  if (probed.received) {
    if (!put(job, operation.target, probed.status.source, probed.wire.data(), Descriptor::kBytes)) fail(operation, kErrOther);
    return;
  }
  // Matched, but perhaps not here yet: its sender is in MPI, or will be.
  operation.aside = job.bounces.take(probed.bytes());
  if (operation.aside.data() == nullptr) return fail(operation, kErrNoMem);  // and the message is with the host still
  const bool large = probed.bytes() > INT_MAX && host().large;
  const int result = large
                         ? host().Imrecv_c(operation.aside.data(), probed.bytes(), host().byte, &probed.message, &operation.matched)
                         : host().Imrecv(operation.aside.data(), to_int(probed.bytes()), host().byte, &probed.message, &operation.matched);
  if (result != kSuccess) return fail(operation, result);
  operation.state = Operation::State::moving;
}

void poll_aside(Job& job, Operation& operation) {
  int over = 0;
  Status status{};
  const int error = host().Test(&operation.matched, &over, &status);
  if (error == kSuccess && over == 0) return;
  const Bounce aside = std::move(operation.aside);
  operation.aside = {};
  operation.state = Operation::State::done;
  if (error != kSuccess) {
    operation.error = error;
    operation.raised = true;
  } else if (!put(job, operation.target, operation.status.source, aside.data(), bytes_of(operation.status))) {
    operation.error = kErrOther;
  }
}

std::unique_ptr<Operation> begin_delivery_of(Job& job, Probed& probed, Target& target, Comm comm) {
  std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  const auto lock = job.enter();
  begin_delivery(job, probed, *operation);
  if (!probed.received && operation->matched == Request{} && operation->error == kErrNoMem) throw std::bad_alloc();
  return operation;
}

int end_delivery_of(Job& job, Operation& operation, Call call, Status* status) {
  wait_for(job, operation);
  put_status(status, operation.status);
  return raise(call, {.error = operation.error, .raised = false, .persistent = false, .comm = operation.comm});
}

int recv(Job& job, Target& target, int source, int tag, Comm comm, Status* status) {
  if (!lands_typed(job, target) && !target.contiguous() && (is_the_hosts(target) || target.capacity > kLongestBounce))
    return recv_long(job, target, source, tag, comm, status);
  Bounce bounce;
  Status theirs{};
  const std::optional<Landing> landing = landing_of(job, target, bounce);
  if (!landing) return recv_long(job, target, source, tag, comm, status);
  const Landing& at = *landing;
  const int error = at.large ? host().Recv_c(at.base, at.count, at.type, source, tag, comm, &theirs)
                             : host().Recv(at.base, to_int(at.count), at.type, source, tag, comm, &theirs);
  const std::int64_t bytes = bytes_of(theirs);
  if (bytes != Descriptor::kBytes || error != kSuccess) {  // most are no descriptors
    put_status(status, theirs);
    if (bounce.data() == nullptr && error == kSuccess) count_as_put_by_host(job, target);
    const bool placed = bounce.data() == nullptr || bytes <= 0 || put(job, target, theirs.source, bounce.data(), bytes);
    return placed || error != kSuccess ? error : raise(Call::message, comm, kErrOther);
  }
  return raise(Call::message, received(job, target, theirs, comm, status, std::move(bounce), at.typed));
}

Ended received(Job& job, Target& target, const Status& theirs, Comm comm, Status* status, Bounce bounce, bool typed) {
  const std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  operation->bounce = std::move(bounce);
  operation->typed = typed;
  operation->status = theirs;
  operation->taken = true;
  {
    const auto lock = job.enter();
    arrived(job, *operation);
  }
  wait_for(job, *operation);
  put_status(status, operation->status);
  return {.error = operation->error, .raised = false, .persistent = false, .comm = comm};
}

int irecv(Job& job, Target& target, int source, int tag, Comm comm, Request* request) {
  if (may_be_remembered(job, target.capacity) && !target.contiguous() && !is_the_hosts(target)) {
    Remembered what{
        .base = target.base, .count = target.asked, .bytes = target.capacity, .handle = target.handle, .comm = comm, .buffered = {}};
    what.buffered = at_second_try(job, [] { return std::make_unique<Buffered>(); });
    what.buffered->type = target.type.kept();
    if (!target.left_to_host) what.buffered->bounce = job.bounces.take(target.capacity);
    if (target.left_to_host || what.bounced()) return irecv_remembered(job, std::move(what), source, tag, request);
  }
  std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  job.operations.make_room();
  const std::optional<Landing> landing = landing_of(job, *operation);
  if (!landing) return raise(Call::message, comm, kErrNoMem);
  const Landing& at = *landing;
  const int result = at.large ? host().Irecv_c(at.base, at.count, at.type, source, tag, comm, request)
                              : host().Irecv(at.base, to_int(at.count), at.type, source, tag, comm, request);
  if (result != kSuccess) return result;
  job.operations.add(*request, std::move(operation));
  return kSuccess;
}

int recv_init(Job& job, Target& target, int source, int tag, Comm comm, Request* request) {
  std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  operation->persistent = true;
  operation->active = false;
  operation->from = source;
  operation->tag = tag;
  const std::optional<Landing> landing = landing_of(job, *operation);
  if (!landing) return raise(Call::message, comm, kErrNoMem);
  const Landing& at = *landing;
  const auto lock = job.enter();
  job.operations.make_room();
  const int result = at.large ? host().Recv_init_c(at.base, at.count, at.type, source, tag, comm, request)
                              : host().Recv_init(at.base, to_int(at.count), at.type, source, tag, comm, request);
  if (result != kSuccess) return result;
  job.operations.add(*request, std::move(operation));
  return kSuccess;
}

int generalize(Job& job, std::unique_ptr<Operation>& operation, Request* request) {
  const auto queried = [](void*, Status*) { return kSuccess; };
  const auto freed = [](void*) { return kSuccess; };
  const auto cancelled = [](void*, int) { return kSuccess; };
  job.operations.make_room();
  const int result = host().Grequest_start(+queried, +freed, +cancelled, nullptr, request);
  if (result != kSuccess) return result;
  operation->generalized = true;
  job.operations.add(*request, std::move(operation));
  return kSuccess;
}

}  // namespace lacuna::mpi
