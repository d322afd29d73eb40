// MPI_Probe and its like, and the receives of what they matched.
#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

bool found_in_stash(Job& j, int source, int tag, Comm comm, Status* status) {
  const Probed* found = stashed(j, comm, source, tag);
  if (found == nullptr) return false;
  put_status(status, found->status);
  return true;
}

// Not every host writes all of a status.
Status as_it_is(const Status* status) { return status == ignored() ? Status{} : *status; }

// Who is no process of this job sends none, nor does this one to itself.
bool may_be_descriptor(Job& j, Comm comm, const Status& status, std::int64_t bytes) {
  return bytes == Descriptor::kBytes && j.comms->may_send_descriptors(comm, status.source);
}

// A moment of a probe. Under the lock.
int probe_once(Job& j, int source, int tag, Comm comm, int* flag, Status* status) {
  *flag = 1;
  if (found_in_stash(j, source, tag, comm, status)) return kSuccess;
  Status seen = as_it_is(status);
  const int result = host().Iprobe(source, tag, comm, flag, &seen);
  if (result != kSuccess || *flag == 0) return result;
  if (may_be_descriptor(j, comm, seen, bytes_of(seen))) {
    look_into(j, comm, seen);
    *flag = found_in_stash(j, source, tag, comm, status) ? 1 : 0;
    return kSuccess;
  }
  put_status(status, seen);
  return kSuccess;
}

int match_once(Job& j, int source, int tag, Comm comm, int* flag, Message* message, Status* status) {
  Matched::Taken made = j.matched.make();  // before anything is taken from the host, so that it is not lost
  std::unique_ptr<Probed>& probed = made.mapped();
  if (const Probed* found = stashed(j, comm, source, tag); found != nullptr) {
    probed = j.comms->find(comm)->take(*found);
    *flag = 1;
  } else {
    const int result = host().Improbe(source, tag, comm, flag, &probed->message, &probed->status);
    if (result != kSuccess || *flag == 0) {
      j.matched.keep(std::move(made));
      return result;
    }
    probed->size = bytes_of(probed->status);
    if (may_be_descriptor(j, comm, probed->status, probed->size)) {
      const int failed = host().Mrecv(probed->wire.data(), Descriptor::kBytes, host().byte, &probed->message, ignored());
      if (failed != kSuccess) return failed;
      probed->received = true;
      probed->descriptor = Descriptor::decode(probed->wire.data(), j.nonce);
      put_bytes(probed->status, probed->bytes());
    }
  }
  probed->comm = comm;
  put_status(status, probed->status);
  *message = probed->received ? Message{} : probed->message;
  if (probed->received) *message = j.matched.add(std::move(made));
  return kSuccess;
}

// A message that was received already, out of the table. Unless its delivery begins it is there again afterwards.
class Ours {
 public:
  explicit Ours(Message* message) : message_(message) {
    if (takes_messages(job)) taken_ = job->matched.take(*message);
    if (!taken_.empty()) *message = host().no_message;
  }
  ~Ours() {
    if (!taken_.empty()) *message_ = job->matched.put_back(std::move(taken_));
  }
  Ours(const Ours&) = delete;
  Ours& operator=(const Ours&) = delete;
  explicit operator bool() const { return !taken_.empty(); }
  [[nodiscard]] Probed& probed() { return *taken_.mapped(); }
  void begun() { taken_ = {}; }

 private:
  Message* message_;
  Matched::Taken taken_;
};

int mrecv(Function function, Ours& ours, void* base, Count count, Datatype type, Status* status) {
  const Comm comm = ours.probed().comm;
  Target target;
  target.function = function;
  if (const auto wrong = target_of(*job, base, count, type, comm, target)) return *wrong;
  const std::unique_ptr<Operation> operation = begin_delivery_of(*job, ours.probed(), target, comm);
  ours.begun();
  return end_delivery_of(*job, *operation, Call::completions, status);
}

int imrecv(Function function, Ours& ours, void* base, Count count, Datatype type, Request* request) {
  const Comm comm = ours.probed().comm;
  Target target;
  target.function = function;
  if (const auto wrong = target_of(*job, base, count, type, comm, target)) return *wrong;
  const auto lock = job->enter();
  job->operations.make_room();
  std::unique_ptr<Operation> operation = begin_delivery_of(*job, ours.probed(), target, comm);
  ours.begun();
  return generalize(*job, operation, request);
}

}  // namespace

LACUNA_MPI_CALL(Iprobe, (int source, int tag, Comm comm, int* flag, Status* status)) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, Function::Iprobe, Why::not_full, [&] { return host().Iprobe(source, tag, comm, flag, status); });
  const auto lock = j->enter();
  poll_orphans(*j);
  return probe_once(*j, source, tag, comm, flag, status);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Probe, (int source, int tag, Comm comm, Status* status)) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, Function::Probe, Why::not_full, [&] { return host().Probe(source, tag, comm, status); });
  for (int rounds = 0, flag = 0;;) {
    {
      const auto lock = j->enter();
      if (const int result = probe_once(*j, source, tag, comm, &flag, status); result != kSuccess || flag != 0) return result;
      poll_orphans(*j);
    }
    pause(rounds);
  }
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Improbe, (int source, int tag, Comm comm, int* flag, Message* message, Status* status)) {
  Job* const j = job;
  if (!takes_messages(j))
    return passed(j, Function::Improbe, Why::not_full, [&] { return host().Improbe(source, tag, comm, flag, message, status); });
  const auto lock = j->enter();
  poll_orphans(*j);
  return match_once(*j, source, tag, comm, flag, message, status);
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Mprobe, (int source, int tag, Comm comm, Message* message, Status* status)) {
  Job* const j = job;
  if (!takes_messages(j))
    return passed(j, Function::Mprobe, Why::not_full, [&] { return host().Mprobe(source, tag, comm, message, status); });
  for (int rounds = 0, flag = 0;;) {
    {
      const auto lock = j->enter();
      if (const int result = match_once(*j, source, tag, comm, &flag, message, status); result != kSuccess || flag != 0) return result;
      poll_orphans(*j);
    }
    pause(rounds);
  }
}
LACUNA_MPI_CAUGHT

// NOLINTBEGIN(bugprone-macro-parentheses): types, and parts of names
#define MATCHED(suffix, Number)                                                                                    \
  LACUNA_MPI_CALL(Mrecv##suffix, (void* base, Number count, Datatype type, Message* message, Status* status)) {    \
    if (takes_messages(job) && job->looks()) job->look_at(LineTimes::kByTurns);                                    \
    if (Ours ours(message); ours) return mrecv(Function::Mrecv##suffix, ours, base, count, type, status);          \
    return passed(job, Function::Mrecv##suffix, why_passed(job),                                                   \
                  [&] { return host().Mrecv##suffix(base, count, type, message, status); });                       \
  }                                                                                                                \
  LACUNA_MPI_CAUGHT                                                                                                \
  LACUNA_MPI_CALL(Imrecv##suffix, (void* base, Number count, Datatype type, Message* message, Request* request)) { \
    if (takes_messages(job) && job->looks()) job->look_at(LineTimes::kByTurns);                                    \
    if (Ours ours(message); ours) return imrecv(Function::Imrecv##suffix, ours, base, count, type, request);       \
    return passed(job, Function::Imrecv##suffix, why_passed(job),                                                  \
                  [&] { return host().Imrecv##suffix(base, count, type, message, request); });                     \
  }                                                                                                                \
  LACUNA_MPI_CAUGHT
MATCHED(, int)
MATCHED(_c, Count)

// NOLINTEND(bugprone-macro-parentheses)

#if defined(LACUNA_MPI_ABI_OPENMPI)
// Handles as numbers, which Fortran's bindings need. Of MPICH's own ABI they are numbers already.
LACUNA_MPI_CALL(Message_c2f, (Message message)) {
  const int number = job == nullptr ? 0 : job->matched.to_number(message);
  return number != 0 ? number : host().Message_c2f(message);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL_OF(Message, Message_f2c, (int number)) {
  return Matched::is_number(number) ? Matched::of_number(number) : host().Message_f2c(number);
}
#elif defined(LACUNA_MPI_ABI_STANDARD)
LACUNA_MPI_CALL(Message_toint, (Message message)) {
  const int number = job == nullptr ? 0 : job->matched.to_number(message);
  return number != 0 ? number : host().Message_toint(message);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL_OF(Message, Message_fromint, (int number)) {
  return Matched::is_number(number) ? Matched::of_number(number) : host().Message_fromint(number);
}
#endif

}  // namespace lacuna::mpi
