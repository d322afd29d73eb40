// MPI_Alltoall and its like: blocking, with a request, and persistent.
#include "lacuna/mpi/calls/calls.hpp"
#include "lacuna/mpi/messages/later.hpp"

namespace lacuna::mpi {
namespace {

// How a call ends: with its own return, with a request, or with one that is started first.
struct Ending {
  Request* request = nullptr;
  bool persistent = false;
};

const Neighbors* neighbors(Job& j, Comm comm, int rank) {
  CommOf* of = j.comms->find(comm);
  if (of == nullptr) return nullptr;
  const auto lock = j.enter();
  return neighbors_of(*of, comm, rank);
}

// False: between groups, or not as it should be; the host says what is wrong.
bool shape_of(Job& j, Collective kind, int root, Comm comm, bool out_in_place, bool in_in_place, Shape& shape, Why& why) {
  int inter = 0, size = 0, rank = 0;
  const Host& h = host();
  why = Why::in_error;
  if (comm == h.no_comm || h.Comm_test_inter(comm, &inter) != kSuccess) return false;
  if (inter != 0) why = Why::intercommunicator;
  if (inter != 0) return false;
  h.Comm_size(comm, &size);
  h.Comm_rank(comm, &rank);
  if (root < 0 || root >= size) return false;
  switch (kind) {
    case Collective::alltoall:
      shape = {.out = out_in_place ? 0 : size, .in = size, .also_out = out_in_place ? Shape::all : Shape::none};
      break;
    case Collective::allgather:
      shape = {.out = out_in_place ? 0 : 1, .in = size};
      if (out_in_place) shape.also_out = shape.not_in = rank;
      break;
    case Collective::gather:
      shape = {.out = out_in_place ? 0 : 1, .in = rank == root ? size : 0};
      if (out_in_place) shape.not_in = root;
      break;
    case Collective::scatter: shape = {.out = rank == root ? size : 0, .in = in_in_place ? 0 : 1}; break;
    case Collective::bcast: shape = {.out = rank == root ? 1 : 0, .in = rank == root ? 0 : 1}; break;
    case Collective::neighbor_alltoall:
    case Collective::neighbor_allgather: {
      shape.neighbors = neighbors(j, comm, rank);
      if (shape.neighbors == nullptr) return false;
      shape.in = static_cast<int>(shape.neighbors->in.size());
      shape.out = kind == Collective::neighbor_allgather ? 1 : static_cast<int>(shape.neighbors->out.size());
    }
  }
  return true;
}

template <class Number, class At>
bool is_basic(const Job& j, const Blocks<Number, At>& blocks) {
  return blocks.types == nullptr && j.types.is_short(blocks.type, 0, 1);
}

// The host has begun it. What is over already may share its request with others that are.
void begun(Job& j, std::unique_ptr<Operation> operation, const Ending& ending) {
  if (!operation->persistent && is_over(*ending.request)) return operation->collection->store(j);
  const auto lock = j.enter();
  j.operations.add(*ending.request, std::move(operation));
}

// Null: there is no memory for it.
std::unique_ptr<Operation> operation_of(Job& j, std::unique_ptr<Collection> collection, Comm comm, const Ending& ending) try {
  auto operation = std::make_unique<Operation>();
  operation->receives = true;
  operation->comm = comm;
  operation->persistent = ending.persistent;
  operation->active = !ending.persistent;
  operation->collection = std::move(collection);
  const auto lock = j.enter();
  j.operations.make_room();
  return operation;
} catch (const std::bad_alloc&) {
  return nullptr;
}

// What packing of its blocks is measured with.
template <class Number, class At>
MpiUse use_of(Collective kind, const Blocks<Number, At>& out, const Blocks<Number, At>& in) {
  switch (kind) {
    case Collective::alltoall: return out.each ? MpiUse::alltoallv : MpiUse::alltoall;
    case Collective::allgather: return in.each ? MpiUse::allgatherv : MpiUse::allgather;
    case Collective::gather: return in.each ? MpiUse::gatherv : MpiUse::gather;
    case Collective::scatter: return out.each ? MpiUse::scatterv : MpiUse::scatter;
    case Collective::bcast: return MpiUse::bcast;
    case Collective::neighbor_alltoall:
    case Collective::neighbor_allgather: break;
  }
  return MpiUse::neighbor;
}

// Whether packing a side may pay: what is known at once, of blocks that have one type. Most calls end with this.
template <class Number, class At>
bool may_gain(Job& j, MpiUse use, const Blocks<Number, At>& blocks, int number, Why& why) {
  if (number == 0) return false;
  if (blocks.types != nullptr) return true;
  const Count count = blocks.counts != nullptr ? *std::max_element(blocks.counts, blocks.counts + number) : blocks.count;
  bool early = false;
  why = Why::no_data;
  if (count <= 0) return count < 0;
  const Use type = j.types.find(blocks.type, count, early);
  why = early ? Why::first_use : Why::contiguous;
  if (type == nullptr) return !early;
  if (type->contiguous(count)) {
    if (!j.reports) type->leave(use, count, Type::Among::host_and_packed);
    return false;
  }
  why = Why::host_is_fast;
  return j.ways.packs(use, *type.get(), count);
}

// How many blocks each side of a call has whose blocks differ; false: between groups, or not known yet.
bool count_blocks(Job& j, Collective kind, int root, Comm comm, int& out, int& in) {
  int inter = 0, size = 0, rank = 0;
  const Host& h = host();
  if (comm == h.no_comm || h.Comm_test_inter(comm, &inter) != kSuccess || inter != 0) return false;
  if (kind == Collective::neighbor_alltoall || kind == Collective::neighbor_allgather) {
    const CommOf* const of = j.comms->find(comm);
    if (of == nullptr || !of->neighbors) return false;
    out = static_cast<int>(of->neighbors->out.size());
    in = static_cast<int>(of->neighbors->in.size());
    return true;
  }
  h.Comm_size(comm, &size);
  h.Comm_rank(comm, &rank);
  out = kind == Collective::scatter && rank != root ? 0 : size;
  in = kind == Collective::gather && rank != root ? 0 : size;
  return true;
}

// Whether all blocks of a call were left to the host before, told by handles and counts alone. Of a root's side the
// others' arguments mean nothing: it is known if it is like the other one, or if this is the root.
template <class Number, class At>
bool leaves(Job& j, Collective kind, int root, Comm comm, const Blocks<Number, At>& out, const Blocks<Number, At>& in) {
  const MpiUse use = use_of(kind, out, in);
  const auto left = [&](const Blocks<Number, At>& side, int number) {
    if (side.base == in_place()) return false;
    for (int i = 0; i < number; ++i) {
      const Count count = side.count_of(i);
      if (side.counts != nullptr && count == 0) continue;
      if (!j.ways.leaves(use, j.types.seen(side.type_of(i)), count, Type::Among::host_and_packed)) return false;
    }
    return true;
  };
  if (out.counts != nullptr || in.counts != nullptr) {
    const bool out_first = out.counts == nullptr;  // a look at one block first: most that are not left end there
    if (Mutex::multiple() || (out_first ? !left(out, 1) : in.counts == nullptr && !left(in, 1))) return false;
    int outs = 0, ins = 0;
    return count_blocks(j, kind, root, comm, outs, ins) && (out_first || left(out, outs)) && (in.counts == nullptr || left(in, ins));
  }
  const bool alike = out.type == in.type && out.count == in.count;
  if (kind == Collective::gather) return alike && left(out, 1);
  if (kind == Collective::scatter) return alike && left(in, 1);
  return left(out, 1) && (alike || left(in, 1));
}

// What a program that learns tries: of calls in which each rank waits for others, and all blocks are alike.
template <class Number, class At>
Ways::OneWay tries(Job& j, Collective kind, const Blocks<Number, At>& out, const Blocks<Number, At>& in) {
  if (!j.ways.learns() || (!all_with_all(kind) && !of_neighbors(kind))) return {};
  const bool alike = !out.each && out.base != in_place();
  Ways::OneWay tried = j.ways.try_collective(use_of(kind, out, in), alike ? j.types.seen(out.type) : nullptr, out.count, j.types);
  j.ways.receives();
  j.ways.waited();
  return tried;
}

// What is packed here of a call; null: nothing.
template <class Number, class At>
std::unique_ptr<Collection> packed_of(Job& j, Collective kind, int root, Comm comm, const Blocks<Number, At>& out,
                                      const Blocks<Number, At>& in, bool persistent, Why& why) try {
  Shape shape;
  if (!shape_of(j, kind, root, comm, out.base == in_place(), in.base == in_place(), shape, why)) return nullptr;
  const MpiUse use = use_of(kind, out, in);
  Why of_out = Why::no_data, of_in = Why::no_data;
  const bool out_may = may_gain(j, use, out, shape.out, of_out);
  const bool in_may = may_gain(j, use, in, shape.in, of_in);
  why = shape.in == 0 || (shape.out > 0 && of_out != Why::contiguous) ? of_out : of_in;
  if (!persistent && !out_may && !in_may) return nullptr;
  auto made = std::make_unique<Collection>();
  made->shape = shape;
  if (persistent) {
    detail::decode_all(j, out, shape.out);
    detail::decode_all(j, in, shape.in);
  }
  // One after the other: each that is not worth packing stays as it is.
  const std::vector<bool> all;
  const bool one_for_all = kind == Collective::neighbor_allgather;
  const std::vector<bool>& to = shape.neighbors != nullptr && !one_for_all ? shape.neighbors->out : all;
  const std::vector<bool>& from = shape.neighbors != nullptr ? shape.neighbors->in : all;
  if (shape.out > 0 && !made->out.take(j, use, out, shape.out, to, of_out)) made->out = {};
  if (shape.in > 0 && !made->in.take(j, use, in, shape.in, from, of_in)) made->in = {};
  why = shape.in == 0 || (shape.out > 0 && of_out != Why::host_is_fast) ? of_out : of_in;
  return made->packed() ? std::move(made) : nullptr;
} catch (const std::bad_alloc&) {
  why = Why::no_memory;
  return nullptr;
}

// What is packed here, or not, of a call that is not known to be the host's.
template <class Number, class At, class Go>
__attribute__((noinline)) int collect_packed(Job* j, Function function, Collective kind, int root, Comm comm, const Blocks<Number, At>& out,
                                             const Blocks<Number, At>& in, const Ending& ending, const Go& go) {
  const auto pass = [&] { return go(as_said(out), as_said(in)); };
  Why why = Why::contiguous;
  std::unique_ptr<Collection> made = packed_of(*j, kind, root, comm, out, in, ending.persistent, why);
  if (made == nullptr) return passed(j, function, why, pass);
  if (!ending.persistent) made->load(*j);
  if (ending.request == nullptr) {
    const int result = go(made->out.given(out), made->in.given(in));
    if (result == kSuccess) made->store(*j);
    return result;
  }
  std::unique_ptr<Operation> operation = operation_of(*j, std::move(made), comm, ending);
  if (operation == nullptr) return passed(j, function, Why::no_memory, pass);
  const Collection& collection = *operation->collection;
  const int result = go(collection.out.given(out), collection.in.given(in));
  if (result == kSuccess) begun(*j, std::move(operation), ending);
  return result;
}

template <class Number, class At, class Go>
int collect(Function function, Collective kind, int root, Comm comm, const Blocks<Number, At>& out, const Blocks<Number, At>& in,
            const Ending& ending, const Go& go) {
  Job* const j = job;
  const auto pass = [&] { return go(as_said(out), as_said(in)); };
  if (!takes_messages(j)) return passed(j, function, Why::not_full, pass);
  if (j->looks()) j->look_at(LineTimes::kByTurns);
  Ways::OneWay tried;
  {
    int result = kSuccess;
    const CollectiveCall<Number, At> call{.name = Passed::functions()[static_cast<std::size_t>(function)],
                                          .kind = kind,
                                          .root = root,
                                          .comm = comm,
                                          .use = out.typed && kind == Collective::alltoall ? MpiUse::alltoallw : use_of(kind, out, in),
                                          .out = out,
                                          .in = in};
    const bool taken = ending.persistent           ? stand(*j, call, ending.request, result)
                       : ending.request != nullptr ? later(*j, call, ending.request, result)
                                                   : exchange(*j, call, tried, result);
    if (taken) return result;
  }
  if (ending.request == nullptr && !tried.holds()) tried = tries(*j, kind, out, in);
  if (leaves(*j, kind, root, comm, out, in)) return passed(j, function, Why::host_is_fast, pass);
  if (is_basic(*j, out) && is_basic(*j, in)) return passed(j, function, Why::contiguous, pass);
  return collect_packed(j, function, kind, root, comm, out, in, ending, go);
}

// What a host does not have, but a program that asks the loader for it finds here.
int has_none(Comm comm, const char* name) {
  base::log(base::Level::error, std::string("this MPI has no ") + name);
  return raise(Call::message, comm, kErrOther);
}

template <class Number, class At>
Blocks<Number, At> even(const void* base, Number count, Datatype type) {
  return {.base = base, .count = count, .type = type};
}
template <class Number, class At>
Blocks<Number, At> uneven(const void* base, const Number* counts, const At* places, Datatype type) {
  return {.base = base, .counts = counts, .places = places, .type = type, .each = true};
}
template <class Number, class At>
Blocks<Number, At> typed(const void* base, const Number* counts, const At* places, const Datatype* types) {
  return {.base = base, .counts = counts, .places = places, .types = types, .each = true, .typed = true};
}

}  // namespace

// A function of each kind three times. `arguments`: as the program calls it; `sides`: its two sides; `passed`: what the
// host gets, of what the program said and of both sides as they are given (o and i). Everything comes in parentheses.
// NOLINTBEGIN(bugprone-macro-parentheses): types, parts of names and lists
#define LIST(...) __VA_ARGS__
#define LIST_OF(parentheses) LIST parentheses
#define COLLECTIVE(name, kind, root, At, arguments, sides, passed)                                              \
  LACUNA_MPI_CALL(name, (LIST_OF(arguments), Comm comm)) {                                                      \
    if (host().name == nullptr) return has_none(comm, "MPI_" #name);                                            \
    return collect(Function::name, kind, root, comm, LIST_OF(sides), {},                                        \
                   [&](const Given<At>& o, const Given<At>& i) { return host().name(LIST_OF(passed), comm); }); \
  }                                                                                                             \
  LACUNA_MPI_CAUGHT
#define COLLECTIVE_LATER(name, kind, root, At, arguments, sides, passed)                                                 \
  LACUNA_MPI_CALL(name, (LIST_OF(arguments), Comm comm, Request * request)) {                                            \
    if (host().name == nullptr) return has_none(comm, "MPI_" #name);                                                     \
    return collect(Function::name, kind, root, comm, LIST_OF(sides), {.request = request, .persistent = false},          \
                   [&](const Given<At>& o, const Given<At>& i) { return host().name(LIST_OF(passed), comm, request); }); \
  }                                                                                                                      \
  LACUNA_MPI_CAUGHT
#define COLLECTIVE_INIT(name, kind, root, At, arguments, sides, passed)                                                        \
  LACUNA_MPI_CALL(name, (LIST_OF(arguments), Comm comm, Info info, Request * request)) {                                       \
    if (host().name == nullptr) return has_none(comm, "MPI_" #name);                                                           \
    return collect(Function::name, kind, root, comm, LIST_OF(sides), {.request = request, .persistent = true},                 \
                   [&](const Given<At>& o, const Given<At>& i) { return host().name(LIST_OF(passed), comm, info, request); }); \
  }                                                                                                                            \
  LACUNA_MPI_CAUGHT
#define EVEN(N, At) (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type)
#define EVEN_ROOT(N, At) (const void* out, N out_count, Datatype out_type, void* in, N in_count, Datatype in_type, int root)
#define ONE_ROOT(N, At) (void* all, N count, Datatype type, int root)
#define IN_V(N, At) (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts, const At* in_places, Datatype in_type)
#define IN_V_ROOT(N, At) \
  (const void* out, N out_count, Datatype out_type, void* in, const N* in_counts, const At* in_places, Datatype in_type, int root)
#define OUT_V_ROOT(N, At) \
  (const void* out, const N* out_counts, const At* out_places, Datatype out_type, void* in, N in_count, Datatype in_type, int root)
#define BOTH_V(N, At)                                                                                                                \
  (const void* out, const N* out_counts, const At* out_places, Datatype out_type, void* in, const N* in_counts, const At* in_places, \
   Datatype in_type)
#define BOTH_W(N, At)                                                                                                   \
  (const void* out, const N* out_counts, const At* out_places, const Datatype* out_types, void* in, const N* in_counts, \
   const At* in_places, const Datatype* in_types)

#define SIDES_EVEN(N, At) (even<N, At>(out, out_count, out_type), even<N, At>(in, in_count, in_type))
#define SIDES_ONE(N, At) (even<N, At>(all, count, type), even<N, At>(all, count, type))
#define SIDES_IN_V(N, At) (even<N, At>(out, out_count, out_type), uneven<N, At>(in, in_counts, in_places, in_type))
#define SIDES_OUT_V(N, At) (uneven<N, At>(out, out_counts, out_places, out_type), even<N, At>(in, in_count, in_type))
#define SIDES_BOTH_V(N, At) (uneven<N, At>(out, out_counts, out_places, out_type), uneven<N, At>(in, in_counts, in_places, in_type))
#define SIDES_BOTH_W(N, At) (typed<N, At>(out, out_counts, out_places, out_types), typed<N, At>(in, in_counts, in_places, in_types))

#define PASSED_EVEN (o.base, out_count, o.type, i.base, in_count, i.type)
#define PASSED_EVEN_ROOT (o.base, out_count, o.type, i.base, in_count, i.type, root)
#define PASSED_ONE_ROOT ((o.base != all ? o : i).base, count, (o.base != all ? o : i).type, root)
#define PASSED_IN_V (o.base, out_count, o.type, i.base, in_counts, i.places, i.type)
#define PASSED_IN_V_ROOT (o.base, out_count, o.type, i.base, in_counts, i.places, i.type, root)
#define PASSED_OUT_V_ROOT (o.base, out_counts, o.places, o.type, i.base, in_count, i.type, root)
#define PASSED_BOTH_V (o.base, out_counts, o.places, o.type, i.base, in_counts, i.places, i.type)
#define PASSED_BOTH_W (o.base, out_counts, o.places, o.types, i.base, in_counts, i.places, i.types)

#define LATER_AND_INIT(name, later, suffix, kind, root, N, At, arguments, sides, passed)  \
  COLLECTIVE_LATER(later##suffix, kind, root, At, arguments(N, At), sides(N, At), passed) \
  COLLECTIVE_INIT(name##_init##suffix, kind, root, At, arguments(N, At), sides(N, At), passed)
#define THREE(name, later, suffix, kind, root, N, At, arguments, sides, passed)    \
  COLLECTIVE(name##suffix, kind, root, At, arguments(N, At), sides(N, At), passed) \
  LATER_AND_INIT(name, later, suffix, kind, root, N, At, arguments, sides, passed)

#define ALL_COLLECTIVES(suffix, N, At)                                                                                                   \
  THREE(Alltoall, Ialltoall, suffix, Collective::alltoall, 0, N, At, EVEN, SIDES_EVEN, PASSED_EVEN)                                      \
  THREE(Alltoallv, Ialltoallv, suffix, Collective::alltoall, 0, N, At, BOTH_V, SIDES_BOTH_V, PASSED_BOTH_V)                              \
  THREE(Alltoallw, Ialltoallw, suffix, Collective::alltoall, 0, N, At, BOTH_W, SIDES_BOTH_W, PASSED_BOTH_W)                              \
  THREE(Allgather, Iallgather, suffix, Collective::allgather, 0, N, At, EVEN, SIDES_EVEN, PASSED_EVEN)                                   \
  THREE(Allgatherv, Iallgatherv, suffix, Collective::allgather, 0, N, At, IN_V, SIDES_IN_V, PASSED_IN_V)                                 \
  THREE(Gather, Igather, suffix, Collective::gather, root, N, At, EVEN_ROOT, SIDES_EVEN, PASSED_EVEN_ROOT)                               \
  THREE(Gatherv, Igatherv, suffix, Collective::gather, root, N, At, IN_V_ROOT, SIDES_IN_V, PASSED_IN_V_ROOT)                             \
  THREE(Scatter, Iscatter, suffix, Collective::scatter, root, N, At, EVEN_ROOT, SIDES_EVEN, PASSED_EVEN_ROOT)                            \
  THREE(Scatterv, Iscatterv, suffix, Collective::scatter, root, N, At, OUT_V_ROOT, SIDES_OUT_V, PASSED_OUT_V_ROOT)                       \
  THREE(Bcast, Ibcast, suffix, Collective::bcast, root, N, At, ONE_ROOT, SIDES_ONE, PASSED_ONE_ROOT)                                     \
  THREE(Neighbor_alltoall, Ineighbor_alltoall, suffix, Collective::neighbor_alltoall, 0, N, At, EVEN, SIDES_EVEN, PASSED_EVEN)           \
  THREE(Neighbor_alltoallv, Ineighbor_alltoallv, suffix, Collective::neighbor_alltoall, 0, N, At, BOTH_V, SIDES_BOTH_V, PASSED_BOTH_V)   \
  THREE(Neighbor_alltoallw, Ineighbor_alltoallw, suffix, Collective::neighbor_alltoall, 0, N, Aint, BOTH_W, SIDES_BOTH_W, PASSED_BOTH_W) \
  THREE(Neighbor_allgather, Ineighbor_allgather, suffix, Collective::neighbor_allgather, 0, N, At, EVEN, SIDES_EVEN, PASSED_EVEN)        \
  THREE(Neighbor_allgatherv, Ineighbor_allgatherv, suffix, Collective::neighbor_allgather, 0, N, At, IN_V, SIDES_IN_V, PASSED_IN_V)

ALL_COLLECTIVES(, int, int)
#if defined(LACUNA_MPI_LARGE_COLLECTIVES)
ALL_COLLECTIVES(_c, Count, Aint)
#endif

// NOLINTEND(bugprone-macro-parentheses)

}  // namespace lacuna::mpi
