// exchange(), for each form of counts and places: what the program said, as blocks, and what the host moves of it.
// Included by exchange.hpp.
#pragma once

#include "lacuna/mpi/messages/as_bytes.hpp"
#include "lacuna/mpi/messages/exchange.hpp"

namespace lacuna::mpi {
namespace detail {

/// The bytes of a call's longest block, which every rank knows; below 0: they are not to be found out.
template <class Number, class At>
std::int64_t common_bytes(Job& job, const CollectiveCall<Number, At>& call, bool is_root) {
  const Blocks<Number, At>&out = call.out, &in = call.in;
  switch (call.kind) {
    case Collective::allgather: {
      int size = 0;
      if (!in.each) return bytes_of(job, in.type, in.count);
      if (in.counts == nullptr || !Comms::has_one_group(call.comm)) return -1;  // another group is of another size
      host().Comm_size(call.comm, &size);
      return bytes_of(job, in.type, *std::max_element(in.counts, in.counts + size));
    }
    case Collective::gather: return is_root ? bytes_of(job, in.type, in.count) : bytes_of(job, out.type, out.count);
    case Collective::scatter: return is_root ? bytes_of(job, out.type, out.count) : bytes_of(job, in.type, in.count);
    default: return bytes_of(job, out.type, out.count);
  }
}

/// Whether a call's form tells every rank how long its blocks are. Not its arguments: what a root alone reads may be
/// anything on other ranks.
template <class Number, class At>
bool has_common_bytes(const CollectiveCall<Number, At>& call) {
  return !of_neighbors(call.kind) && (call.kind == Collective::allgather || (!call.out.each && !call.in.each));
}

/// Of whom each rank hears something in a call of the host's, as all ranks know.
template <class Number, class At>
int heard_in(const CollectiveCall<Number, At>& call, std::size_t ranks) {
  switch (call.kind) {
    case Collective::alltoall: return call.out.each || call.in.each ? Asking::kNone : Asking::kAll;
    case Collective::allgather:
      return call.in.counts == nullptr || *std::min_element(call.in.counts, call.in.counts + ranks) > 0 ? Asking::kAll : Asking::kNone;
    case Collective::scatter:
    case Collective::bcast: return call.out.each ? Asking::kNone : call.root;
    default: return Asking::kNone;
  }
}

/// Whether a call of a kind is left to other ways. A rank that would gain by it wishes so, and who hears of that rank
/// in the call knows of the wish when the call is over: then all ranks ask in the next one. `by`: the circle or the
/// board by which they wish; null: there is none. `wants`: this rank wishes so anyway.
template <class Number, class At, class By>
bool is_left(Job& job, const CollectiveCall<Number, At>& call, std::size_t ranks, std::size_t kind, Asking& asking, const By* by,
             bool wants = false) {
  constexpr std::size_t kMostRanks = 32;  // whose wishes are looked at in each call
  if (asking.unasked == 0) return false;
  if (asking.next == Ordered::leave) {
    asking.next = Ordered::nothing;
    --asking.unasked;
    ++asking.left;
    return true;
  }
  if (by != nullptr && asking.heard != Asking::kNone) {
    const auto wishes = [&](std::size_t rank) { return by->wishes(rank, kind, asking.left); };
    bool wished = asking.heard >= 0 && wishes(static_cast<std::size_t>(asking.heard));
    for (std::size_t rank = 0; asking.heard == Asking::kAll && rank < ranks && !wished; ++rank) wished = wishes(rank);
    if (wished) {
      asking.heard = Asking::kNone;
      return false;
    }
  }
  --asking.unasked;
  ++asking.left;
  asking.heard = by != nullptr && ranks <= kMostRanks ? heard_in(call, ranks) : Asking::kNone;
  if (asking.heard == Asking::kNone) return true;
  if (asking.heard >= 0 && !by->is_of(asking.heard)) return true;  // what only a root reads may be anything here
  if (wants) by->wish(kind, asking.left);
  for (const auto* side : {&call.out, &call.in}) {
    if (side->each || side->base == in_place() || side->count <= 0) continue;
    const Type* const seen = job.types.seen(side->type);
    if (seen != nullptr && !seen->contiguous(side->count) && job.ways.choose(call.use, *seen, side->count) == MpiWay::offered)
      by->wish(kind, asking.left);
  }
  return true;
}

/// What the host moves of one side: how much of each block, and where each is.
template <class Number, class At>
struct Left {
  std::pmr::vector<Number> counts;
  std::pmr::vector<At> places;
  /// The blocks that `stays` says; nothing of the others. `one`: all are the same.
  Left(std::size_t blocks, const Blocks<Number, At>& of, bool one, const auto& stays, std::pmr::memory_resource* memory)
      : counts(blocks, memory), places(blocks, memory) {
    for (std::size_t i = 0; i < blocks; ++i) {
      const auto block = static_cast<int>(i);
      counts[i] = stays(block) ? static_cast<Number>(of.count_of(block)) : 0;
      places[i] = of.places != nullptr ? of.places[i] : static_cast<At>(one ? 0 : i * static_cast<std::size_t>(of.count));
    }
  }
  /// False: a place is further away than the host can be told.
  static bool can_tell(std::size_t blocks, const Blocks<Number, At>& of, bool one) {
    const auto last = static_cast<std::int64_t>(std::max<std::size_t>(blocks, 1) - 1);
    std::int64_t at = 0;
    if (of.places != nullptr || one) return true;
    return !__builtin_mul_overflow(last, static_cast<std::int64_t>(of.count), &at) && at <= std::numeric_limits<At>::max();
  }
};

/// The host moves what was not offered.
template <class Number, class At>
int move_rest(const CollectiveCall<Number, At>& call, const Pattern& pattern, const Left<Number, At>& out, const Left<Number, At>& in) {
  const Host& h = host();
  const Blocks<Number, At>&from = call.out, &to = call.in;
  auto* const into = call.kind == Collective::bcast && pattern.is_root() ? in_place() : const_cast<void*>(to.base);
  const At *out_at = out.places.data(), *in_at = in.places.data();
  const Number *out_counts = out.counts.data(), *in_counts = in.counts.data();
  const auto typed = [&](auto all_to_all) {
    return all_to_all(from.base, out_counts, out_at, from.types, into, in_counts, in_at, to.types, call.comm);
  };
  if constexpr (std::is_same_v<Number, int> && std::is_same_v<At, Aint>) {
    return typed(h.Neighbor_alltoallw);  // no other call has such places
  } else {
    const auto each_to_each = [&](auto all_to_all) {
      return all_to_all(from.base, out_counts, out_at, from.type, into, in_counts, in_at, to.type, call.comm);
    };
    switch (call.kind) {
      case Collective::gather:
        return for_number<Number>(h.Gatherv, h.Gatherv_c)(from.base, out_counts[0], from.type, into, in_counts, in_at, to.type, call.root,
                                                          call.comm);
      case Collective::scatter:
      case Collective::bcast:
        return for_number<Number>(h.Scatterv, h.Scatterv_c)(from.base, out_counts, out_at, from.type, into, in_counts[0], to.type,
                                                            call.root, call.comm);
      case Collective::alltoall:
      case Collective::allgather:
        return from.typed ? typed(for_number<Number>(h.Alltoallw, h.Alltoallw_c))
                          : each_to_each(for_number<Number>(h.Alltoallv, h.Alltoallv_c));
      default:
        if constexpr (std::is_same_v<Number, Count>) {
          if (from.typed) return typed(h.Neighbor_alltoallw_c);
        }
        return each_to_each(for_number<Number>(h.Neighbor_alltoallv, h.Neighbor_alltoallv_c));
    }
  }
}

/// A persistent call is there for many starts, which pay for decoding its types.
template <class Number, class At>
void decode_all(Job& j, const Blocks<Number, At>& blocks, int number) {
  for (int i = 0; i < number; ++i) {
    if (blocks.count_of(i) > 0) j.types.find(blocks.type_of(i));
  }
}

/// The blocks of both sides; false: they are not understood. `persistent`: so is the call.
template <class Number, class At>
bool list_both(Job& job, const CollectiveCall<Number, At>& call, Exchange& now, bool persistent = false) try {
  const Pattern& pattern = now.pattern();
  const std::vector<bool> all;
  Why why{};
  const Neighbors* const neighbors = pattern.neighbors();
  const bool one = pattern.one_for_all();
  const bool has_out = call.out.base != in_place() && pattern.outs() > 0;
  const bool has_in = call.in.base != in_place() && !(call.kind == Collective::bcast && pattern.is_root());
  if (persistent && has_out) decode_all(job, call.out, one ? 1 : pattern.outs());
  if (persistent && has_in) decode_all(job, call.in, pattern.ins());
  if (has_out && !list(job, call.out, one ? 1 : pattern.outs(), neighbors != nullptr && !one ? neighbors->out : all, now.out, nullptr, why))
    return false;
  if (has_in && !list(job, call.in, pattern.ins(), neighbors != nullptr ? neighbors->in : all, now.in, nullptr, why)) return false;
  return true;
} catch (const std::bad_alloc&) {
  return false;  // the others have to be told
}

/// Whether the ranks ask one another about such calls, which all know alike. `bytes`: of a block on all ranks; below 0:
/// no rank knows.
template <class Number, class At>
bool may_be_asked(Job& job, const CollectiveCall<Number, At>& call, std::int64_t& bytes) {
  if (call.comm == host().no_comm || (all_with_all(call.kind) && call.out.base == in_place())) return false;
  int rank = 0;
  if (has_common_bytes(call)) {
    // Between groups a root below 0 has no part, or is of this group, and other ranks' roots are of the other one.
    if (call.root < 0) return false;
    const bool one_side = call.kind == Collective::gather || call.kind == Collective::scatter;
    if (one_side) host().Comm_rank(call.comm, &rank);
    if (one_side && rank == call.root && !Comms::has_one_group(call.comm)) return false;
    bytes = common_bytes(job, call, rank == call.root);
    if (bytes <= 0) return false;
  }
  return job.ways.asks(call.use, bytes, true);
}

/// Whether this rank, the first, tries other ways of a call: where it learns, and all ranks hear of it.
template <class Number, class At>
bool may_try(Job& job, const CollectiveCall<Number, At>& call, const CommOf& of) {
  const Board* const board = of.board.get();
  if (!job.ways.learns() || board == nullptr || !board->is_of(0) || !(all_with_all(call.kind) || of_neighbors(call.kind))) return false;
  job.ways.receives();
  job.ways.waited();
  return !job.ways.rests();
}

/// What it tries, by its first block with gaps.
template <class Number, class At>
TrialOrder order_of(Job& job, const CollectiveCall<Number, At>& call, const CommOf& of, bool ordered, Ways::OneWay& tried) {
  const std::optional<Pattern> pattern = pattern_of(call.kind, call.root, call.comm, of);
  if (!pattern) return {};
  for (const auto& [side, number] : {std::pair(&call.out, pattern->outs()), std::pair(&call.in, pattern->ins())}) {
    if (side->base == in_place()) continue;
    for (int i = 0; i < (side == &call.out && pattern->one_for_all() ? std::min(number, 1) : number); ++i) {
      const Count count = side->count_of(i);
      const Type* const seen = count > 0 ? job.types.seen(side->type_of(i)) : nullptr;
      if (seen != nullptr && !seen->contiguous(count)) return order_of(job, call.use, *seen, count, of, ordered, tried);
    }
  }
  return {};
}

/// Whether the ranks of a communicator that have not agreed yet do so now: one of them gains by this call. `of`: null
/// without memory.
template <class Number, class At>
bool agree(Job& job, const CollectiveCall<Number, At>& call, CommOf* of, std::int64_t bytes, int& result) {
  Circle* circle = nullptr;
  if (!find_circle(job, call.comm, of, circle)) return false;
  const std::size_t kind = kind_of(call.use, bytes);
  Asking* asking = of != nullptr ? &of->askings[kind] : nullptr;
  if (circle != nullptr) asking = &circle->askings[kind];
  if (asking != nullptr && is_left(job, call, of->places.size(), kind, *asking, circle)) return false;
  const bool may = of != nullptr && !of->of_host && (circle != nullptr || knows(*of, call.comm));
  Said said{.says = static_cast<unsigned char>(may ? 0 : Slot::refuses)};
  const std::optional<Pattern> pattern = may ? pattern_of(call.kind, call.root, call.comm, *of) : std::nullopt;
  if (pattern) {
    Exchange now(job, call.name, call.use, call.comm, *of, *pattern);
    said = now.looks(list_both(job, call, now));
  }
  if (circle != nullptr) {
    if (!inquire(job, call.comm, *circle, said, result)) return false;
    settle(*asking, said);
    if (!said.gains()) return false;
  }
  return agree_by_host(job, call.comm, of, said, asking, result);
}

}  // namespace detail

template <class Number, class At>
bool exchange(Job& job, const CollectiveCall<Number, At>& call, Ways::OneWay& tried, int& result) {
  result = kSuccess;
  std::int64_t bytes = -1;
  if (!detail::may_be_asked(job, call, bytes)) return false;
  CommOf* const of = detail::find(job, call.comm);
  if (!detail::may_agree(job, call.comm, of, call.use)) return false;
  const bool agrees = of != nullptr && of->exchanges == CommOf::Exchanges::agreed;
  if (!agrees && !detail::agree(job, call, of, bytes, result)) return result != kSuccess;
  if (result != kSuccess) return true;
  if (!detail::asks(*of, call.use) || (of->board.get() == nullptr && !job.ways.asks(call.use, bytes, false))) return false;
  const std::size_t kind = detail::kind_of(call.use, bytes);
  Asking* const asking = &of->askings[kind];
  const bool ordered = asking->next != Ordered::nothing, tries = detail::may_try(job, call, *of);
  const bool left = detail::is_left(job, call, of->places.size(), kind, *asking, of->board.get(), tries);
  if (left && !ordered) return false;
  const TrialOrder order = tries ? detail::order_of(job, call, *of, ordered, tried) : TrialOrder();
  if (tries && ordered && !tried.holds()) job.ways.break_off();  // this call is of other blocks than the trial
  if (left) return false;
  const std::optional<Pattern> pattern = detail::pattern_of(call.kind, call.root, call.comm, *of);
  if (!pattern) return false;
  if (of->board.get() != nullptr) of->board.get()->expect(bytes);
  detail::Exchange now(job, call.name, call.use, call.comm, *of, *pattern);
  using Left = detail::Left<Number, At>;
  const auto outs = static_cast<std::size_t>(pattern->outs()), ins = static_cast<std::size_t>(pattern->ins());
  const bool one = pattern->one_for_all();
  const bool understood = detail::list_both(job, call, now) && Left::can_tell(ins, call.in, false) && Left::can_tell(outs, call.out, one);
  if (detail::Exchange::passes(*pattern, *of, *asking, bytes, job.crowded)) {
    detail::AsBytes<Number, At> out_bytes, in_bytes;
    now.pass(understood || detail::list_as_bytes(job, call, now, out_bytes, in_bytes));
    result = now.finish();
    if (result == kSuccess) result = in_bytes.store(call.comm);
    return true;
  }
  now.give(order);
  // Whatever is understood, the others wait for an answer.
  if (!now.ask(understood, *asking, result)) return result != kSuccess;
  now.take();
  if (now.has_rest()) {
    const Left out(outs, call.out, one, [&](int i) { return !now.moves_out(i); }, now.memory());
    const Left in(ins, call.in, false, [&](int i) { return !now.moves_in(i); }, now.memory());
    result = detail::move_rest(call, *pattern, out, in);
  }
  const int moved = now.finish();
  if (result == kSuccess) result = moved;
  return true;
}

// A rank that cannot take part has to say so, as in agree().
template <class Number, class At>
bool stand(Job& job, const CollectiveCall<Number, At>& call, Request* request, int& result) {
  result = kSuccess;
  std::int64_t bytes = -1;
  if (!detail::may_be_asked(job, call, bytes)) return false;
  CommOf* const of = detail::find(job, call.comm);
  Circle* circle = nullptr;
  if (!detail::may_agree(job, call.comm, of, call.use)) return false;
  if (of != nullptr ? !of->one_node : job.comms->is_of_one_node(call.comm) != true) return false;
  if (!detail::find_circle(job, call.comm, of, circle)) return false;
  detail::Said said{.says = detail::Slot::refuses};
  std::unique_ptr<Operation> operation;
  std::vector<std::byte> memory;
  std::vector<int> numbers;
  if (of != nullptr && !of->of_host && (circle != nullptr || detail::knows(*of, call.comm))) try {
      const std::optional<Pattern> pattern = detail::pattern_of(call.kind, call.root, call.comm, *of);
      if (pattern) {
        detail::Exchange now(job, call.name, call.use, call.comm, *of, *pattern);
        said = now.looks(detail::list_both(job, call, now, true));
        operation = std::make_unique<Operation>();
        operation->standing = std::make_unique<Standing>(*pattern, std::move(now.out), std::move(now.in));
        numbers.resize(static_cast<std::size_t>(pattern->ins()) + 1);
        memory.resize(
            detail::Exchange::memory_for(std::max({of->places.size(), numbers.size(), static_cast<std::size_t>(pattern->outs())})));
        const auto lock = job.enter();
        job.operations.make_room();
      }
    } catch (const std::bad_alloc&) {
      said = {.says = detail::Slot::refuses};
    }
  if (circle == nullptr) result = detail::combine(call.comm, said);
  if (result != kSuccess || (circle != nullptr && !detail::inquire(job, call.comm, *circle, said, result))) return result != kSuccess;
  if (!said.gains()) return false;
  if (!detail::agree_on_standing(job, call.comm, *of, *operation->standing, memory, std::move(numbers), result)) return result != kSuccess;
  result = detail::add_standing(job, call.comm, std::move(operation), request);
  return true;
}

}  // namespace lacuna::mpi
