// The fake's collectives: messages of their own, on a context beside the communicator's, numbered as the calls are.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "tests/interposer/scarce.hpp"
#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {
namespace {

using mpi::kProcNull;
using mpi::kSuccess;
using Kind = RequestObject::Kind;

enum class Name {
  Alltoall,
  Alltoallv,
  Alltoallw,
  Allgather,
  Allgatherv,
  Gather,
  Gatherv,
  Scatter,
  Scatterv,
  Bcast,
  Neighbor_alltoall,
  Neighbor_alltoallv,
  Neighbor_alltoallw,
  Neighbor_allgather,
  Neighbor_allgatherv
};

constexpr std::array kNames{"Alltoall",
                            "Alltoallv",
                            "Alltoallw",
                            "Allgather",
                            "Allgatherv",
                            "Gather",
                            "Gatherv",
                            "Scatter",
                            "Scatterv",
                            "Bcast",
                            "Neighbor_alltoall",
                            "Neighbor_alltoallv",
                            "Neighbor_alltoallw",
                            "Neighbor_allgather",
                            "Neighbor_allgatherv"};
constexpr bool is_gather(Name name) {
  return name == Name::Allgather || name == Name::Allgatherv || name == Name::Neighbor_allgather || name == Name::Neighbor_allgatherv;
}
constexpr bool of_neighbours(Name name) { return name >= Name::Neighbor_alltoall; }

// Blocks one after another, or wherever: the i-th.
struct Blocks {
  const void* base = nullptr;
  Datatype type{};
  std::function<std::pair<Count, std::int64_t>(std::size_t)> at;  ///< its count, and where it is, in bytes
  std::function<Datatype(std::size_t)> type_of;                   ///< or each has its own
  [[nodiscard]] Datatype type_at(std::size_t i) const { return type_of ? type_of(i) : type; }
};

Blocks even(const void* base, Count count, Datatype type) {
  const auto map = map_of(type);
  const std::int64_t bytes = map == nullptr ? 0 : count * map->extent;
  return {.base = base,
          .type = type,
          .at = [=](std::size_t i) { return std::pair{count, static_cast<std::int64_t>(i) * bytes}; },
          .type_of = {}};
}
template <class Number, class At>
Blocks placed(const void* base, const Number* counts, const At* places, Datatype type) {
  const auto map = map_of(type);
  const std::int64_t extent = map == nullptr ? 0 : map->extent;
  return {.base = base,
          .type = type,
          .at = [=](std::size_t i) { return std::pair{static_cast<Count>(counts[i]), static_cast<std::int64_t>(places[i]) * extent}; },
          .type_of = {}};
}
template <class Number, class At>
Blocks placed(const void* base, const Number* counts, const At* places, const Datatype* types) {
  return {.base = base,
          .type = {},
          .at = [=](std::size_t i) { return std::pair{static_cast<Count>(counts[i]), static_cast<std::int64_t>(places[i])}; },
          .type_of = [=](std::size_t i) { return types[i]; }};
}

struct Both {
  Blocks out, in;
  int root = -1;
};
// The forms of arguments, as host.hpp lists them.
template <class N>
Both both(const void* out, N n, Datatype type, void* in, N m, Datatype in_type) {
  return {even(out, n, type), even(in, m, in_type)};
}
template <class N>
Both both(const void* out, N n, Datatype type, void* in, N m, Datatype in_type, int root) {
  return {even(out, n, type), even(in, m, in_type), root};
}
template <class N>
Both both(void* base, N n, Datatype type, int root) {
  return {even(base, n, type), even(base, n, type), root};
}
template <class N, class A>
Both both(const void* out, N n, Datatype type, void* in, const N* counts, const A* places, Datatype in_type) {
  return {even(out, n, type), placed(in, counts, places, in_type)};
}
template <class N, class A>
Both both(const void* out, N n, Datatype type, void* in, const N* counts, const A* places, Datatype in_type, int root) {
  return {even(out, n, type), placed(in, counts, places, in_type), root};
}
template <class N, class A>
Both both(const void* out, const N* counts, const A* places, Datatype type, void* in, N m, Datatype in_type, int root) {
  return {placed(out, counts, places, type), even(in, m, in_type), root};
}
template <class N, class A, class T>
Both both(const void* out, const N* counts, const A* places, T type, void* in, const N* in_counts, const A* in_places, T in_type) {
  return {placed(out, counts, places, type), placed(in, in_counts, in_places, in_type)};
}

// One message of a collective: block i of some blocks, with a rank of the communicator.
struct Edge {
  bool sends;
  std::size_t block;
  int peer;
  std::size_t neighbour = 0;
};

std::vector<Edge> edges(Name name, const CommObject& comm, int root) {
  std::vector<Edge> all;
  const auto size = comm.group.size();
  const bool same = is_gather(name);
  if (of_neighbours(name)) {
    for (std::size_t i = 0; i < comm.destinations.size(); ++i) all.push_back({true, same ? 0 : i, comm.destinations[i], i});
    for (std::size_t i = 0; i < comm.sources.size(); ++i) all.push_back({false, i, comm.sources[i], i});
    return all;
  }
  const bool to_root = name == Name::Gather || name == Name::Gatherv;
  const bool of_root = name == Name::Scatter || name == Name::Scatterv || name == Name::Bcast;
  const bool rooted = comm.rank == root;
  for (std::size_t i = 0; i < size; ++i) {
    const int peer = static_cast<int>(i);
    if (to_root) {
      if (peer == root) all.push_back({true, 0, root});
      if (rooted) all.push_back({false, i, peer});
    } else if (of_root) {
      const bool broadcast = name == Name::Bcast;
      if (rooted && !(broadcast && peer == root)) all.push_back({true, broadcast ? 0 : i, peer});
      if (peer == root && !(broadcast && rooted)) all.push_back({false, 0, root});
    } else {
      all.push_back({true, same ? 0 : i, peer});
      all.push_back({false, i, peer});
    }
  }
  return all;
}

// In a Cartesian grid what is sent in one direction comes from the other one (MPI-4.1, 8.6).
int tag_of(Name name, const CommObject& comm, const Edge& edge, int number) {
  if (comm.topology != mpi::kCart || !of_neighbours(name)) return number * 64;
  const auto direction = static_cast<int>(edge.neighbour);
  return number * 64 + (edge.sends ? direction : direction ^ 1);
}

// Begins it: `request` has a part for each message.
void go_on(RequestObject& request, Name name, const Both& of) {
  CommObject& comm = *find(request.comm);
  const int number = ++comm.collectives;
  request.parts.clear();
  for (const Edge& edge : edges(name, comm, of.root)) {
    if (edge.peer == kProcNull) continue;
    // In place: what would be sent is where it would be received.
    const bool out_in_place = of.out.base == mpi::in_place();
    if (edge.sends && out_in_place && (of.root >= 0 || is_gather(name)) && edge.peer == comm.rank) continue;
    if (!edge.sends && (of.in.base == mpi::in_place() || (out_in_place && (of.root >= 0 || is_gather(name)))) && edge.peer == comm.rank)
      continue;
    if (edge.sends && of.in.base == mpi::in_place() && edge.peer == comm.rank) continue;
    const bool from_in = edge.sends && out_in_place;
    const Blocks& blocks = edge.sends && !from_in ? of.out : of.in;
    const std::size_t block = from_in && is_gather(name) ? static_cast<std::size_t>(comm.rank) : edge.block;
    auto part = std::make_shared<RequestObject>();
    const auto [count, at] = blocks.at(block);
    part->kind = edge.sends ? Kind::send : Kind::receive;
    part->base = static_cast<std::byte*>(const_cast<void*>(blocks.base)) + at;
    part->count = count;
    part->map = map_of(blocks.type_at(block));
    part->peer = edge.peer;
    part->there = in_world(comm, edge.peer);
    part->tag = tag_of(name, comm, edge, number);
    part->comm = request.comm;
    part->context = comm.context ^ 0x5555;
    part->me = comm.rank;
    part->buffered = true;
    request.parts.push_back(part);
  }
  if (has_dead(comm)) {
    for (const Held& part : request.parts) fail(*part);
    return;
  }
  for (const bool sends : {true, false}) {  // in place, what goes out is read first
    for (const Held& part : request.parts)
      if ((part->kind == Kind::send) == sends) go(part);
  }
}

int begin(Name name, const Both& of, Comm comm, bool starts, Request* request) {
  const scarce::Other others;
  const Lock lock = enter();
  if (find(comm) == nullptr) return kErrComm;
  auto made = std::make_shared<RequestObject>();
  made->kind = Kind::group;
  made->comm = comm;
  made->status = empty_status();
  made->persistent = !starts;
  made->active = starts;
  made->start = [name, of](RequestObject& self) { go_on(self, name, of); };
  *request = add(made);
  if (starts) go(made);
  return kSuccess;
}

// MPI_Alltoall's is MPI_Ialltoall.
std::string late_name(Name name) {
  std::string made = kNames.at(static_cast<std::size_t>(name));
  made.front() = static_cast<char>(std::tolower(made.front()));
  return "I" + made;
}

template <Name kName, class... Arguments>
struct Call {
  static int later(Arguments... arguments, Comm comm, Request* request) {
    const scarce::Other others;
    static const std::string name = late_name(kName);
    if (const int code = fault_of(name.c_str()); code != kSuccess) return code;
    return begin(kName, both(arguments...), comm, true, request);
  }
  static int init(Arguments... arguments, Comm comm, Info /*info*/, Request* request) {
    const scarce::Other others;
    return begin(kName, both(arguments...), comm, false, request);
  }
  static int now(Arguments... arguments, Comm comm) {
    Request request{};
    const scarce::Other others;
    if (const int code = fault_of(kNames.at(static_cast<std::size_t>(kName))); code != kSuccess) return code;
    const int wrong = begin(kName, both(arguments...), comm, true, &request);
    return wrong != kSuccess ? wrong : calls::Wait(&request, mpi::ignored());
  }
};

}  // namespace

void fill_collectives(Host& host) {
#define X(name, late, arguments)                                    \
  host.name = &Call<Name::name, arguments(int, int)>::now;          \
  host.late = &Call<Name::name, arguments(int, int)>::later;        \
  host.name##_init = &Call<Name::name, arguments(int, int)>::init;  \
  host.name##_c = &Call<Name::name, arguments(Count, Aint)>::now;   \
  host.late##_c = &Call<Name::name, arguments(Count, Aint)>::later; \
  host.name##_init_c = &Call<Name::name, arguments(Count, Aint)>::init;
  LACUNA_MPI_COLLECTIVES(X)
#undef X
}

namespace calls {

// Of bytes, by MPI_BAND.
int Allreduce(const void* mine, void* all, int count, Datatype type, Op /*op*/, Comm comm) {
  std::size_t size = 0;
  {
    const Lock lock = enter();
    const CommObject* of = find(comm);
    if (of == nullptr) return kErrComm;
    size = of->group.size();
  }
  std::vector<std::byte> of_each(size * static_cast<std::size_t>(count));
  const int result = mpi::host().Allgather(mine, count, type, of_each.data(), count, type, comm);
  auto* const to = static_cast<std::byte*>(all);
  for (std::size_t i = 0; i < of_each.size(); ++i) {
    std::byte& one = to[i % static_cast<std::size_t>(count)];
    one = std::cmp_less(i, count) ? of_each[i] : one & of_each[i];
  }
  return result;
}

int Ibarrier(Comm comm, Request* request) {
  return mpi::host().Iallgather(nullptr, 0, byte_type(), nullptr, 0, byte_type(), comm, request);
}

}  // namespace calls
}  // namespace lacuna::test::fake
