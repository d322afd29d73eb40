// Collectives with requests (MPI_Ialltoall and its like) of ranks of one node, by boards: packed onto a board when they
// begin, unpacked from the others' boards as these are there. So no call waits, and a rank that has begun its part
// needs not be in MPI for the others to end theirs.
//
// All ranks have to go by boards in a call, or none. They cannot ask one another, so the rank that begins it first
// decides (order.hpp). Only calls are so of which all ranks know how long the blocks are: else a rank could not know
// whether the others' boards have room.
#pragma once

#include "lacuna/mpi/messages/exchange.hpp"

namespace lacuna::mpi {

/// False: the call is to go on by other ways.
template <class Number, class At>
bool later(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result);

namespace detail {

/// With its order. Null: its calls are the host's, on this rank for ever.
CommOf* find_ordered(Job& job, Comm comm);
/// How a call of that kind goes. `gains`: this rank would, by a board.
Decision decide(Job& job, CommOf& of, std::size_t kind, std::int64_t bytes, bool gains);
/// Makes room for one more operation, and its request. False: there is none.
bool make_room_for_later(Job& job);
/// Begins one that goes by the board. Wants no memory.
void begin_later(Job& job, Comm comm, const CommOf& of, std::unique_ptr<Operation> operation, Request* request);
/// This rank has no memory for a call that goes by the board: those that wait for its blocks are told.
void refuse(const Pattern& pattern, const Order& order);
/// Whether blocks of so many bytes have room on each rank's board.
bool has_room(const Pattern& pattern, std::int64_t bytes);

/// What of such a call the host unpacks once it is over.
template <class Number, class At>
struct UnpackedByHost {
  AsBytes<Number, At> bytes;
  Blocks<Number, At> in;
  Loan loan;
  Comm comm;
};

/// Blocks that have to go by the board, whatever their types are. False: there is no memory.
template <class Number, class At>
bool list_for_board(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, std::int64_t bytes, Operation& operation) {
  now.out.clear();
  now.in.clear();
  if (list_both(job, call, now, true)) return true;
  AsBytes<Number, At> out;
  auto in = std::make_shared<UnpackedByHost<Number, At>>();
  if (!list_as_bytes(job, call, now, bytes, out, in->bytes)) return false;
  in->in = call.in;
  in->loan = Loan(job.types, call.in.type);
  in->comm = host().world;  // the call's may be freed before
  operation.store = [out = std::make_shared<AsBytes<Number, At>>(std::move(out)), in] { return in->bytes.store(in->in, in->comm); };
  return true;
}

/// What goes by the board if the call does. Null: there is no memory.
template <class Number, class At>
std::unique_ptr<Operation> make_later(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, bool understood,
                                      std::int64_t bytes) try {
  auto operation = std::make_unique<Operation>();
  if (!understood && !list_for_board(job, call, now, bytes, *operation)) return nullptr;
  operation->standing = std::make_unique<Standing>(now.pattern(), std::move(now.out), std::move(now.in));
  return make_room_for_later(job) ? std::move(operation) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

}  // namespace detail

template <class Number, class At>
bool later(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result) {
  result = kSuccess;
  std::int64_t bytes = -1;
  // A rank that does not understand its types has the host pack blocks of one length alone.
  const bool even = !call.out.each && !call.in.each;
  if (of_neighbors(call.kind) || !even || !detail::has_common_bytes(call) || !detail::may_be_asked(job, call, bytes)) return false;
  CommOf* const of = detail::find_ordered(job, call.comm);
  if (of == nullptr) return false;
  const std::size_t kind = detail::kind_of(call.use, bytes);
  Asking& asking = of->order->askings[kind];
  if (asking.unasked > 0) {
    --asking.unasked;
    return false;
  }
  const std::optional<Pattern> pattern = detail::pattern_of(call.kind, call.root, call.comm, *of);
  if (!pattern || !detail::has_room(*pattern, bytes)) return false;
  if (!of->order->begin()) return false;
  detail::Exchange now(job, call.name, call.use, call.comm, *of, *pattern);
  const bool understood = detail::list_both(job, call, now), gains = now.looks(understood).gains();
  std::unique_ptr<Operation> operation;
  if (gains) operation = detail::make_later(job, call, now, understood, bytes);
  if (detail::decide(job, *of, kind, bytes, operation != nullptr) != Decision::board) return false;
  for (int tries = 0; operation == nullptr && tries < 2; ++tries) {
    if (tries > 0) job.bounces.drop();
    operation = detail::make_later(job, call, now, understood && !gains && tries == 0, bytes);
  }
  if (operation != nullptr) {
    detail::begin_later(job, call.comm, *of, std::move(operation), request);
  } else {
    detail::refuse(*pattern, *of->order);
    *request = host().no_request;
    result = raise(Call::message, call.comm, kErrNoMem);
  }
  return true;
}

}  // namespace lacuna::mpi
