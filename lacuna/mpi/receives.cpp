// Receives: the host puts bytes into the program's memory where they are contiguous, else into a bounce buffer. If they are a descriptor, what it names is
// unpacked where it belongs; else a bounce buffer is.
#include <climits>
#include <optional>

#include "lacuna/mpi/messages.hpp"

namespace lacuna::mpi {
namespace {

int to_int(std::int64_t bytes) { return static_cast<int>(std::min<std::int64_t>(bytes, INT_MAX)); }

void fail(Operation& operation, int code) {
  operation.error = code;
  operation.state = Operation::State::done;
}

// The bytes of a message that is no descriptor, from anywhere but their place.
void put(Job& job, const Target& target, int source, const std::byte* from, std::int64_t bytes) {
  const std::int64_t began = job.report.on() ? base::now_ns() : 0;
  const std::int64_t wanted = std::min(bytes, target.capacity);
  const base::Result<Elements> layout = target.type->of(target.count);
  if (layout && wanted > 0) copy::unpack(*layout, target.base, 0, wanted, from, copy::Caching::kept);
  if (began != 0) job.report.count(Report::Way::unpacked, target.type.get(), target.count, source, bytes, base::now_ns() - began);
}

void begin_payload(Job& job, Operation& operation, const Descriptor& descriptor) {
  const Target& target = operation.target;
  const base::Result<Elements> layout = target.type->of(target.count);
  if (!layout) return fail(operation, kErrOther);
  put_bytes(operation.status, static_cast<std::int64_t>(descriptor.bytes));
  if (descriptor.is_far()) {
    Destination into{
        .layout = *layout, .base = target.base, .straight = target.contiguous() ? target.start() : nullptr, .capacity = target.capacity};
    if (job.carrier != nullptr)
      operation.arriving =
          job.carrier->arrive(descriptor.world_rank(), descriptor.far(), static_cast<std::int64_t>(descriptor.bytes), std::move(into));
    if (operation.arriving == nullptr) {
      base::log(base::Level::error, "MPI receive: a message from another node, and nobody to send it");
      return fail(operation, kErrOther);
    }
    operation.state = Operation::State::moving;
    return;
  }
  base::Result<protocol::Request*> begun =
      job.ranks == nullptr
          ? base::fail(base::Code::malformed, "an offer, and nobody to make it")
          : job.ranks->accept(target.base, *layout, descriptor.source, static_cast<std::int64_t>(descriptor.bytes), descriptor.ticket);
  if (!begun) {
    base::log(base::Level::error, "MPI receive: " + begun.error().text());
    return fail(operation, kErrOther);
  }
  operation.payload = *begun;
  operation.state = Operation::State::moving;
}

}  // namespace

How plan_receive(Job& job, void* base, Count count, Datatype type, int source, Comm comm, Target& target, int& wrong) {
  if (count <= 0 || job.mode != Mode::full || (job.ranks == nullptr && job.carrier == nullptr)) return How::host;
  if (source != kAnySource && !job.comms->place(comm, source).known()) return How::host;
  target.type = job.types.of_message(type, comm, wrong);
  if (wrong != kSuccess) return How::wrong;
  if (target.type == nullptr) return How::host;
  target.base = static_cast<std::byte*>(base);
  target.make_room(count);
  target.handle = type;
  return target.capacity >= Descriptor::kBytes && (base != nullptr || target.type->absolute()) ? How::offered : How::host;
}

int target_of(Job& job, void* base, Count count, Datatype type, Comm comm, Target& target) {
  int wrong = kSuccess;
  target.type = job.types.of_message(type, comm, wrong);
  if (wrong != kSuccess) return wrong;
  if (target.type == nullptr || count < 0) return raise(Call::message, comm, kErrType);
  target.type.keep();
  target.base = static_cast<std::byte*>(base);
  target.make_room(count);
  return kSuccess;
}

namespace {

std::unique_ptr<Operation> operation_for(Job& job, Target& target, Comm comm) {
  auto operation = std::make_unique<Operation>();
  operation->receives = true;
  operation->comm = comm;
  operation->target = std::move(target);
  operation->target.type.keep();
  operation->began = job.report.on() ? base::now_ns() : 0;
  return operation;
}

// What the host is asked to receive: bytes, where it can count them.
struct Landing {
  void* base;
  std::int64_t count;
  Datatype type;
  bool large;
  bool typed = false;
};
// Where there is no memory for a bounce, Open MPI puts what comes where it belongs, a descriptor too. MPICH and Intel MPI take no part of a number, so there it
// cannot be received: nothing.
std::optional<Landing> landing_of(Job& job, const Target& target, Bounce& bounce) {
  const bool large = target.capacity > INT_MAX;
  if (target.contiguous() && (!large || host().large))
    return Landing{.base = target.start(), .count = target.capacity, .type = host().byte, .large = large};
  if (!target.contiguous() && (!large || host().large)) bounce = job.bounces.take(target.capacity);
  if (bounce.data() != nullptr) return Landing{.base = bounce.data(), .count = target.capacity, .type = host().byte, .large = large};
  if (job.library != Library::open_mpi && !(large && !host().large)) return std::nullopt;
  return Landing{.base = target.base, .count = target.asked, .type = target.handle, .large = target.asked > INT_MAX, .typed = true};
}
std::optional<Landing> landing_of(Job& job, Operation& operation) {
  const std::optional<Landing> at = landing_of(job, operation.target, operation.bounce);
  operation.typed = at && at->typed;
  return at;
}

// A receive with more room gets no buffer of that length if its caller waits for it.
constexpr std::int64_t kLongestBounce = 4 << 20;
// What has come is looked at first: it is a descriptor, mostly. What is none the host puts where it belongs.
int recv_long(Job& job, Target& target, int source, int tag, Comm comm, Status* status) {
  Probed probed{};
  probed.comm = comm;
  if (const int error = host().Mprobe(source, tag, comm, &probed.message, &probed.status); error != kSuccess) return error;
  probed.size = bytes_of(probed.status);
  // A shorter one is unpacked here, which is faster; one that is too long has an error of this communicator's, of which MPI_Mrecv knows nothing.
  if (probed.size != Descriptor::kBytes && (probed.size <= kLongestBounce || probed.size > target.capacity))
    return deliver(job, probed, target, Call::message, comm, status);
  if (probed.size != Descriptor::kBytes) {
    return target.asked > INT_MAX ? host().Mrecv_c(target.base, target.asked, target.handle, &probed.message, status)
                                  : host().Mrecv(target.base, to_int(target.asked), target.handle, &probed.message, status);
  }
  if (const int error = host().Mrecv(probed.wire.data(), Descriptor::kBytes, host().byte, &probed.message, ignored()); error != kSuccess)
    return error;
  probed.received = true;
  probed.descriptor = Descriptor::decode(probed.wire.data(), job.nonce);
  put_bytes(probed.status, probed.bytes());
  return deliver(job, probed, target, Call::message, comm, status);
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
    const std::byte* landed = operation.bounce.data() != nullptr ? operation.bounce.data() : operation.target.start();
    if (operation.typed) {
      const base::Result<Elements> layout = operation.target.type->of(operation.target.count);
      if (layout) copy::pack(*layout, operation.target.base, 0, Descriptor::kBytes, typed.data());
      landed = typed.data();
    }
    if (const auto descriptor = Descriptor::decode(landed, job.nonce)) return begin_payload(job, operation, *descriptor);
  }
  if (operation.bounce.data() != nullptr && bytes > 0) put(job, operation.target, operation.status.source, operation.bounce.data(), bytes);
}

void begin_delivery(Job& job, Probed& probed, Operation& operation) {
  operation.status = probed.status;
  operation.state = Operation::State::done;
  if (probed.descriptor) return begin_payload(job, operation, *probed.descriptor);
  if (operation.target.capacity < probed.bytes()) operation.error = kErrTruncate;
  if (probed.received) return put(job, operation.target, probed.status.source, probed.wire.data(), Descriptor::kBytes);
  // Matched, but perhaps not here yet: its sender is in MPI, or will be.
  operation.aside = job.bounces.take(probed.bytes());
  if (operation.aside.data() == nullptr) return fail(operation, kErrNoMem);  // the host keeps the message
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
  } else {
    put(job, operation.target, operation.status.source, aside.data(), bytes_of(operation.status));
  }
}

int deliver(Job& job, Probed& probed, Target& target, Call call, Comm comm, Status* status) {
  const std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  {
    const auto lock = job.enter();
    begin_delivery(job, probed, *operation);
  }
  wait_for(job, *operation);
  put_status(status, operation->status);
  return raise(call, {.error = operation->error, .raised = false, .persistent = false, .comm = comm});
}

int recv(Job& job, Target& target, int source, int tag, Comm comm, Status* status) {
  if (!target.contiguous() && target.capacity > kLongestBounce) return recv_long(job, target, source, tag, comm, status);
  Bounce bounce;
  Status theirs{};
  const std::optional<Landing> landing = landing_of(job, target, bounce);
  if (!landing) return recv_long(job, target, source, tag, comm, status);
  const Landing& at = *landing;
  const int error = at.large ? host().Recv_c(at.base, at.count, at.type, source, tag, comm, &theirs)
                             : host().Recv(at.base, to_int(at.count), at.type, source, tag, comm, &theirs);
  const std::int64_t bytes = bytes_of(theirs);
  if (bytes != Descriptor::kBytes || error != kSuccess) {  // most are no descriptors
    if (bounce.data() != nullptr && bytes > 0) put(job, target, theirs.source, bounce.data(), bytes);
    put_status(status, theirs);
    return error;
  }
  const std::unique_ptr<Operation> operation = operation_for(job, target, comm);
  operation->bounce = std::move(bounce);
  operation->typed = at.typed;
  operation->status = theirs;
  operation->taken = true;
  {
    const auto lock = job.enter();
    arrived(job, *operation);
  }
  wait_for(job, *operation);
  put_status(status, operation->status);
  return raise(Call::message, {.error = operation->error, .raised = false, .persistent = false, .comm = comm});
}

int irecv(Job& job, Target& target, int source, int tag, Comm comm, Request* request) {
  std::unique_ptr<Operation> operation = operation_for(job, target, comm);
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
  const int result = at.large ? host().Recv_init_c(at.base, at.count, at.type, source, tag, comm, request)
                              : host().Recv_init(at.base, to_int(at.count), at.type, source, tag, comm, request);
  if (result != kSuccess) return result;
  const auto lock = job.enter();
  job.operations.add(*request, std::move(operation));
  return kSuccess;
}

int generalize(Job& job, std::unique_ptr<Operation>& operation, Request* request) {
  const auto queried = [](void*, Status*) { return kSuccess; };
  const auto freed = [](void*) { return kSuccess; };
  const auto cancelled = [](void*, int) { return kSuccess; };
  const int result = host().Grequest_start(+queried, +freed, +cancelled, nullptr, request);
  if (result != kSuccess) return result;
  operation->generalized = true;
  job.operations.add(*request, std::move(operation));
  return kSuccess;
}

}  // namespace lacuna::mpi
