// The host MPI: its functions under their profiling names (MPI-4.1, chapter 15), and its handles. Looked up where they
// are, since a program may have loaded its MPI in a corner of its own, as Python's modules do.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string>

#include "lacuna/mpi/abi/abi.hpp"

namespace lacuna::mpi {

// Name, result and arguments of what is called. Those of the second list may be missing.
#define LACUNA_MPI_HOST_CALLS(X)                                                                                                \
  X(Init, (int*, char***))                                                                                                      \
  X(Init_thread, (int*, char***, int, int*))                                                                                    \
  X(Abort, (Comm, int))                                                                                                         \
  X(Finalize, ())                                                                                                               \
  X(Query_thread, (int*))                                                                                                       \
  X(Comm_rank, (Comm, int*))                                                                                                    \
  X(Comm_size, (Comm, int*))                                                                                                    \
  X(Comm_test_inter, (Comm, int*))                                                                                              \
  X(Comm_group, (Comm, Group*))                                                                                                 \
  X(Comm_remote_group, (Comm, Group*))                                                                                          \
  X(Comm_create_keyval, (int (*)(Comm, int, void*, void*, void*, int*), int (*)(Comm, int, void*, void*), int*, void*))         \
  X(Comm_set_attr, (Comm, int, void*))                                                                                          \
  X(Comm_call_errhandler, (Comm, int))                                                                                          \
  X(Comm_get_errhandler, (Comm, Errhandler*))                                                                                   \
  X(Comm_create_errhandler, (void (*)(Comm*, int*, ...), Errhandler*))                                                          \
  X(Comm_set_errhandler, (Comm, Errhandler))                                                                                    \
  X(Comm_dup, (Comm, Comm*))                                                                                                    \
  X(Comm_free, (Comm*))                                                                                                         \
  X(Ibarrier, (Comm, Request*))                                                                                                 \
  X(Allreduce, (const void*, void*, int, Datatype, Op, Comm))                                                                   \
  X(Errhandler_free, (Errhandler*))                                                                                             \
  X(Group_size, (Group, int*))                                                                                                  \
  X(Group_translate_ranks, (Group, int, const int*, Group, int*))                                                               \
  X(Group_free, (Group*))                                                                                                       \
  X(Topo_test, (Comm, int*))                                                                                                    \
  X(Cartdim_get, (Comm, int*))                                                                                                  \
  X(Cart_shift, (Comm, int, int, int*, int*))                                                                                   \
  X(Graph_neighbors_count, (Comm, int, int*))                                                                                   \
  X(Dist_graph_neighbors_count, (Comm, int*, int*, int*))                                                                       \
  X(Dist_graph_neighbors, (Comm, int, int*, int*, int, int*, int*))                                                             \
  X(Get_library_version, (char*, int*))                                                                                         \
  X(Type_size, (Datatype, int*))                                                                                                \
  X(Type_get_extent, (Datatype, Aint*, Aint*))                                                                                  \
  X(Type_get_envelope, (Datatype, int*, int*, int*, int*))                                                                      \
  X(Type_get_contents, (Datatype, int, int, int, int*, Aint*, Datatype*))                                                       \
  X(Type_create_keyval, (int (*)(Datatype, int, void*, void*, void*, int*), int (*)(Datatype, int, void*, void*), int*, void*)) \
  X(Type_set_attr, (Datatype, int, void*))                                                                                      \
  X(Type_contiguous, (int, Datatype, Datatype*))                                                                                \
  X(Type_commit, (Datatype*))                                                                                                   \
  X(Type_dup, (Datatype, Datatype*))                                                                                            \
  X(Type_free, (Datatype*))                                                                                                     \
  X(Pack, (const void*, int, Datatype, void*, int, int*, Comm))                                                                 \
  X(Unpack, (const void*, int, int*, void*, int, Datatype, Comm))                                                               \
  X(Test_cancelled, (const Status*, int*))                                                                                      \
  X(Send, (const void*, int, Datatype, int, int, Comm))                                                                         \
  X(Ssend, (const void*, int, Datatype, int, int, Comm))                                                                        \
  X(Rsend, (const void*, int, Datatype, int, int, Comm))                                                                        \
  X(Bsend, (const void*, int, Datatype, int, int, Comm))                                                                        \
  X(Isend, (const void*, int, Datatype, int, int, Comm, Request*))                                                              \
  X(Issend, (const void*, int, Datatype, int, int, Comm, Request*))                                                             \
  X(Irsend, (const void*, int, Datatype, int, int, Comm, Request*))                                                             \
  X(Ibsend, (const void*, int, Datatype, int, int, Comm, Request*))                                                             \
  X(Send_init, (const void*, int, Datatype, int, int, Comm, Request*))                                                          \
  X(Ssend_init, (const void*, int, Datatype, int, int, Comm, Request*))                                                         \
  X(Rsend_init, (const void*, int, Datatype, int, int, Comm, Request*))                                                         \
  X(Bsend_init, (const void*, int, Datatype, int, int, Comm, Request*))                                                         \
  X(Recv, (void*, int, Datatype, int, int, Comm, Status*))                                                                      \
  X(Irecv, (void*, int, Datatype, int, int, Comm, Request*))                                                                    \
  X(Recv_init, (void*, int, Datatype, int, int, Comm, Request*))                                                                \
  X(Sendrecv, (const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm, Status*))                            \
  X(Sendrecv_replace, (void*, int, Datatype, int, int, int, int, Comm, Status*))                                                \
  X(Start, (Request*))                                                                                                          \
  X(Startall, (int, Request*))                                                                                                  \
  X(Request_free, (Request*))                                                                                                   \
  X(Request_get_status, (Request, int*, Status*))                                                                               \
  X(Grequest_start, (int (*)(void*, Status*), int (*)(void*), int (*)(void*, int), void*, Request*))                            \
  X(Grequest_complete, (Request))                                                                                               \
  X(Wait, (Request*, Status*))                                                                                                  \
  X(Test, (Request*, int*, Status*))                                                                                            \
  X(Waitall, (int, Request*, Status*))                                                                                          \
  X(Testall, (int, Request*, int*, Status*))                                                                                    \
  X(Waitany, (int, Request*, int*, Status*))                                                                                    \
  X(Testany, (int, Request*, int*, int*, Status*))                                                                              \
  X(Waitsome, (int, Request*, int*, int*, Status*))                                                                             \
  X(Testsome, (int, Request*, int*, int*, Status*))                                                                             \
  X(Cancel, (Request*))                                                                                                         \
  X(Probe, (int, int, Comm, Status*))                                                                                           \
  X(Iprobe, (int, int, Comm, int*, Status*))                                                                                    \
  X(Mprobe, (int, int, Comm, Message*, Status*))                                                                                \
  X(Improbe, (int, int, Comm, int*, Message*, Status*))                                                                         \
  X(Mrecv, (void*, int, Datatype, Message*, Status*))                                                                           \
  X(Imrecv, (void*, int, Datatype, Message*, Request*))                                                                         \
  X(Put, (const void*, int, Datatype, int, Aint, int, Datatype, Win))                                                           \
  X(Get, (void*, int, Datatype, int, Aint, int, Datatype, Win))                                                                 \
  X(Win_create, (void*, Aint, int, Info, Comm, Win*))                                                                           \
  X(Win_create_dynamic, (Info, Comm, Win*))                                                                                     \
  X(Win_allocate, (Aint, int, Info, Comm, void*, Win*))                                                                         \
  X(Win_allocate_shared, (Aint, int, Info, Comm, void*, Win*))                                                                  \
  X(Win_free, (Win*))                                                                                                           \
  X(Win_fence, (int, Win))                                                                                                      \
  X(Win_complete, (Win))                                                                                                        \
  X(Win_unlock, (int, Win))                                                                                                     \
  X(Win_unlock_all, (Win))                                                                                                      \
  X(Win_flush, (int, Win))                                                                                                      \
  X(Win_flush_all, (Win))                                                                                                       \
  X(Win_flush_local, (int, Win))                                                                                                \
  X(Win_flush_local_all, (Win))

#define LACUNA_MPI_HOST_CALLS_MAYBE(X)                                                                              \
  X(Comm_dup_with_info, (Comm, Info, Comm*))                                                                        \
  X(Comm_create, (Comm, Group, Comm*))                                                                              \
  X(Comm_split, (Comm, int, int, Comm*))                                                                            \
  X(Comm_split_type, (Comm, int, int, Info, Comm*))                                                                 \
  X(Comm_disconnect, (Comm*))                                                                                       \
  X(Cart_create, (Comm, int, const int*, const int*, int, Comm*))                                                   \
  X(Cart_sub, (Comm, const int*, Comm*))                                                                            \
  X(Graph_create, (Comm, int, const int*, const int*, int, Comm*))                                                  \
  X(Dist_graph_create, (Comm, int, const int*, const int*, const int*, const int*, Info, int, Comm*))               \
  X(Dist_graph_create_adjacent, (Comm, int, const int*, const int*, int, const int*, const int*, Info, int, Comm*)) \
  X(Type_size_x, (Datatype, Count*))                                                                                \
  X(Type_size_c, (Datatype, Count*))                                                                                \
  X(Get_elements_x, (const Status*, Datatype, Count*))                                                              \
  X(Get_elements_c, (const Status*, Datatype, Count*))                                                              \
  X(Status_set_elements_x, (Status*, Datatype, Count))                                                              \
  X(Status_set_elements_c, (Status*, Datatype, Count))                                                              \
  X(Type_get_envelope_c, (Datatype, Count*, Count*, Count*, Count*, int*))                                          \
  X(Type_get_contents_c, (Datatype, Count, Count, Count, Count, int*, Aint*, Count*, Datatype*))                    \
  X(Pack_c, (const void*, Count, Datatype, void*, Count, Count*, Comm))                                             \
  X(Unpack_c, (const void*, Count, Count*, void*, Count, Datatype, Comm))                                           \
  X(Send_c, (const void*, Count, Datatype, int, int, Comm))                                                         \
  X(Ssend_c, (const void*, Count, Datatype, int, int, Comm))                                                        \
  X(Rsend_c, (const void*, Count, Datatype, int, int, Comm))                                                        \
  X(Bsend_c, (const void*, Count, Datatype, int, int, Comm))                                                        \
  X(Isend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                              \
  X(Issend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                             \
  X(Irsend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                             \
  X(Ibsend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                             \
  X(Send_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                          \
  X(Ssend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                         \
  X(Rsend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                         \
  X(Bsend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                         \
  X(Recv_c, (void*, Count, Datatype, int, int, Comm, Status*))                                                      \
  X(Irecv_c, (void*, Count, Datatype, int, int, Comm, Request*))                                                    \
  X(Recv_init_c, (void*, Count, Datatype, int, int, Comm, Request*))                                                \
  X(Sendrecv_c, (const void*, Count, Datatype, int, int, void*, Count, Datatype, int, int, Comm, Status*))          \
  X(Sendrecv_replace_c, (void*, Count, Datatype, int, int, int, int, Comm, Status*))                                \
  X(Isendrecv, (const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm, Request*))              \
  X(Isendrecv_c, (const void*, Count, Datatype, int, int, void*, Count, Datatype, int, int, Comm, Request*))        \
  X(Isendrecv_replace, (void*, int, Datatype, int, int, int, int, Comm, Request*))                                  \
  X(Isendrecv_replace_c, (void*, Count, Datatype, int, int, int, int, Comm, Request*))                              \
  X(Request_get_status_all, (int, const Request*, int*, Status*))                                                   \
  X(Request_get_status_any, (int, const Request*, int*, int*, Status*))                                             \
  X(Request_get_status_some, (int, const Request*, int*, int*, Status*))                                            \
  X(Mrecv_c, (void*, Count, Datatype, Message*, Status*))                                                           \
  X(Imrecv_c, (void*, Count, Datatype, Message*, Request*))

// Of MPICH alone: MPIX_Comm_get_stream and others. All may be missing.
#define LACUNA_MPI_HOST_EXTENSIONS(X)   \
  X(Comm_get_stream, (Comm, int, int*)) \
  X(Comm_test_threadcomm, (Comm, int*)) \
  X(Request_is_complete, (Request))

// Collectives that move blocks: their names, blocking and not, and their arguments but for the communicator. Each is
// there three times (the third is persistent: MPI_Alltoall_init), and with large counts three times more.
#define LACUNA_MPI_EVEN(Number, At) const void*, Number, Datatype, void*, Number, Datatype
#define LACUNA_MPI_EVEN_ROOT(Number, At) const void*, Number, Datatype, void*, Number, Datatype, int
#define LACUNA_MPI_ONE_ROOT(Number, At) void*, Number, Datatype, int
#define LACUNA_MPI_IN_V(Number, At) const void*, Number, Datatype, void*, const Number*, const At*, Datatype
#define LACUNA_MPI_IN_V_ROOT(Number, At) const void*, Number, Datatype, void*, const Number*, const At*, Datatype, int
#define LACUNA_MPI_OUT_V_ROOT(Number, At) const void*, const Number*, const At*, Datatype, void*, Number, Datatype, int
#define LACUNA_MPI_BOTH_V(Number, At) const void*, const Number*, const At*, Datatype, void*, const Number*, const At*, Datatype
#define LACUNA_MPI_BOTH_W(Number, At) \
  const void*, const Number*, const At*, const Datatype*, void*, const Number*, const At*, const Datatype*
#define LACUNA_MPI_BOTH_FAR(Number, At) LACUNA_MPI_BOTH_W(Number, Aint)
#define LACUNA_MPI_COLLECTIVES(X)                                 \
  X(Alltoall, Ialltoall, LACUNA_MPI_EVEN)                         \
  X(Alltoallv, Ialltoallv, LACUNA_MPI_BOTH_V)                     \
  X(Alltoallw, Ialltoallw, LACUNA_MPI_BOTH_W)                     \
  X(Allgather, Iallgather, LACUNA_MPI_EVEN)                       \
  X(Allgatherv, Iallgatherv, LACUNA_MPI_IN_V)                     \
  X(Gather, Igather, LACUNA_MPI_EVEN_ROOT)                        \
  X(Gatherv, Igatherv, LACUNA_MPI_IN_V_ROOT)                      \
  X(Scatter, Iscatter, LACUNA_MPI_EVEN_ROOT)                      \
  X(Scatterv, Iscatterv, LACUNA_MPI_OUT_V_ROOT)                   \
  X(Bcast, Ibcast, LACUNA_MPI_ONE_ROOT)                           \
  X(Neighbor_alltoall, Ineighbor_alltoall, LACUNA_MPI_EVEN)       \
  X(Neighbor_alltoallv, Ineighbor_alltoallv, LACUNA_MPI_BOTH_V)   \
  X(Neighbor_alltoallw, Ineighbor_alltoallw, LACUNA_MPI_BOTH_FAR) \
  X(Neighbor_allgather, Ineighbor_allgather, LACUNA_MPI_EVEN)     \
  X(Neighbor_allgatherv, Ineighbor_allgatherv, LACUNA_MPI_IN_V)

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are lists of types
struct Host {
#define X(name, arguments) int(*name) arguments = nullptr;
  LACUNA_MPI_HOST_CALLS(X)
  LACUNA_MPI_HOST_CALLS_MAYBE(X)
  LACUNA_MPI_HOST_EXTENSIONS(X)
#undef X
#define X(name, later, arguments)                                          \
  int (*name)(arguments(int, int), Comm) = nullptr;                        \
  int (*later)(arguments(int, int), Comm, Request*) = nullptr;             \
  int (*name##_init)(arguments(int, int), Comm, Info, Request*) = nullptr; \
  int (*name##_c)(arguments(Count, Aint), Comm) = nullptr;                 \
  int (*later##_c)(arguments(Count, Aint), Comm, Request*) = nullptr;      \
  int (*name##_init_c)(arguments(Count, Aint), Comm, Info, Request*) = nullptr;
  LACUNA_MPI_COLLECTIVES(X)
#undef X
  // NOLINTEND(bugprone-macro-parentheses)
  Comm world{}, self{}, no_comm{};
  Datatype byte{}, no_type{};
  Op band{};  ///< MPI_BAND
  Request no_request{};
  Message no_message{}, message_of_none{};

  bool large = false;  ///< it takes counts that are no ints; else the _c functions are fill_missing()'s

#if defined(LACUNA_MPI_ABI_OPENMPI)
  int (*Message_c2f)(Message) = nullptr;
  Message (*Message_f2c)(int) = nullptr;
#elif defined(LACUNA_MPI_ABI_STANDARD)
  int (*Message_toint)(Message) = nullptr;
  Message (*Message_fromint)(int) = nullptr;
#endif

  /// An object of the host's, by its name; null if it has none.
  void* (*find)(const char* name) = nullptr;
};

/// The bytes that a status tells of.
#if defined(LACUNA_MPI_ABI_STANDARD)
std::int64_t bytes_of(const Status& status);
#endif
/// Looks everything up at the first call; ends the program with a line that says what is missing where there is no host
/// of this ABI.
const Host& find_host();
/// The same. Each call of MPI asks for it some times, so it is inline, and without a guard.
inline const Host& host() {
  static constinit std::atomic<const Host*> found = nullptr;
  if (const Host* const known = found.load(std::memory_order_acquire); known != nullptr) return *known;
  const Host& host = find_host();
  found.store(&host, std::memory_order_release);
  return host;
}

/// What the MPI says of itself. Not by the length that it tells: Open MPI counts the zero behind the text, too.
inline std::string library_version() {
  std::string version(8192, '\0');  // MPI_MAX_LIBRARY_VERSION_STRING is at most 8192, of MPICH
  int length = 0;
  host().Get_library_version(version.data(), &length);
  version.resize(std::min(version.find('\0'), version.size()));
  return version;
}

/// A library behind this one that has one of these functions and is no MPI: a tool that does not see the calls. Empty:
/// none.
std::string tool_behind(std::span<const char* const> functions);
/// In missing.cpp: makes what the host lacks of what it has.
void fill_missing(Host& host);

}  // namespace lacuna::mpi
