// Collectives with requests (MPI_Ialltoall and its like) of ranks of one node, by boards: packed onto a board when they
// begin, unpacked from the others' boards as these are there. So no call waits, and a rank that has begun its part
// needs not be in MPI for the others to end theirs.
//
// All ranks have to go by boards in a call, or none. They cannot ask one another, so the rank that begins it first
// decides (order.hpp). Of an uneven call, with a count for each block or of neighbors, that rank does not know whether
// the others' boards have room. A rank whose board has not takes memory for that call alone, which its notes tell of,
// and says so in its entry; then such calls are the host's for a while.
#pragma once

#include "lacuna/mpi/messages/exchange.hpp"

namespace lacuna::mpi {

/// False: the call is to go on by other ways.
template <class Number, class At>
bool later(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result);

namespace detail {

/// With its order. Null: its calls are the host's, on this rank for ever.
CommOf* find_ordered(Job& job, Comm comm);
/// What decides how a call goes.
struct LaterKind {
  std::size_t number = 0;   ///< of its kind
  std::int64_t bytes = -1;  ///< of its longest block, as all ranks know,
  bool uneven = false;      ///< unless not all do
  bool of_neighbors = false;
};
/// How it goes. `gains`: this rank would, by a board.
Decision decide(Job& job, Comm comm, CommOf& of, const LaterKind& kind, bool gains);
/// Makes room for one more operation, and its request. False: there is none.
bool make_room_for_later(Job& job);
/// Begins one that goes by the board. False: its blocks have no room there, and there is no memory for them.
bool begin_later(Job& job, Comm comm, const CommOf& of, std::unique_ptr<Operation> operation, Request* request);
/// This rank has no memory for a call that goes by the board: those that wait for its blocks are told.
void refuse(const Pattern& pattern, const Order& order);
/// Whether blocks of so many bytes have room on each rank's board.
bool has_room(const Pattern& pattern, std::int64_t bytes);

/// Blocks that have to go by the board, whatever their types are. False: there is no memory.
template <class Number, class At>
bool list_for_board(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, Operation& operation) {
  now.out.clear();
  now.in.clear();
  if (list_both(job, call, now, true)) return true;
  const auto out = std::make_shared<AsBytes<Number, At>>(), in = std::make_shared<AsBytes<Number, At>>();
  if (!list_as_bytes(job, call, now, *out, *in)) return false;
  // The call's communicator may be freed before.
  operation.store = [out, in] { return in->store(host().world); };
  return true;
}

/// What goes by the board if the call does. Null: there is no memory.
template <class Number, class At>
std::unique_ptr<Operation> make_later(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, bool understood) try {
  auto operation = std::make_unique<Operation>();
  if (!understood && !list_for_board(job, call, now, *operation)) return nullptr;
  operation->standing = std::make_unique<Standing>(now.pattern(), std::move(now.out), std::move(now.in));
  return make_room_for_later(job) ? std::move(operation) : nullptr;
} catch (const std::bad_alloc&) {
  return nullptr;
}

/// Goes on with a call that has begun in its order, as later().
template <class Number, class At>
bool go_later(Job& job, const CollectiveCall<Number, At>& call, CommOf& of, const Pattern& pattern, const LaterKind& kind, Request* request,
              int& result) {
  Exchange now(job, call.name, call.use, call.comm, of, pattern);
  const bool understood = list_both(job, call, now);
  // Who sends so much would need memory of its own for it.
  const bool fits = std::ranges::all_of(now.in, [](const Block& block) { return block.bytes <= Board::kQueueRoom; });
  const bool gains = fits && now.looks(understood).gains();
  std::unique_ptr<Operation> operation;
  if (gains) operation = make_later(job, call, now, understood);
  const auto has_room = [&] { return operation == nullptr || operation->standing->room() <= Board::kQueueRoom; };
  const bool by_board = decide(job, call.comm, of, kind, operation != nullptr && has_room()) == Decision::board;
  for (int tries = 0; by_board && operation == nullptr && tries < 2; ++tries) {
    if (tries > 0) job.bounces.drop();
    operation = make_later(job, call, now, understood && !gains && tries == 0);
  }
  if (kind.uneven) of.order->heed_room(has_room(), by_board);
  if (!by_board) return false;
  if (operation != nullptr && begin_later(job, call.comm, of, std::move(operation), request)) return true;
  refuse(pattern, *of.order);
  *request = host().no_request;
  result = raise(Call::message, call.comm, kErrNoMem);
  return true;
}

}  // namespace detail

template <class Number, class At>
bool later(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result) {
  result = kSuccess;
  std::int64_t bytes = -1;
  if (!detail::may_be_asked(job, call, bytes)) return false;
  CommOf* const of = detail::find_ordered(job, call.comm);
  if (of == nullptr) return false;
  const detail::LaterKind kind{.number = detail::kind_of(call.use, bytes),
                               .bytes = bytes,
                               .uneven = !detail::has_common_bytes(call),
                               .of_neighbors = of_neighbors(call.kind)};
  Asking& asking = of->order->askings[kind.number];
  if (asking.unasked > 0) {
    --asking.unasked;
    return false;
  }
  const bool known = !kind.of_neighbors || detail::knows(*of, call.comm);
  const std::optional<Pattern> pattern = known ? detail::pattern_of(call.kind, call.root, call.comm, *of) : std::nullopt;
  if (!kind.uneven && (!pattern || !detail::has_room(*pattern, bytes))) return false;  // so do all ranks
  if (!of->order->begin()) return false;
  if (pattern) return detail::go_later(job, call, *of, *pattern, kind, request, result);
  // Of neighbors that this rank does not know, no rank decides for a board.
  detail::decide(job, call.comm, *of, kind, false);
  return false;
}

}  // namespace lacuna::mpi
