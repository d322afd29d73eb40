// MPI_Waitany, MPI_Waitsome and their tests, which end some of many requests.
#include <sched.h>

#include <algorithm>

#include "lacuna/mpi/calls/calls.hpp"
#include "lacuna/mpi/messages/batch.hpp"

namespace lacuna::mpi {
namespace {

// A moment of waiting for a batch. Where threads call MPI at once, the others get the lock.
void pause_in(const Batch& batch, int& rounds) {
  if (batch.holds() && Mutex::wanted()) {
    sched_yield();
  } else {
    pause(rounds);
  }
}

// MPI_Waitany, or MPI_Testany, of a batch of which some are ours alone.
int any_of_all(Batch& batch, bool waits, int count, int* index, int* flag, Status* status) {
  for (int rounds = 0;; pause(rounds)) {
    *flag = 1;
    *index = batch.ready_alone();
    if (*index >= 0) return raise(Call::completions, batch.end(*index, status));
    const bool alone = batch.some_alone();
    Status theirs{};
    const int result = (waits && !alone) ? host().Waitany(count, batch.theirs(), index, &theirs)
                                         : host().Testany(count, batch.theirs(), index, flag, &theirs);
    if (*flag != 0 && *index >= 0) return raise(Call::completions, batch.end(*index, theirs, result, status));
    if (result == kSuccess && alone) *flag = 0;
    if (*flag != 0) put_status(status, theirs);
    if (result != kSuccess || *flag != 0 || !waits) return result;
  }
}

// What the host said at one look at some requests.
struct Look {
  int result = kSuccess;
  int index = kUndefined;  ///< of all requests of the call
  int flag = 1;
  Status status{};
};
Look look(Batch& batch, bool waits, int first, int count) {
  Look said;
  const Batch::Hold hold(batch);
  batch.look_at(first, count);
  said.result = waits ? host().Waitany(count, batch.theirs(), &said.index, &said.status)
                      : host().Testany(count, batch.theirs(), &said.index, &said.flag, &said.status);
  if (said.flag != 0 && said.index >= 0) batch.ended(said.index += first, said.status, said.result);
  return said;
}
// By parts, since the first of many is complete mostly, and its handle has to be kept. The flag is 0 if some are active
// and none is complete.
Look look_by_parts(Batch& batch, int count) {
  constexpr int kPart = 256;
  Look all;
  for (int first = batch.not_null(0); first < count; first = batch.not_null(std::min(first + kPart, count))) {
    const Look part = look(batch, false, first, std::min(kPart, count - first));
    if (part.result != kSuccess || (part.flag != 0 && part.index >= 0)) return part;
    all.flag = std::min(all.flag, part.flag);
  }
  return all.flag != 0 ? look(batch, false, 0, count) : all;  // the host has a status of nothing
}

// The same of one where the host has a request of each.
int any_of_host(Batch& batch, bool waits, int count, int* index, int* flag, Status* status) {
  constexpr int kFew = 16;  // the host may as well wait for them at once
  for (int rounds = 0;; pause_in(batch, rounds)) {
    const bool blocks = waits && !batch.holds();
    Look said;
    if (!blocks || count > kFew) said = look_by_parts(batch, count);
    if (blocks && (count <= kFew || (said.result == kSuccess && said.flag == 0))) said = look(batch, true, 0, count);
    *index = said.index;
    *flag = said.flag;
    if (said.flag != 0 && said.index >= 0) return raise(Call::completions, batch.end(said.index, said.status, said.result, status));
    if (said.flag != 0) put_status(status, said.status);
    if (said.result != kSuccess || said.flag != 0 || !waits) return said.result;
  }
}

// MPI_Waitany, or MPI_Testany.
int any(Job& j, bool waits, int count, Request* requests, int* index, int* flag, Status* status) {
  Batch batch(j, count, requests, Batch::Takes::ended);
  return (batch.is_late() ? any_of_host : any_of_all)(batch, waits, count, index, flag, status);
}

// MPI_Waitsome, or MPI_Testsome.
int some(Job& j, bool waits, int count, Request* requests, int* ended, int* indices, Status* statuses) {
  constexpr int kRequestsPerLook = 64, kMostLooks = 64;
  Batch batch(j, count, requests, Batch::Takes::ended);
  batch.make_room(count);
  Outcomes outcomes;
  outcomes.all->reserve(static_cast<std::size_t>(count));
  for (int rounds = 0;; pause_in(batch, rounds)) {
    Statuses theirs(count);
    for (int i = batch.ready_alone(); i >= 0; i = batch.ready_alone()) {
      Status status{};
      const Ended how = batch.end(i, &status);
      outcomes.all->push_back({.index = i, .status = status, .how = how});
    }
    const bool alone = batch.some_alone();
    const auto call = waits && !alone && !batch.holds() && outcomes.all->empty() ? host().Waitsome : host().Testsome;
    int result = kSuccess;
    {
      const Batch::Hold hold(batch);
      if (batch.holds()) let_host_progress(j, std::min(count / kRequestsPerLook, kMostLooks));
      if (batch.is_late()) batch.look_at(0, count);
      result = call(count, batch.theirs(), ended, indices, theirs.data());
      for (int k = 0; k < *ended && (result == kSuccess || result == kErrInStatus); ++k)
        batch.ended(indices[k], theirs[k], theirs[k].error);
    }
    theirs.written(result == kSuccess ? *ended : count);
    if (result != kSuccess && result != kErrInStatus) return result;
    outcomes.host_returned(result);
    const bool none = *ended == kUndefined;
    for (int k = 0; k < *ended; ++k) {
      Status status{};
      const Ended how = batch.end(indices[k], theirs[k], theirs[k].error, &status);
      outcomes.all->push_back({.index = indices[k], .status = status, .how = how});
    }
    *ended = static_cast<int>(outcomes.all->size());
    if (*ended == 0 && none && !alone) {
      *ended = kUndefined;
      return result;
    }
    if (*ended == 0 && waits) continue;
    std::ranges::sort(*outcomes.all, {}, &Outcomes::One::index);
    for (int k = 0; k < *ended; ++k) indices[k] = (*outcomes.all)[static_cast<std::size_t>(k)].index;
    outcomes.put(statuses);
    return outcomes.result();
  }
}

}  // namespace

LACUNA_MPI_CALL(Testany, (int count, Request* requests, int* index, int* flag, Status* status)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? any(*j, false, count, requests, index, flag, status)
             : passed(j, Function::Testany, why_passed(j), [&] { return host().Testany(count, requests, index, flag, status); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Waitany, (int count, Request* requests, int* index, Status* status)) {
  Job* const j = job;
  int flag = 0;
  waits(j);
  return may_concern_us(j, count, requests)
             ? any(*j, true, count, requests, index, &flag, status)
             : passed(j, Function::Waitany, why_passed(j), [&] { return host().Waitany(count, requests, index, status); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Testsome, (int count, Request* requests, int* ended, int* indices, Status* statuses)) {
  Job* const j = job;
  return may_concern_us(j, count, requests)
             ? some(*j, false, count, requests, ended, indices, statuses)
             : passed(j, Function::Testsome, why_passed(j), [&] { return host().Testsome(count, requests, ended, indices, statuses); });
}
LACUNA_MPI_CAUGHT

LACUNA_MPI_CALL(Waitsome, (int count, Request* requests, int* ended, int* indices, Status* statuses)) {
  Job* const j = job;
  waits(j);
  return may_concern_us(j, count, requests)
             ? some(*j, true, count, requests, ended, indices, statuses)
             : passed(j, Function::Waitsome, why_passed(j), [&] { return host().Waitsome(count, requests, ended, indices, statuses); });
}
LACUNA_MPI_CAUGHT

}  // namespace lacuna::mpi
