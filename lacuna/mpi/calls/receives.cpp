// MPI_Recv and its like, and what sends and receives at once.
#include <climits>

#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {

extern "C" int MPI_Request_free(Request* request);
extern "C" int MPI_Cancel(Request* request);

namespace {

// Receives what a probe took into the stash, if there is anything; `result` is what the call returns. `pass_probed`
// receives a message that the stash has the host's handle of, `end` goes on with one whose delivery has begun.
template <class PassProbed, class End>
bool from_stash(Job& j, Function function, void* base, Count count, Datatype type, int source, int tag, Comm comm,
                const PassProbed& pass_probed, const End& end, int& result) {
  Probed* const found = stashed(j, comm, source, tag);
  if (found == nullptr) return false;
  if (!found->received) {
    const std::unique_ptr<Probed> probed = j.comms->find(comm)->take(*found);
    result = passed(&j, function, Why::of_host, [&] { return pass_probed(&probed->message); });
    return true;
  }
  Target target;
  target.function = function;
  if (const auto wrong = target_of(j, base, count, type, comm, target)) {
    result = *wrong;
    return true;
  }
  j.operations.make_room();
  std::unique_ptr<Operation> operation = begin_delivery_of(j, *found, target, comm);
  j.comms->find(comm)->take(*found);
  result = end(operation);
  return true;
}

// Numbers without gaps, which the host puts where they belong; the report counts such receives one by one.
bool is_whole(const Job& j, const void* base, Count count, Datatype type) {
  return base != nullptr && !j.reports && j.types.is_short(type, count, INT_MAX);
}

// `pass` begins the host's receive.
template <class Pass, class PassProbed>
int irecv_or(Function function, void* base, Count count, Datatype type, int source, int tag, Comm comm, Request* request, const Pass& pass,
             const PassProbed& pass_probed) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  j->ways.receives();
  const auto lock = j->enter();  // nobody may take into the stash what this receive would find
  const auto generalized = [&](std::unique_ptr<Operation>& operation) { return generalize(*j, operation, request); };
  int wrong = kSuccess;
  if (!j->types.is_below(type, count, Descriptor::kBytes) && j->looks()) j->look_at(comm, source);
  if (from_stash(*j, function, base, count, type, source, tag, comm, pass_probed, generalized, wrong)) return wrong;
  if (j->types.is_below(type, count, Descriptor::kBytes)) return passed(j, function, Why::too_short, pass);
  if (is_whole(*j, base, count, type) && !Mutex::multiple() && source != kProcNull && may_get_descriptor(*j, source, comm)) {
    const Count bytes = count * j->types.whole_bytes(type);  // the program may free its type
    Remembered what{
        .base = static_cast<std::byte*>(base), .count = bytes, .bytes = bytes, .handle = host().byte, .comm = comm, .buffered = {}};
    return irecv_remembered(*j, std::move(what), source, tag, request);
  }
  Target target;
  target.function = function;
  target.use = MpiUse::later;
  const How how = plan_receive(*j, base, count, type, source, comm, true, target, wrong);
  if (how == How::wrong) return wrong;
  if (how == How::host) return passed(j, function, target.why, pass);
  return irecv(*j, target, source, tag, comm, request);
}

// The same, blocking: what has come tells whether there is more to do.
int recv_whole(Job& j, void* base, int bytes, int source, int tag, Comm comm, Status* status) {
  Status mine{};
  Status& seen = status == ignored() ? mine : *status;
  const int error = host().Recv(base, bytes, host().byte, source, tag, comm, &seen);
  if (error != kSuccess || bytes_of(seen) != Descriptor::kBytes) return error;
  const Status theirs = seen;
  Remembered what{
      .base = static_cast<std::byte*>(base), .count = bytes, .bytes = bytes, .handle = host().byte, .comm = comm, .buffered = {}};
  return may_get_descriptor(j, source, comm) ? raise(Call::message, complete(j, what, error, theirs, status)) : error;
}

// The same with gaps, of a type that the host is left to put where it belongs; a descriptor, too.
int recv_typed(Job& j, void* base, int count, Datatype type, int source, int tag, Comm comm, Status* status) {
  Status mine{};
  Status& seen = status == ignored() ? mine : *status;
  const int error = host().Recv(base, count, type, source, tag, comm, &seen);
  if (error != kSuccess || bytes_of(seen) != Descriptor::kBytes || !may_get_descriptor(j, source, comm)) return error;
  const Status theirs = seen;
  Target target;
  if (const auto wrong = target_of(j, base, count, type, comm, target)) return *wrong;
  return raise(Call::message, received(j, target, theirs, comm, status, {}, true));
}

template <class Pass, class PassProbed, class Begin>
int recv_or(Function function, void* base, Count count, Datatype type, int source, int tag, Comm comm, Status* status, const Pass& pass,
            const PassProbed& pass_probed, const Begin& begin) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  j->ways.receives();
  j->ways.waited();
  // Nothing comes, but Open MPI's MPI_Recv looks whether the communicator was revoked, and its MPI_Irecv does not.
  if (source == kProcNull)
    return passed(j, function, j->types.is_short(type, count, Descriptor::kBytes) ? Why::too_short : Why::no_data, pass);
  if (Mutex::multiple()) {
    Request request{};
    const int result = begin(&request);
    return result == kSuccess ? wait(&request, status) : result;
  }
  const auto awaited = [&](const std::unique_ptr<Operation>& operation) { return end_delivery_of(*j, *operation, Call::message, status); };
  int wrong = kSuccess;
  if (!j->types.is_below(type, count, Descriptor::kBytes) && j->looks()) j->look_at(comm, source);
  if (from_stash(*j, function, base, count, type, source, tag, comm, pass_probed, awaited, wrong)) return wrong;
  if (j->types.is_below(type, count, Descriptor::kBytes)) return passed(j, function, Why::too_short, pass);
  if (is_whole(*j, base, count, type))
    return recv_whole(*j, base, static_cast<int>(count * j->types.whole_bytes(type)), source, tag, comm, status);
  if (j->library == Library::open_mpi && base != nullptr && count <= INT_MAX && !j->reports && j->leaves(MpiUse::send, type, count) &&
      j->types.seen(type)->is_known_to_take_part())
    return recv_typed(*j, base, static_cast<int>(count), type, source, tag, comm, status);
  Target target;
  target.function = function;
  const How how = plan_receive(*j, base, count, type, source, comm, true, target, wrong);
  if (how == How::wrong) return wrong;
  if (how == How::host) return passed(j, function, target.why, pass);
  return recv(*j, target, source, tag, comm, status);
}

// Each of them is known, since each start may find its message in the stash.
template <class Pass>
int recv_init_or(Function function, void* base, Count count, Datatype type, int source, int tag, Comm comm, Request* request,
                 const Pass& pass) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  Target target;
  target.function = function;
  target.use = MpiUse::later;
  int wrong = kSuccess;
  const How how = plan_receive(*j, base, count, type, source, comm, false, target, wrong);
  if (how == How::wrong) return wrong;
  if (how == How::offered) return recv_init(*j, target, source, tag, comm, request);
  Use known = source == kProcNull ? nullptr : j->types.find(type);
  if (known == nullptr) return passed(j, function, target.why, pass);
  // All memory is had before the host makes a request, which no call would free
  auto operation = std::make_unique<Operation>();
  Target& place = operation->target;
  place = {.base = static_cast<std::byte*>(base), .type = std::move(known), .handle = type};
  place.make_room(count);
  place.keep(j->types);
  operation->persistent = operation->receives = operation->plain = true;
  operation->active = false;
  operation->comm = comm;
  operation->from = source;
  operation->tag = tag;
  const auto lock = j->enter();
  j->operations.make_room();
  const int result = passed(j, function, target.why, pass);
  if (result == kSuccess) j->operations.add(*request, std::move(operation));
  return result;
}

bool nothing_stashed(Job& j, Comm comm) {
  const auto lock = j.enter();
  const CommOf* of = j.comms->find(comm);
  return of == nullptr || of->stash.empty();
}

// A send and a receive at once: each as if it stood alone. `why`: the host does both, unless the stash has a message.
template <class Pass, class Send, class Receive>
int both(Function function, std::optional<Why> why, Comm comm, const Pass& pass, const Send& send, const Receive& receive) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (why && j->looks()) j->look_at(LineTimes::kByTurns);
  if (why && nothing_stashed(*j, comm)) return passed(j, function, *why, pass);
  if (j->comms->of_host(comm)) return passed(j, function, Why::of_host, pass);
  Request request{};
  if (const int wrong = send(&request); wrong != kSuccess) return wrong;
  const int received = receive();
  const int sent = wait(&request, ignored());
  return received != kSuccess ? received : sent;
}

// Why the host does both, if that is told at once.
std::optional<Why> why_of_both(Job* j, Count out_count, Datatype out_type, Count in_count, Datatype in_type) {
  if (!takes_messages(j) || !j->types.is_below(in_type, in_count, Descriptor::kBytes)) return std::nullopt;
  if (j->types.is_short(out_type, out_count, j->from.contiguous)) return Why::contiguous;
  if (j->leaves(MpiUse::later, out_type, out_count) && j->ways.rests()) return Why::host_is_fast;
  return std::nullopt;
}

// The same, begun: one request for the two.
template <class Pass, class Send, class Receive>
int begin_both(Function function, Comm comm, Request* request, const Pass& pass, const Send& send, const Receive& receive) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (j->comms->of_host(comm)) return passed(j, function, Why::of_host, pass);
  auto operation = std::make_unique<Operation>();
  operation->pair = true;
  operation->comm = comm;
  Request* const parts = operation->parts;
  if (const int wrong = send(&parts[0]); wrong != kSuccess) return wrong;
  int wrong = receive(&parts[1]);
  if (wrong != kSuccess) {
    MPI_Request_free(&parts[0]);  // a send cannot be taken back: it goes on
    return wrong;
  }
  try {
    const auto lock = j->enter();
    for (const Request part : operation->parts) promote(*j, part);
    wrong = generalize(*j, operation, request);
  } catch (const std::bad_alloc&) {
    wrong = kErrNoMem;
  }
  if (wrong == kSuccess) return wrong;
  MPI_Request_free(&parts[0]);
  MPI_Cancel(&parts[1]);
  MPI_Request_free(&parts[1]);
  return wrong;
}

// What is sent before it is received over; without data, though there are bytes: there is no memory for it. Nothing:
// MPI has to say what is wrong with it, or has said so and `wrong` is what the call returns.
std::optional<Bounce> copy_of(Job& j, const void* base, Count count, Datatype type, Comm comm, std::int64_t& bytes, int& wrong) {
  if (count < 0) return std::nullopt;
  bool early = false;
  const Use of = j.types.of_message(type, Types::kDecode, comm, early, wrong);
  if (wrong != kSuccess) return std::nullopt;
  const std::int64_t size = of != nullptr ? of->size() : size_of(type);
  if (size < 0 || !base::mul(size, count, bytes) || bytes > layout::kMaxBytes) return std::nullopt;
  if (bytes == 0) return Bounce();
  if (base == nullptr && (of == nullptr || !of->absolute())) return std::nullopt;
  j.comms->find(comm);  // if there is an error to raise, it is known
  const bool by_host = of == nullptr || on_device(*of.get(), base, count);
  if (by_host && (bytes > INT_MAX || count > INT_MAX)) return std::nullopt;
  const base::Result<Elements> layout = by_host ? Elements() : of->of(count);
  if (!layout) return std::nullopt;
  Bounce bounce = j.bounces.take(bytes);
  if (bounce.data() == nullptr) return bounce;
  int position = 0;
  if (!by_host) {
    copy::pack(*layout, static_cast<const std::byte*>(base), 0, bytes, bounce.data());
  } else if (host().Pack(base, static_cast<int>(count), type, bounce.data(), static_cast<int>(bytes), &position, host().self) != kSuccess) {
    return std::nullopt;
  }
  return bounce;
}

int too_long(Comm comm) {
  base::log(base::Level::error, "MPI_Sendrecv_replace of more than 2 GiB, which this MPI cannot send as bytes");
  return raise(Call::message, comm, kErrOther);
}

template <class Pass, class Receive>
int replace(Function function, const void* base, Count count, Datatype type, int dest, int tag, Comm comm, const Pass& pass,
            const Receive& receive) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (const std::optional<Why> why = why_of_both(j, count, type, count, type); why && nothing_stashed(*j, comm))
    return passed(j, function, *why, pass);
  if (j->comms->of_host(comm)) return passed(j, function, Why::of_host, pass);
  std::int64_t bytes = 0;
  int wrong = kSuccess;
  const std::optional<Bounce> bounce = copy_of(*j, base, count, type, comm, bytes, wrong);
  if (wrong != kSuccess) return wrong;
  if (!bounce) return passed(j, function, count == 0 ? Why::no_data : Why::undecodable, pass);
  if (bytes > 0 && bounce->data() == nullptr) return raise(Call::message, comm, kErrNoMem);
  if (!Bytes::fits(bytes)) return too_long(comm);
  Request request{};
  wrong = Bytes::isend(SendMode::standard, bounce->data(), bytes, dest, tag, comm, &request);
  if (wrong != kSuccess) return wrong;
  const int received = receive();
  const int sent = wait(&request, ignored());
  return received != kSuccess ? received : sent;
}

template <class Pass, class Receive>
int begin_replace(Function function, const void* base, Count count, Datatype type, int dest, int tag, Comm comm, Request* request,
                  const Pass& pass, const Receive& receive) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (j->comms->of_host(comm)) return passed(j, function, Why::of_host, pass);
  std::int64_t bytes = 0;
  int wrong = kSuccess;
  std::optional<Bounce> bounce = copy_of(*j, base, count, type, comm, bytes, wrong);
  if (wrong != kSuccess) return wrong;
  if (!bounce) return passed(j, function, count == 0 ? Why::no_data : Why::undecodable, pass);
  if (bytes > 0 && bounce->data() == nullptr) return raise(Call::message, comm, kErrNoMem);
  if (!Bytes::fits(bytes)) return too_long(comm);
  const auto send = [&](Request* sent) { return isend_packed(*j, std::move(*bounce), bytes, dest, tag, comm, sent); };
  return begin_both(function, comm, request, pass, send, receive);
}

}  // namespace

// NOLINTBEGIN(bugprone-macro-parentheses): types, and parts of names
#define RECEIVES(suffix, Number)                                                                                                           \
  static int irecv_for(Function function, void* base, Number count, Datatype type, int source, int tag, Comm comm, Request* request) try { \
    return irecv_or(                                                                                                                       \
        function, base, count, type, source, tag, comm, request,                                                                           \
        [&] { return host().Irecv##suffix(base, count, type, source, tag, comm, request); },                                               \
        [&](Message* message) { return host().Imrecv##suffix(base, count, type, message, request); });                                     \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  static int recv_for(Function function, void* base, Number count, Datatype type, int source, int tag, Comm comm, Status* status) try {    \
    return recv_or(                                                                                                                        \
        function, base, count, type, source, tag, comm, status,                                                                            \
        [&] { return host().Recv##suffix(base, count, type, source, tag, comm, status); },                                                 \
        [&](Message* message) { return host().Mrecv##suffix(base, count, type, message, status); },                                        \
        [&](Request* request) { return irecv_for(function, base, count, type, source, tag, comm, request); });                             \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Irecv##suffix, (void* base, Number count, Datatype type, int source, int tag, Comm comm, Request* request)) {            \
    return irecv_for(Function::Irecv##suffix, base, count, type, source, tag, comm, request);                                              \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Recv##suffix, (void* base, Number count, Datatype type, int source, int tag, Comm comm, Status* status)) {               \
    return recv_for(Function::Recv##suffix, base, count, type, source, tag, comm, status);                                                 \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Recv_init##suffix, (void* base, Number count, Datatype type, int source, int tag, Comm comm, Request* request)) {        \
    return recv_init_or(Function::Recv_init##suffix, base, count, type, source, tag, comm, request,                                        \
                        [&] { return host().Recv_init##suffix(base, count, type, source, tag, comm, request); });                          \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT
RECEIVES(, int)
RECEIVES(_c, Count)

#define EXCHANGES(suffix, Number)                                                                                                          \
  LACUNA_MPI_CALL(Sendrecv##suffix, (const void* out, Number out_count, Datatype out_type, int dest, int out_tag, void* in,                \
                                     Number in_count, Datatype in_type, int source, int in_tag, Comm comm, Status* status)) {              \
    return both(                                                                                                                           \
        Function::Sendrecv##suffix, why_of_both(job, out_count, out_type, in_count, in_type), comm,                                        \
        [&] {                                                                                                                              \
          return host().Sendrecv##suffix(out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, status);    \
        },                                                                                                                                 \
        [&](Request* request) { return isend_for(Function::Sendrecv##suffix, out, out_count, out_type, dest, out_tag, comm, request); },   \
        [&] { return recv_for(Function::Sendrecv##suffix, in, in_count, in_type, source, in_tag, comm, status); });                        \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Sendrecv_replace##suffix,                                                                                                \
                  (void* base, Number count, Datatype type, int dest, int out_tag, int source, int in_tag, Comm comm, Status* status)) {   \
    return replace(                                                                                                                        \
        Function::Sendrecv_replace##suffix, base, count, type, dest, out_tag, comm,                                                        \
        [&] { return host().Sendrecv_replace##suffix(base, count, type, dest, out_tag, source, in_tag, comm, status); },                   \
        [&] { return recv_for(Function::Sendrecv_replace##suffix, base, count, type, source, in_tag, comm, status); });                    \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Isendrecv_replace##suffix,                                                                                               \
                  (void* base, Number count, Datatype type, int dest, int out_tag, int source, int in_tag, Comm comm, Request* request)) { \
    return begin_replace(                                                                                                                  \
        Function::Isendrecv_replace##suffix, base, count, type, dest, out_tag, comm, request,                                              \
        [&] { return host().Isendrecv_replace##suffix(base, count, type, dest, out_tag, source, in_tag, comm, request); },                 \
        [&](Request* receive) {                                                                                                            \
          return irecv_for(Function::Isendrecv_replace##suffix, base, count, type, source, in_tag, comm, receive);                         \
        });                                                                                                                                \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT                                                                                                                        \
  LACUNA_MPI_CALL(Isendrecv##suffix, (const void* out, Number out_count, Datatype out_type, int dest, int out_tag, void* in,               \
                                      Number in_count, Datatype in_type, int source, int in_tag, Comm comm, Request* request)) {           \
    return begin_both(                                                                                                                     \
        Function::Isendrecv##suffix, comm, request,                                                                                        \
        [&] {                                                                                                                              \
          return host().Isendrecv##suffix(out, out_count, out_type, dest, out_tag, in, in_count, in_type, source, in_tag, comm, request);  \
        },                                                                                                                                 \
        [&](Request* send) { return isend_for(Function::Isendrecv##suffix, out, out_count, out_type, dest, out_tag, comm, send); },        \
        [&](Request* receive) { return irecv_for(Function::Isendrecv##suffix, in, in_count, in_type, source, in_tag, comm, receive); });   \
  }                                                                                                                                        \
  LACUNA_MPI_CAUGHT
EXCHANGES(, int)
EXCHANGES(_c, Count)

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lacuna::mpi
