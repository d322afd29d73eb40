// MPI_Send and its like.
#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

template <class Pass>
int send_or(Function function, SendMode mode, const void* base, Count count, Datatype type, int dest, int tag, Comm comm,
            const Pass& pass) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (j->types.is_short(type, count, j->from.contiguous)) return passed(j, function, Why::contiguous, pass);
  if (j->looks()) j->look_at(comm, dest);
  if (j->leaves(MpiUse::send, type, count) && j->ways.rests()) return passed(j, function, Why::host_is_fast, pass);
  Source source;
  int result = kSuccess;
  const How how = plan_send(*j, base, count, type, dest, comm, mode, true, source, result);
  if (how == How::wrong) return result;
  return how != How::host && send(*j, how, mode, source, tag, comm, result) ? result : passed(j, function, source.why, pass);
}

template <class Pass>
int isend_or(Function function, SendMode mode, const void* base, Count count, Datatype type, int dest, int tag, Comm comm, Request* request,
             const Pass& pass) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (j->types.is_short(type, count, j->from.contiguous)) return passed(j, function, Why::contiguous, pass);
  if (j->looks()) j->look_at(comm, dest);
  if (j->leaves(MpiUse::later, type, count) && j->ways.rests()) return passed(j, function, Why::host_is_fast, pass);
  Source source{.use = MpiUse::later};
  int result = kSuccess;
  const How how = plan_send(*j, base, count, type, dest, comm, mode, true, source, result);
  if (how == How::wrong) return result;
  return how != How::host && isend(*j, how, mode, source, tag, comm, request, result) ? result : passed(j, function, source.why, pass);
}

template <class Pass>
int send_init_or(Function function, SendMode mode, const void* base, Count count, Datatype type, int dest, int tag, Comm comm,
                 Request* request, const Pass& pass) {
  Job* const j = job;
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  Source source{.use = MpiUse::later};
  int result = kSuccess;
  const How how = plan_send(*j, base, count, type, dest, comm, mode, false, source, result);
  if (how == How::wrong) return result;
  return send_init(*j, how, mode, source, tag, comm, request, result) ? result : passed(j, function, source.why, pass);
}

}  // namespace

int isend_for(Function function, const void* base, int count, Datatype type, int dest, int tag, Comm comm, Request* request) try {
  return isend_or(function, SendMode::standard, base, count, type, dest, tag, comm, request,
                  [&] { return host().Isend(base, count, type, dest, tag, comm, request); });
}
LACUNA_MPI_CAUGHT
int isend_for(Function function, const void* base, Count count, Datatype type, int dest, int tag, Comm comm, Request* request) try {
  return isend_or(function, SendMode::standard, base, count, type, dest, tag, comm, request,
                  [&] { return host().Isend_c(base, count, type, dest, tag, comm, request); });
}
LACUNA_MPI_CAUGHT

// Every function twice: with counts that are ints, and with large ones.
// NOLINTBEGIN(bugprone-macro-parentheses): types, and parts of names
#define SEND(name, mode)                                                                                    \
  LACUNA_MPI_CALL(name, (const void* base, int count, Datatype type, int dest, int tag, Comm comm)) {       \
    return send_or(Function::name, mode, base, count, type, dest, tag, comm,                                \
                   [&] { return host().name(base, count, type, dest, tag, comm); });                        \
  }                                                                                                         \
  LACUNA_MPI_CAUGHT                                                                                         \
  LACUNA_MPI_CALL(name##_c, (const void* base, Count count, Datatype type, int dest, int tag, Comm comm)) { \
    return send_or(Function::name##_c, mode, base, count, type, dest, tag, comm,                            \
                   [&] { return host().name##_c(base, count, type, dest, tag, comm); });                    \
  }                                                                                                         \
  LACUNA_MPI_CAUGHT
#define BEGIN(name, mode, begin)                                                                                              \
  LACUNA_MPI_CALL(name, (const void* base, int count, Datatype type, int dest, int tag, Comm comm, Request* request)) {       \
    return begin(Function::name, mode, base, count, type, dest, tag, comm, request,                                           \
                 [&] { return host().name(base, count, type, dest, tag, comm, request); });                                   \
  }                                                                                                                           \
  LACUNA_MPI_CAUGHT                                                                                                           \
  LACUNA_MPI_CALL(name##_c, (const void* base, Count count, Datatype type, int dest, int tag, Comm comm, Request* request)) { \
    return begin(Function::name##_c, mode, base, count, type, dest, tag, comm, request,                                       \
                 [&] { return host().name##_c(base, count, type, dest, tag, comm, request); });                               \
  }                                                                                                                           \
  LACUNA_MPI_CAUGHT

SEND(Send, SendMode::standard)
SEND(Ssend, SendMode::synchronous)
SEND(Rsend, SendMode::ready)
SEND(Bsend, SendMode::buffered)
BEGIN(Isend, SendMode::standard, isend_or)
BEGIN(Issend, SendMode::synchronous, isend_or)
BEGIN(Irsend, SendMode::ready, isend_or)
BEGIN(Ibsend, SendMode::buffered, isend_or)
BEGIN(Send_init, SendMode::standard, send_init_or)
BEGIN(Ssend_init, SendMode::synchronous, send_init_or)
BEGIN(Rsend_init, SendMode::ready, send_init_or)
BEGIN(Bsend_init, SendMode::buffered, send_init_or)

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lacuna::mpi
