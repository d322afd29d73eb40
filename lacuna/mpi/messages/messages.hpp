// What the calls are made of. Each answers with what the MPI function returns; `pass` makes the same call of the host,
// for what is not ours.
#pragma once

#include "lacuna/mpi/host/pause.hpp"
#include "lacuna/mpi/job/job.hpp"

namespace lacuna::mpi {

/// Counts of the host's that are ints, or not.
struct Bytes {
  static int send(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm);
  static int isend(SendMode mode, const void* base, std::int64_t bytes, int dest, int tag, Comm comm, Request* request);
  /// Whether one message may be so long.
  static bool fits(std::int64_t bytes);
};

/// How an operation ended.
struct Ended {
  int error;
  bool raised;  ///< the host has told the error handler
  bool persistent;
  Comm comm;
};

// --- errors.cpp ------------------------------------------------------------------------------------------------------

/// What kind of call an error is of.
enum class Call {
  message,      ///< its communicator is an argument
  completion,   ///< MPI_Wait, MPI_Test
  completions,  ///< MPI_Waitall and others of several requests; MPI_Mrecv
};
/// Tells the error handler that the host would tell; returns what the host's call would.
int raise(Call call, Comm comm, int code);
/// The same of a call that has found no memory for what it has to know.
int no_memory();
/// Logs what went wrong with an operation `of` this name; without memory, less of it.
void tell(const char* of, const base::Error& error) noexcept;
/// The same for what MPI_Waitall and its like return MPI_ERR_IN_STATUS for.
int raise_in_status(const Ended& first);
/// The same, unless there is no error, or the host has done it.
inline int raise(Call call, const Ended& ended) {
  return ended.error == kSuccess || ended.raised ? ended.error : raise(call, ended.comm, ended.error);
}

// --- sends.cpp -------------------------------------------------------------------------------------------------------

enum class How {
  host,     ///< by the same call of its own
  packed,   ///< as bytes, packed here
  offered,  ///< a descriptor instead
  chunked,  ///< a descriptor, and chunks: to another node
  wrong
};
/// How a message is to be sent; fills the source in, or says in `wrong` what the call returns. `once`: the request is
/// not persistent.
How plan_send(Job& job, const void* base, Count count, Datatype type, int dest, Comm comm, SendMode mode, bool once, Source& source,
              int& wrong);
/// All of a message. Without data: there is no memory for it.
Bounce packed(Job& job, const Source& source);
/// As planned; false: the host has to send it after all.
bool send(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, int& result);
bool isend(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result);
/// Of bytes that were packed before.
int isend_packed(Job& job, Bounce bounce, std::int64_t bytes, int dest, int tag, Comm comm, Request* request);
/// False: it is a request of the host's alone.
bool send_init(Job& job, How how, SendMode mode, Source& source, int tag, Comm comm, Request* request, int& result);
/// What a persistent request of ours needs to be under way.
enum class Starts {
  by_host,  ///< the host starts it
  already,  ///< nothing: it is
  instead   ///< send_instead()
};
/// Makes the descriptor of a persistent send that starts, or packs it where there is no memory that its receiver
/// reaches.
int prepare_start(Job& job, Operation& operation, Starts& starts);
/// Once the host has started it, or refused to: what was offered is packed, or taken back.
void after_start(Job& job, Operation& operation, bool starts);
/// Has the host send what was packed.
int send_instead(Job& job, Operation& operation);

/// What there is no memory for gets what was kept for other messages.
template <class Call>
auto at_second_try(Job& job, const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    job.bounces.drop();
  }
  return call();
}

// --- target.cpp ------------------------------------------------------------------------------------------------------

/// Puts bytes of a message, which are no descriptor, where they belong. False: they could not be put there.
[[nodiscard]] bool put(Job& job, Target& target, int source, const std::byte* from, std::int64_t bytes);

// --- receives.cpp ----------------------------------------------------------------------------------------------------

/// Whether what comes from there may be a descriptor.
bool may_get_descriptor(Job& job, int source, Comm comm);
/// How a message is to be received: by the host alone, or (offered) into a target that we look at afterwards. `once`:
/// the request is not persistent.
How plan_receive(Job& job, void* base, Count count, Datatype type, int source, Comm comm, bool once, Target& target, int& wrong);
/// The target of a receive that gets what was probed, whatever its size and type; returns what the call returns if
/// there is none.
std::optional<int> target_of(Job& job, void* base, Count count, Datatype type, Comm comm, Target& target);
int recv(Job& job, Target& target, int source, int tag, Comm comm, Status* status);
/// The host has received 253 bytes, which may be a descriptor: into a target, or the bounce; `typed`: as the program's
/// type has it.
Ended received(Job& job, Target& target, const Status& theirs, Comm comm, Status* status, Bounce bounce = {}, bool typed = false);
int irecv(Job& job, Target& target, int source, int tag, Comm comm, Request* request);
int recv_init(Job& job, Target& target, int source, int tag, Comm comm, Request* request);
/// The host has delivered into an operation's target or bounce.
void arrived(Job& job, Operation& operation);
/// A payload is here whose type cannot be decoded: the host puts it where it belongs.
void came_through(Job& job, Operation& operation);
/// What was probed, into a target. Throws std::bad_alloc, and then nothing has begun: `probed` is what it was.
std::unique_ptr<Operation> begin_delivery_of(Job& job, Probed& probed, Target& target, Comm comm);
int end_delivery_of(Job& job, Operation& operation, Call call, Status* status);
void begin_delivery(Job& job, Probed& probed, Operation& operation);
/// Moves on an operation whose message the host has set aside.
void poll_aside(Job& job, Operation& operation);
/// Whether the host has completed a request. What is over may share its handle with others that are, so it is not kept
/// in the table.
inline bool is_over(Request request) {
  int over = 0;
  Status status{};
  return host().Request_get_status(request, &over, &status) == kSuccess && over != 0;
}
/// Makes a request for an operation that needs none of the host's.
int generalize(Job& job, std::unique_ptr<Operation>& operation, Request* request);

/// An operation that receives into a target.
std::unique_ptr<Operation> operation_for(Job& job, Target& target, Comm comm);

// --- remembered.cpp --------------------------------------------------------------------------------------------------

/// Begins one; with a buffer, unless the host puts the bytes where they belong.
int irecv_remembered(Job& job, Remembered what, int source, int tag, Request* request);
/// Packs a message and begins it. False: there is no memory for it.
bool isend_remembered(Job& job, SendMode mode, const Source& source, int tag, Comm comm, Request* request, int& result);
/// Whether requests of so many bytes may be remembered: such take less to move than there is to wait for.
inline bool may_be_remembered(const Job& job, std::int64_t bytes) {
  constexpr std::int64_t kShort = 64 << 10;
  return bytes <= kShort && !job.reports && !Mutex::multiple();
}
/// Whether something belongs to one that the host has completed.
inline bool leaves_more(const Remembered& what, int error, const Status& theirs) {
  if (!what.receives || error != kSuccess) return false;
  const std::int64_t bytes = bytes_of(theirs);
  return bytes == Descriptor::kBytes || (bytes > 0 && what.bounced());
}
/// Does what belongs to it; may wait.
Ended complete(Job& job, Remembered& what, int error, const Status& theirs, Status* status);
/// Makes an operation of one. Null: nothing is remembered of it. Throws std::bad_alloc, and then it is what it was.
Operation* promote(Job& job, Request handle);
/// The same of one that has left the table.
Operations::Taken operation_outside(Job& job, Request handle, Remembered& what);
/// Whether the host has completed a request, told without an error handler that hears of it: MPICH and Intel MPI tell
/// theirs what MPI_Request_get_status finds, and again once the request is ended. Open MPI says with what. Nothing:
/// this host cannot tell so.
std::optional<bool> is_complete(const Job& job, Request request, Status& status);
/// Makes operations of those that have got what may be a descriptor.
void poll_remembered(Job& job);

// --- probes.cpp ------------------------------------------------------------------------------------------------------

/// What was probed before and a receive or probe finds first; null: nothing. It stays in the stash.
Probed* stashed(Job& job, Comm comm, int source, int tag);
/// Takes what the host would show to a probe into the stash, if it may be a descriptor.
void look_into(Job& job, Comm comm, const Status& status);

// --- requests.cpp ----------------------------------------------------------------------------------------------------

// Under the job's lock where it has one.
/// Moves an operation on; whether it is complete. Nothing of the host's is freed. Nothing is thrown: without memory
/// nothing moves.
bool poll(Job& job, Operation& operation);
/// The host has completed its part of an operation that was taken out of the table.
void host_completed(Job& job, Operation& operation, Request left, const Status& status, int error);
/// Ends one that is complete; *request and status are as MPI_Wait leaves them.
Ended end(Job& job, Operations::Taken taken, Request* request, Status* status);
/// What was freed by the program.
void poll_orphans(Job& job);
/// What the program receives meanwhile.
void poll_receives(Job& job);
/// Waits until an operation is complete.
void wait_for(Job& job, Operation& operation);
/// Before Job::end(): waits for what goes to other nodes, or comes from there, and the program has freed.
void end_messages(Job& job);

/// A status as the program wants it: one that is ignored is not written, and MPI_ERROR is left alone.
inline void put_status(Status* to, const Status& from) {
  if (to == ignored() || to == nullptr) return;
  const int error = to->error;
  *to = from;
  to->error = error;
}
inline void put_bytes(Status& status, std::int64_t bytes) { host().Status_set_elements_x(&status, host().byte, bytes); }

}  // namespace lacuna::mpi
