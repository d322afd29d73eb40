// MPI_Put and MPI_Get, and the calls that complete them at the origin.
#include <algorithm>

#include "lacuna/mpi/calls/calls.hpp"

namespace lacuna::mpi {
namespace {

bool on_one_node(Comm comm) {
  const CommOf* const found = job->comms->find(comm);
  return found != nullptr && !found->inter && std::ranges::none_of(found->places, [](const RankPlace& place) { return place.remote >= 0; });
}

// Of a window that there is no memory to know, all is the host's.
int made(int result, Comm comm, const Win* win, bool allocated) try {
  if (result == kSuccess && takes_messages(job)) job->windows.made(*win, allocated && on_one_node(comm));
  return result;
} catch (const std::bad_alloc&) {
  return result;
}

int completed(int result, Win win, int target = RmaWindows::kAll) {
  if (result == kSuccess && takes_messages(job)) job->windows.complete(*job, win, target);
  return result;
}

}  // namespace

LACUNA_MPI_CALL(Put,
                (const void* base, int count, Datatype type, int target, Aint place, int target_count, Datatype target_type, Win win)) {
  Origin origin;
  Bounce bounce;
  if (takes_messages(job)) bounce = job->windows.take(*job, false, base, count, type, target, target_count, target_type, win, origin);
  const auto pass = [&] { return host().Put(base, count, type, target, place, target_count, target_type, win); };
  if (bounce.data() == nullptr) return passed(job, Function::Put, takes_messages(job) ? origin.why : Why::not_full, pass);
  const base::Result<Elements> layout = origin.type->of(count);
  if (!layout) return passed(job, Function::Put, Why::undecodable, pass);
  const std::int64_t began = job->report.on() ? base::now_ns() : 0;
  copy::pack(*layout, origin.base, 0, origin.bytes, bounce.data(), copy::Caching::kept);
  const int result = host().Put(bounce.data(), static_cast<int>(origin.bytes), host().byte, target, place, target_count, target_type, win);
  if (result != kSuccess) return result;
  if (began != 0) job->report.count(MessageReport::Way::put, origin.type.get(), count, target, origin.bytes, base::now_ns() - began);
  job->windows.add(win, target, false, std::move(origin), std::move(bounce));
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Get, (void* base, int count, Datatype type, int target, Aint place, int target_count, Datatype target_type, Win win)) {
  Origin origin;
  Bounce bounce;
  if (takes_messages(job)) bounce = job->windows.take(*job, true, base, count, type, target, target_count, target_type, win, origin);
  if (bounce.data() == nullptr) {
    return passed(job, Function::Get, takes_messages(job) ? origin.why : Why::not_full,
                  [&] { return host().Get(base, count, type, target, place, target_count, target_type, win); });
  }
  const int result = host().Get(bounce.data(), static_cast<int>(origin.bytes), host().byte, target, place, target_count, target_type, win);
  if (result == kSuccess) job->windows.add(win, target, true, std::move(origin), std::move(bounce));
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Win_create, (void* base, Aint bytes, int unit, Info info, Comm comm, Win* win)) {
  return made(host().Win_create(base, bytes, unit, info, comm, win), comm, win, false);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_create_dynamic, (Info info, Comm comm, Win* win)) {
  return made(host().Win_create_dynamic(info, comm, win), comm, win, false);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_allocate, (Aint bytes, int unit, Info info, Comm comm, void* base, Win* win)) {
  return made(host().Win_allocate(bytes, unit, info, comm, base, win), comm, win, true);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_allocate_shared, (Aint bytes, int unit, Info info, Comm comm, void* base, Win* win)) {
  return made(host().Win_allocate_shared(bytes, unit, info, comm, base, win), comm, win, true);
}
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_free, (Win * win)) {
  const Win before = *win;
  const int result = host().Win_free(win);
  if (result == kSuccess && takes_messages(job)) job->windows.freed(before);
  return result;
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Win_fence, (int assert, Win win)) { return completed(host().Win_fence(assert, win), win); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_complete, (Win win)) { return completed(host().Win_complete(win), win); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_unlock, (int rank, Win win)) { return completed(host().Win_unlock(rank, win), win, rank); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_unlock_all, (Win win)) { return completed(host().Win_unlock_all(win), win); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_flush, (int rank, Win win)) { return completed(host().Win_flush(rank, win), win, rank); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_flush_all, (Win win)) { return completed(host().Win_flush_all(win), win); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_flush_local, (int rank, Win win)) { return completed(host().Win_flush_local(rank, win), win, rank); }
LACUNA_MPI_CAUGHT
LACUNA_MPI_CALL(Win_flush_local_all, (Win win)) { return completed(host().Win_flush_local_all(win), win); }
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
