// The fake's communicators, groups, attributes and error handlers. Each rank has a handle of its own; a context is
// agreed on without a message, since all ranks make a communicator's children in the same order.
#include <algorithm>
#include <array>
#include <cstring>

#include "tests/interposer/scarce.hpp"
#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {

using mpi::kErrOther;
using mpi::kProcNull;
using mpi::kSuccess;

thread_local Rank* me = nullptr;

namespace {

constexpr std::uintptr_t kErrorsReturn = 0x142;
using Handler = void (*)(Comm*, int*, ...);

struct Keyval {
  int (*deleted)(Comm, int, void*, void*);
  void* extra;
};
std::mutex keyvals_mutex;
std::map<int, Keyval> keyvals;

std::uint64_t child_of(CommObject& comm) { return support::Random(comm.context * 0x1'0001 + ++comm.children).next(); }

Comm add(std::unique_ptr<CommObject> comm) {
  const auto handle = reinterpret_cast<Comm>(comm.get());
  me->comms[handle] = std::move(comm);
  return handle;
}

std::vector<int>* group_of(Group group) {
  auto* found = reinterpret_cast<std::vector<int>*>(group);
  if (me->world->groups.contains(found)) return found;
  complain("a group that is none");
  return nullptr;
}

Group add(std::vector<int> group) {
  auto& made = me->world->all_groups.emplace_back(std::move(group));
  me->world->groups.insert(&made);
  return reinterpret_cast<Group>(&made);
}

}  // namespace

void complain(const std::string& what) { me->world->wrong.push_back("rank " + std::to_string(me->number) + ": " + what); }

CommObject* find(Comm comm) {
  const auto found = me->comms.find(comm);
  if (found != me->comms.end()) return found->second.get();
  complain("a communicator that is none");
  return nullptr;
}

int fault_of(const char* call) {
  const Lock lock = enter();
  const int n = ++me->calls[call];
  const Options& options = me->world->options;
  if (options.scarce_after >= 0 && me->number + 1 == options.ranks && n == 1 && std::string_view(call) == "Issend") {
    scarce::for_good = !options.scarce_once;
    scarce::left = options.scarce_after;
  }
  for (const Fault& fault : me->world->faults) {
    if (fault.call == call && fault.rank == me->number && (fault.n == n || fault.n == Fault::kAll)) return fault.code;
  }
  return kSuccess;
}

int calls_of(const char* call) {
  const Lock lock = enter();
  return me->calls[call];
}

int raise(Comm comm, int code) {
  Errhandler handler{};
  {
    const Lock lock = enter();
    const CommObject* object = find(comm);
    handler = object == nullptr ? mpi::errors_are_fatal() : object->handler;
    if (handler == mpi::errors_are_fatal()) complain("a fatal error: " + std::to_string(code));
  }
  if (mpi::is_own(handler)) (*reinterpret_cast<Handler*>(handler))(&comm, &code);
  return code;
}

Errhandler errors_return() { return reinterpret_cast<Errhandler>(kErrorsReturn); }
void return_errors(Comm comm) { calls::Comm_set_errhandler(comm, errors_return()); }

Comm of_stream(Comm comm) {
  const Comm made = split(comm, 0, me->comms.at(comm)->rank);
  me->comms.at(made)->stream = 17;
  return made;
}

Comm split(Comm comm, int color, int key) {
  std::vector<std::array<int, 2>> all;
  {
    const Lock lock = enter();
    all.resize(find(comm)->group.size());
  }
  const std::array<int, 2> mine{color, key};
  mpi::host().Allgather(&mine, 2, int_type(), all.data(), 2, int_type(), comm);
  const Lock lock = enter();
  CommObject& parent = *find(comm);
  auto made = std::make_unique<CommObject>();
  made->context = child_of(parent) + static_cast<std::uint64_t>(color);
  std::vector<int> order;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i][0] == color) order.push_back(static_cast<int>(i));
  std::ranges::stable_sort(order, {}, [&](int i) { return all[static_cast<std::size_t>(i)][1]; });
  for (const int i : order) {
    if (i == parent.rank) made->rank = static_cast<int>(made->group.size());
    made->group.push_back(parent.group[static_cast<std::size_t>(i)]);
  }
  made->handler = parent.handler;
  return add(std::move(made));
}

namespace {

Comm with_topology(Comm comm, int topology, std::vector<int> sources, std::vector<int> destinations, int dims) {
  const Lock lock = enter();
  CommObject& parent = *find(comm);
  auto made = std::make_unique<CommObject>();
  made->context = child_of(parent);
  made->group = parent.group;
  made->rank = parent.rank;
  made->handler = parent.handler;
  made->topology = topology;
  made->sources = std::move(sources);
  made->destinations = std::move(destinations);
  made->dims = dims;
  return add(std::move(made));
}

}  // namespace

Comm dist_graph(Comm comm, std::span<const int> sources, std::span<const int> destinations) {
  return with_topology(comm, mpi::kDistGraph, {sources.begin(), sources.end()}, {destinations.begin(), destinations.end()}, 0);
}

Comm cart(Comm comm, std::span<const int> dims, std::span<const bool> periods) {
  int rank = 0;
  mpi::host().Comm_rank(comm, &rank);
  std::vector<int> neighbours;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    int stride = 1;
    for (std::size_t e = d + 1; e < dims.size(); ++e) stride *= dims[e];
    const int at = rank / stride % dims[d];
    for (const int step : {-1, 1}) {
      const int there = at + step;
      const bool inside = there >= 0 && there < dims[d];
      const int wrapped = (there + dims[d]) % dims[d];
      neighbours.push_back(inside || periods[d] ? rank + (wrapped - at) * stride : kProcNull);
    }
  }
  return with_topology(comm, mpi::kCart, neighbours, neighbours, static_cast<int>(dims.size()));
}

// The one that was set last goes first, while the communicator is as it was (MPI-4.1, 11.4.1).
bool delete_attributes(Comm comm) {
  for (;;) {
    std::pair<int, void*> last;
    {
      const Lock lock = enter();
      CommObject* object = find(comm);
      if (object == nullptr) return false;
      if (object->attributes.empty()) return true;
      last = object->attributes.back();
      object->attributes.pop_back();
    }
    Keyval of{};
    {
      const std::scoped_lock lock(keyvals_mutex);
      of = keyvals.at(last.first);
    }
    of.deleted(comm, last.first, last.second, of.extra);
  }
}

namespace calls {

// Of three dimensions at most.
int Cart_create(Comm comm, int dims, const int* sizes, const int* periods, int /*reorder*/, Comm* made) {
  const scarce::Other others;
  const auto count = static_cast<std::size_t>(dims);
  std::array<bool, 3> wraps{};
  std::copy_n(periods, count, wraps.begin());
  *made = cart(comm, {sizes, count}, {wraps.data(), count});
  return kSuccess;
}
int Comm_get_stream(Comm comm, int /*index*/, int* stream) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  *stream = object == nullptr ? mpi::kStreamNull : object->stream;
  return kSuccess;
}

int Comm_rank(Comm comm, int* rank) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  if (object != nullptr) *rank = object->rank;
  return object != nullptr ? kSuccess : kErrComm;
}
int Comm_size(Comm comm, int* size) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  if (object != nullptr) *size = static_cast<int>(object->group.size());
  return object != nullptr ? kSuccess : kErrComm;
}
int Comm_test_inter(Comm comm, int* inter) {
  const Lock lock = enter();
  *inter = 0;
  return find(comm) != nullptr ? kSuccess : kErrComm;
}
int Comm_group(Comm comm, Group* group) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  if (object != nullptr) *group = add(object->group);
  return object != nullptr ? kSuccess : kErrComm;
}
int Comm_remote_group(Comm comm, Group* group) { return Comm_group(comm, group); }

int Group_size(Group group, int* size) {
  const Lock lock = enter();
  *size = static_cast<int>(group_of(group)->size());
  return kSuccess;
}
int Group_translate_ranks(Group from, int count, const int* ranks, Group to, int* there) {
  const Lock lock = enter();
  const std::vector<int>& of = *group_of(from);
  const std::vector<int>& into = *group_of(to);
  for (int i = 0; i < count; ++i) {
    const auto found = std::ranges::find(into, of.at(static_cast<std::size_t>(ranks[i])));
    there[i] = found == into.end() ? mpi::kUndefined : static_cast<int>(found - into.begin());
  }
  return kSuccess;
}
int Group_free(Group* group) {
  const Lock lock = enter();
  me->world->groups.erase(group_of(*group));
  return kSuccess;
}

int Comm_create_keyval(int (* /*copy*/)(Comm, int, void*, void*, void*, int*), int (*deleted)(Comm, int, void*, void*), int* keyval,
                       void* extra) {
  const std::scoped_lock lock(keyvals_mutex);
  *keyval = static_cast<int>(keyvals.size()) + 1;
  keyvals[*keyval] = {deleted, extra};
  return kSuccess;
}

// A value that is set again is deleted first (MPI-4.1, 7.7.2).
int Comm_set_attr(Comm comm, int keyval, void* value) {
  Keyval of{};
  {
    const std::scoped_lock lock(keyvals_mutex);
    of = keyvals.at(keyval);
  }
  bool again = false;
  void* old = nullptr;
  {
    const Lock lock = enter();
    CommObject* object = find(comm);
    if (object == nullptr) return kErrComm;
    const auto known = std::ranges::find(object->attributes, keyval, &std::pair<int, void*>::first);
    again = known != object->attributes.end();
    if (again) old = known->second;
    if (again) object->attributes.erase(known);
  }
  if (again) of.deleted(comm, keyval, old, of.extra);
  const Lock lock = enter();
  find(comm)->attributes.emplace_back(keyval, value);
  return kSuccess;
}

int Comm_dup(Comm comm, Comm* made) {
  const Lock lock = enter();
  CommObject* parent = find(comm);
  if (parent == nullptr) return kErrComm;
  auto copy = std::make_unique<CommObject>(*parent);
  copy->context = child_of(*parent);
  copy->attributes.clear();  // no keyval here wants to be copied
  copy->children = 0;
  copy->collectives = 0;
  *made = add(std::move(copy));
  return kSuccess;
}

int Comm_free(Comm* comm) {
  if (!delete_attributes(*comm)) return kErrComm;
  const Lock lock = enter();
  me->freed.insert(me->comms.at(*comm)->context);
  me->comms.erase(*comm);
  *comm = reinterpret_cast<Comm>(mpi::kCommNull);
  return kSuccess;
}

int Comm_call_errhandler(Comm comm, int code) {
  raise(comm, code);
  return kSuccess;
}
int Comm_get_errhandler(Comm comm, Errhandler* handler) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  if (object != nullptr) *handler = object->handler;
  return object != nullptr ? kSuccess : kErrComm;
}
int Comm_create_errhandler(Handler function, Errhandler* handler) {
  static std::mutex mutex;
  static std::list<Handler> all;  // for good
  const std::scoped_lock lock(mutex);
  *handler = reinterpret_cast<Errhandler>(&all.emplace_back(function));
  return kSuccess;
}
int Comm_set_errhandler(Comm comm, Errhandler handler) {
  const Lock lock = enter();
  CommObject* object = find(comm);
  if (object != nullptr) object->handler = handler;
  return object != nullptr ? kSuccess : kErrComm;
}
int Errhandler_free(Errhandler* handler) {
  *handler = reinterpret_cast<Errhandler>(std::uintptr_t{0x140});
  return kSuccess;
}

int Topo_test(Comm comm, int* topology) {
  const Lock lock = enter();
  const CommObject* object = find(comm);
  if (object != nullptr) *topology = object->topology;
  return object != nullptr ? kSuccess : kErrComm;
}
int Cartdim_get(Comm comm, int* dims) {
  const Lock lock = enter();
  *dims = find(comm)->dims;
  return kSuccess;
}
int Cart_shift(Comm comm, int dim, int step, int* source, int* dest) {
  if (step != 1) return kErrOther;
  const Lock lock = enter();
  const std::vector<int>& all = find(comm)->sources;
  *source = all.at(2 * static_cast<std::size_t>(dim));
  *dest = all.at(2 * static_cast<std::size_t>(dim) + 1);
  return kSuccess;
}
int Graph_neighbors_count(Comm /*comm*/, int /*rank*/, int* /*count*/) { return kErrOther; }
int Dist_graph_neighbors_count(Comm comm, int* in, int* out, int* weighted) {
  const Lock lock = enter();
  const CommObject& object = *find(comm);
  *in = static_cast<int>(object.sources.size());
  *out = static_cast<int>(object.destinations.size());
  *weighted = 0;
  return kSuccess;
}
int Dist_graph_neighbors(Comm comm, int in, int* sources, int* /*weights*/, int out, int* destinations, int* /*weights*/) {
  const Lock lock = enter();
  const CommObject& object = *find(comm);
  std::copy_n(object.sources.begin(), in, sources);
  std::copy_n(object.destinations.begin(), out, destinations);
  return kSuccess;
}

}  // namespace calls
}  // namespace lacuna::test::fake
