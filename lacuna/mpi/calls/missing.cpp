// What a host may lack but this library exports: calls with large counts, and calls of MPI-4.0 and 4.1. A program that
// looks for them (mpi4py does) finds ours, so they have to work: by the calls that the host has.
#include <climits>
#include <cstdio>

#include "lacuna/mpi/host/host.hpp"

namespace lacuna::mpi {
namespace {

bool fits(Count value) { return value >= INT_MIN && value <= INT_MAX; }
template <class T>
bool fits(const T& /*other*/) {
  return true;
}
int narrow(Count value) { return static_cast<int>(value); }
template <class T>
T narrow(T other) {
  return other;
}

// A call with large counts, of which each has to be an int.
template <auto kNarrow, class... Arguments>
int narrowed(Arguments... arguments) {
  return (fits(arguments) && ...) ? (host().*kNarrow)(narrow(arguments)...) : kErrCount;
}
template <auto kNarrow, class... Arguments>
void fill(int (*&wide)(Arguments...)) {
  if (wide == nullptr) wide = &narrowed<kNarrow, Arguments...>;
}

int pack(const void* base, Count count, Datatype type, void* out, Count size, Count* position, Comm comm) {
  if (!fits(count) || !fits(size) || position == nullptr || !fits(*position)) return kErrCount;
  int at = narrow(*position);
  const int result = host().Pack(base, narrow(count), type, out, narrow(size), &at, comm);
  *position = at;
  return result;
}

int unpack(const void* in, Count size, Count* position, void* base, Count count, Datatype type, Comm comm) {
  if (!fits(count) || !fits(size) || position == nullptr || !fits(*position)) return kErrCount;
  int at = narrow(*position);
  const int result = host().Unpack(in, narrow(size), &at, base, narrow(count), type, comm);
  *position = at;
  return result;
}

int status_all(int count, const Request* requests, int* flag, Status* statuses) {
  *flag = 1;
  for (int i = 0; i < count && *flag != 0; ++i) {
    Status* const status = statuses == ignored() ? ignored() : &statuses[i];
    if (const int wrong = host().Request_get_status(requests[i], flag, status); wrong != kSuccess) return wrong;
  }
  return kSuccess;
}

int status_any(int count, const Request* requests, int* index, int* flag, Status* status) {
  *index = kUndefined;
  *flag = 1;
  bool active = false;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == host().no_request) continue;
    active = true;
    if (const int wrong = host().Request_get_status(requests[i], flag, status); wrong != kSuccess) return wrong;
    if (*flag == 0) continue;
    *index = i;
    return kSuccess;
  }
  if (active) {
    *flag = 0;
    return kSuccess;
  }
  // An empty status has it (MPI-4.1, 3.7.3); the host writes the rest
  if (status != ignored()) status->error = kSuccess;
  return host().Request_get_status(host().no_request, flag, status);
}

int status_some(int count, const Request* requests, int* ended, int* indices, Status* statuses) {
  *ended = 0;
  bool active = false;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == host().no_request) continue;
    active = true;
    int flag = 0;
    Status status{};
    if (const int wrong = host().Request_get_status(requests[i], &flag, &status); wrong != kSuccess) return wrong;
    if (flag == 0) continue;
    indices[*ended] = i;
    if (statuses != ignored()) statuses[*ended] = status;
    ++*ended;
  }
  if (!active) *ended = kUndefined;
  return kSuccess;
}

int has_none(const char* name, Comm comm) {
  std::fprintf(stderr, "lacuna: this MPI has no %s, and Lacuna has one for messages that it takes only (LACUNA_MPI=full)\n", name);
  host().Comm_call_errhandler(comm, kErrOther);
  return kErrOther;
}

int isendrecv(const void* /*out*/, int /*count*/, Datatype /*type*/, int /*dest*/, int /*tag*/, void* /*in*/, int /*count*/,
              Datatype /*type*/, int /*source*/, int /*tag*/, Comm comm, Request* /*request*/) {
  return has_none("MPI_Isendrecv", comm);
}

int isendrecv_replace(void* /*base*/, int /*count*/, Datatype /*type*/, int /*dest*/, int /*tag*/, int /*source*/, int /*tag*/, Comm comm,
                      Request* /*request*/) {
  return has_none("MPI_Isendrecv_replace", comm);
}

}  // namespace

void fill_missing(Host& host) {
  fill<&Host::Send>(host.Send_c);
  fill<&Host::Ssend>(host.Ssend_c);
  fill<&Host::Rsend>(host.Rsend_c);
  fill<&Host::Bsend>(host.Bsend_c);
  fill<&Host::Isend>(host.Isend_c);
  fill<&Host::Issend>(host.Issend_c);
  fill<&Host::Irsend>(host.Irsend_c);
  fill<&Host::Ibsend>(host.Ibsend_c);
  fill<&Host::Send_init>(host.Send_init_c);
  fill<&Host::Ssend_init>(host.Ssend_init_c);
  fill<&Host::Rsend_init>(host.Rsend_init_c);
  fill<&Host::Bsend_init>(host.Bsend_init_c);
  fill<&Host::Recv>(host.Recv_c);
  fill<&Host::Irecv>(host.Irecv_c);
  fill<&Host::Recv_init>(host.Recv_init_c);
  fill<&Host::Mrecv>(host.Mrecv_c);
  fill<&Host::Imrecv>(host.Imrecv_c);
  fill<&Host::Sendrecv>(host.Sendrecv_c);
  fill<&Host::Sendrecv_replace>(host.Sendrecv_replace_c);
  if (host.Isendrecv == nullptr) host.Isendrecv = &isendrecv;
  fill<&Host::Isendrecv>(host.Isendrecv_c);
  if (host.Isendrecv_replace == nullptr) host.Isendrecv_replace = &isendrecv_replace;
  fill<&Host::Isendrecv_replace>(host.Isendrecv_replace_c);
  if (host.Pack_c == nullptr) host.Pack_c = &pack;
  if (host.Unpack_c == nullptr) host.Unpack_c = &unpack;
  if (host.Request_get_status_all == nullptr) host.Request_get_status_all = &status_all;
  if (host.Request_get_status_any == nullptr) host.Request_get_status_any = &status_any;
  if (host.Request_get_status_some == nullptr) host.Request_get_status_some = &status_some;
}

}  // namespace lacuna::mpi
