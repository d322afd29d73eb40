// The objects behind the fake's handles.
#pragma once

#include <sched.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <set>

#include "tests/interposer/fake.hpp"
#include "tests/support/random.hpp"

namespace lacuna::test::fake {

/// Where the bytes of an element are, in the order of its type map.
struct Map {
  struct Block {
    std::int64_t at, bytes;
  };
  std::vector<Block> blocks;
  std::int64_t size = 0, low = 0, extent = 0;
};

struct TypeObject {
  mpi::Combiner combiner = mpi::Combiner::named;
  bool large = false;
  std::vector<int> integers;
  std::vector<Aint> addresses;
  std::vector<Count> counts;
  std::vector<Datatype> members;
  std::shared_ptr<const Map> map;
  bool committed = false;
  int uses = 1;
  std::map<int, void*> attributes;
};

/// Null: it is none. Of the types' own lock, so that callbacks may call MPI.
std::shared_ptr<const Map> map_of(Datatype type);
bool is_committed(Datatype type);
std::vector<std::byte> packed(const void* base, Count count, const Map& map);
/// As many bytes as there are.
void unpack(std::span<const std::byte> bytes, void* base, Count count, const Map& map);

struct CommObject {
  std::uint64_t context = 0;
  std::vector<int> group;  ///< world ranks
  int rank = 0;
  int topology = mpi::kUndefined;
  std::vector<int> sources, destinations;  ///< neighbours
  int dims = 0;
  std::vector<std::pair<int, void*>> attributes;  ///< in the order in which they were set
  Errhandler handler = mpi::errors_are_fatal();
  int stream = mpi::kStreamNull;
  std::uint64_t children = 0;
  int collectives = 0;
};

struct Rank;

struct RequestObject {
  enum class Kind { send, receive, general, group };
  Kind kind = Kind::send;
  bool persistent = false, active = true, over = false, cancelled = false;
  int looks = 0;  ///< that it is not seen to be over
  Status status{};
  int error = mpi::kSuccess;
  Comm comm{};
  std::uint64_t context = 0;
  std::byte* base = nullptr;
  Count count = 0;
  std::shared_ptr<const Map> map;
  int peer = 0, tag = 0, me = 0;
  int there = -1;  ///< the peer, of the world; below 0: none, or any
  bool synchronous = false, buffered = false;
  std::uint64_t matched = 0;  ///< MPI_Mprobe's
  std::function<void(RequestObject&)> start;
  std::vector<std::shared_ptr<RequestObject>> parts;
  int (*query)(void*, Status*) = nullptr;
  int (*free)(void*) = nullptr;
  int (*cancel)(void*, int) = nullptr;
  void* extra = nullptr;
};
using Held = std::shared_ptr<RequestObject>;

struct Mail {
  std::uint64_t context;
  int source, tag;
  std::int64_t size;
  std::vector<std::byte> data;
  Held from;          ///< whose data is still the sender's
  int sender = 0;     ///< of the world
  bool lost = false;  ///< its sender died with the data
};

struct WinObject;  // windows.cpp
struct World;

struct Rank {
  World* world = nullptr;
  int number = 0;
  bool dead = false;
  std::map<Comm, std::unique_ptr<CommObject>> comms;
  std::set<std::uint64_t> freed;  ///< contexts of those that were
  std::map<Request, Held> requests;
  std::list<Held> posted;
  std::list<Mail> unexpected;
  std::map<Message, Mail> matched;
  std::uintptr_t messages = 0;
  std::map<Win, std::shared_ptr<WinObject>> windows;
  std::uintptr_t windows_made = 0;
  std::map<std::string, int> calls;
  support::Random random{1};
};

struct World {
  Options options;
  std::vector<Fault> faults;
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Rank>> ranks;
  std::vector<std::string> wrong;
  std::set<std::vector<int>*> groups;
  std::list<std::vector<int>> all_groups;
  int through = 0;  ///< ranks in MPI_Finalize that has told of a death
};

extern thread_local Rank* me;

using Lock = std::unique_lock<std::mutex>;
inline Lock enter() { return Lock(me->world->mutex); }
/// Says what an MPI need not bear. Under the lock.
void complain(const std::string& what);
/// Null, and a complaint: it is none.
CommObject* find(Comm comm);
/// The error handler of a communicator is called; returns the code. Without the lock.
int raise(Comm comm, int code);
/// By their callbacks, without the lock. False: it is no communicator.
bool delete_attributes(Comm comm);
/// Code 0: no fault. Counts the call.
int fault_of(const char* call);

/// Other ranks get the lock and the CPU: what this one looks for is theirs to do.
inline void looked_in_vain(Lock& lock) {
  lock.unlock();
  sched_yield();
  lock.lock();
}

// In messages.cpp, under the lock.

Held begin(RequestObject&& request);
/// A rank of a communicator, as the world calls it; -1: none, or any.
int in_world(const CommObject& comm, int rank);
/// It ends with kErrProcFailed.
void fail(RequestObject& request);
/// Whether some rank of it is dead.
bool has_dead(const CommObject& comm);
/// Sends or posts what is begun, or started again.
void go(const Held& request);
Request add(Held request);
void put_bytes(Status& status, std::int64_t bytes);
Status empty_status();

// In requests.cpp, under the lock.

/// Whether it is over, and seen to be.
bool seen(RequestObject& request);

#define LACUNA_FAKE_DECLARED(name, arguments) int name arguments;
namespace calls {
LACUNA_MPI_HOST_CALLS(LACUNA_FAKE_DECLARED)
int Get_elements_x(const Status*, Datatype, Count*);
int Status_set_elements_x(Status*, Datatype, Count);
int Type_get_envelope_c(Datatype, Count*, Count*, Count*, Count*, int*);
int Type_get_contents_c(Datatype, Count, Count, Count, Count, int*, Aint*, Count*, Datatype*);
int Cart_create(Comm, int, const int*, const int*, int, Comm*);
int Comm_get_stream(Comm, int, int*);
int Request_is_complete(Request);
int Isendrecv(const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm, Request*);
int Isendrecv_replace(void*, int, Datatype, int, int, int, int, Comm, Request*);
}  // namespace calls
#undef LACUNA_FAKE_DECLARED
void fill_collectives(Host& host);

}  // namespace lacuna::test::fake
