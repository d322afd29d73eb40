// The fake's windows. What is put is read, and what is got is written, as late as an MPI may: in the call that
// completes the operation at its origin.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "tests/interposer/scarce.hpp"
#include "tests/interposer/world.hpp"

namespace lacuna::test::fake {
namespace {

using mpi::kErrOther;
using mpi::kSuccess;

// The window's memory at a rank.
struct Part {
  std::byte* base;
  std::int64_t bytes, unit;
};

}  // namespace

struct WinObject {
  struct Pending {
    bool gets;
    std::byte* base;
    Count count;
    std::shared_ptr<const Map> map;
    int target;
    Aint place;
    Count target_count;
    std::shared_ptr<const Map> target_map;
  };
  Comm comm{};
  std::vector<Part> parts;
  std::vector<Pending> pending;
  std::unique_ptr<std::byte[]> own;  // of MPI_Win_allocate
};

namespace {

WinObject* find(Win win) {
  const auto found = me->windows.find(win);
  if (found != me->windows.end()) return found->second.get();
  complain("a window that is none");
  return nullptr;
}

int make(void* base, Aint bytes, int unit, Comm comm, Win* win, std::unique_ptr<std::byte[]> own) {
  auto made = std::make_shared<WinObject>();
  made->comm = comm;
  made->own = std::move(own);
  int ranks = 0;
  mpi::host().Comm_size(comm, &ranks);
  made->parts.resize(static_cast<std::size_t>(ranks));
  const Part mine{static_cast<std::byte*>(base), bytes, unit};
  mpi::host().Allgather(&mine, sizeof mine, byte_type(), made->parts.data(), sizeof mine, byte_type(), comm);
  const Lock lock = enter();
  *win = reinterpret_cast<Win>(0x4000 + 16 * ++me->windows_made);
  me->windows[*win] = std::move(made);
  return kSuccess;
}

int begin(bool gets, const void* base, Count count, Datatype type, int target, Aint place, Count target_count, Datatype target_type,
          Win win) {
  const std::shared_ptr<const Map> map = map_of(type), target_map = map_of(target_type);
  const Lock lock = enter();
  WinObject* const object = find(win);
  if (object == nullptr || map == nullptr || target_map == nullptr) return kErrOther;
  if (target == mpi::kProcNull) return kSuccess;
  if (!is_committed(type) || !is_committed(target_type)) complain("a datatype of a window's that is not committed");
  if (map->size * count != target_map->size * target_count) complain("sides of a window's operation that differ");
  object->pending.push_back({gets, static_cast<std::byte*>(const_cast<void*>(base)), count, map, target, place, target_count, target_map});
  return kSuccess;
}

// Those with one target, or all (below 0).
int complete(Win win, int target) {
  const scarce::Other others;
  const Lock lock = enter();
  WinObject* const object = find(win);
  if (object == nullptr) return kErrOther;
  std::erase_if(object->pending, [&](const WinObject::Pending& one) {
    if (target >= 0 && one.target != target) return false;
    const Part& part = object->parts[static_cast<std::size_t>(one.target)];
    std::byte* const there = part.base + one.place * part.unit;
    const std::int64_t last = one.place * part.unit + one.target_map->low + one.target_count * one.target_map->extent;
    if (last > part.bytes) complain("an operation beyond the window");
    if (one.gets) {
      unpack(packed(there, one.target_count, *one.target_map), one.base, one.count, *one.map);
    } else {
      unpack(packed(one.base, one.count, *one.map), there, one.target_count, *one.target_map);
    }
    return true;
  });
  return kSuccess;
}

Comm comm_of(Win win) {
  const Lock lock = enter();
  const WinObject* const object = find(win);
  return object == nullptr ? mpi::host().self : object->comm;
}

int meet(Comm comm) {
  Request request{};
  const int wrong = calls::Ibarrier(comm, &request);
  return wrong != kSuccess ? wrong : calls::Wait(&request, mpi::ignored());
}

}  // namespace

namespace calls {

int Put(const void* base, int count, Datatype type, int target, Aint place, int target_count, Datatype target_type, Win win) {
  return begin(false, base, count, type, target, place, target_count, target_type, win);
}
int Get(void* base, int count, Datatype type, int target, Aint place, int target_count, Datatype target_type, Win win) {
  return begin(true, base, count, type, target, place, target_count, target_type, win);
}
int Win_create(void* base, Aint bytes, int unit, Info /*info*/, Comm comm, Win* win) { return make(base, bytes, unit, comm, win, nullptr); }
int Win_create_dynamic(Info /*info*/, Comm comm, Win* win) { return make(nullptr, 0, 1, comm, win, nullptr); }
int Win_allocate(Aint bytes, int unit, Info /*info*/, Comm comm, void* base, Win* win) {
  auto own = std::make_unique<std::byte[]>(static_cast<std::size_t>(bytes));
  std::byte* const memory = own.get();
  std::memcpy(base, &memory, sizeof memory);
  return make(memory, bytes, unit, comm, win, std::move(own));
}
int Win_allocate_shared(Aint bytes, int unit, Info info, Comm comm, void* base, Win* win) {
  return Win_allocate(bytes, unit, info, comm, base, win);
}
int Win_free(Win* win) {
  meet(comm_of(*win));
  const Lock lock = enter();
  if (const WinObject* const object = find(*win); object != nullptr && !object->pending.empty())
    complain("a window that is freed with operations under way");
  me->windows.erase(*win);
  *win = {};
  return kSuccess;
}

int Win_fence(int /*assert*/, Win win) {
  const int wrong = complete(win, -1);
  return wrong != kSuccess ? wrong : meet(comm_of(win));
}
int Win_complete(Win win) { return complete(win, -1); }
int Win_unlock(int rank, Win win) { return complete(win, rank); }
int Win_unlock_all(Win win) { return complete(win, -1); }
int Win_flush(int rank, Win win) { return complete(win, rank); }
int Win_flush_all(Win win) { return complete(win, -1); }
int Win_flush_local(int rank, Win win) { return complete(win, rank); }
int Win_flush_local_all(Win win) { return complete(win, -1); }

}  // namespace calls
}  // namespace lacuna::test::fake
