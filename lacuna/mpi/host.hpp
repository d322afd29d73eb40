// The host MPI: its functions under their profiling names (MPI-4.1, chapter 15), and its handles. Looked up where they are, since a program may have loaded
// its MPI in a corner of its own, as Python's modules do.
#pragma once

#include "lacuna/mpi/abi.hpp"

namespace lacuna::mpi {

// Name, result and arguments of what is called. Those of the second list may be missing.
#define LACUNA_MPI_HOST_CALLS(X)                                                                                                \
  X(Init, (int*, char***))                                                                                                      \
  X(Init_thread, (int*, char***, int, int*))                                                                                    \
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
  X(Errhandler_free, (Errhandler*))                                                                                             \
  X(Group_size, (Group, int*))                                                                                                  \
  X(Group_translate_ranks, (Group, int, const int*, Group, int*))                                                               \
  X(Group_free, (Group*))                                                                                                       \
  X(Allgather, (const void*, int, Datatype, void*, int, Datatype, Comm))                                                        \
  X(Get_library_version, (char*, int*))                                                                                         \
  X(Type_size, (Datatype, int*))                                                                                                \
  X(Type_get_extent, (Datatype, Aint*, Aint*))                                                                                  \
  X(Type_get_envelope, (Datatype, int*, int*, int*, int*))                                                                      \
  X(Type_get_contents, (Datatype, int, int, int, int*, Aint*, Datatype*))                                                       \
  X(Type_create_keyval, (int (*)(Datatype, int, void*, void*, void*, int*), int (*)(Datatype, int, void*, void*), int*, void*)) \
  X(Type_set_attr, (Datatype, int, void*))                                                                                      \
  X(Type_commit, (Datatype*))                                                                                                   \
  X(Type_dup, (Datatype, Datatype*))                                                                                            \
  X(Type_free, (Datatype*))                                                                                                     \
  X(Pack, (const void*, int, Datatype, void*, int, int*, Comm))                                                                 \
  X(Unpack, (const void*, int, int*, void*, int, Datatype, Comm))                                                               \
  X(Status_set_elements_x, (Status*, Datatype, Count))                                                                          \
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
  X(Imrecv, (void*, int, Datatype, Message*, Request*))

#define LACUNA_MPI_HOST_CALLS_MAYBE(X)                                                                       \
  X(Type_get_envelope_c, (Datatype, Count*, Count*, Count*, Count*, int*))                                   \
  X(Type_get_contents_c, (Datatype, Count, Count, Count, Count, int*, Aint*, Count*, Datatype*))             \
  X(Pack_c, (const void*, Count, Datatype, void*, Count, Count*, Comm))                                      \
  X(Unpack_c, (const void*, Count, Count*, void*, Count, Datatype, Comm))                                    \
  X(Send_c, (const void*, Count, Datatype, int, int, Comm))                                                  \
  X(Ssend_c, (const void*, Count, Datatype, int, int, Comm))                                                 \
  X(Rsend_c, (const void*, Count, Datatype, int, int, Comm))                                                 \
  X(Bsend_c, (const void*, Count, Datatype, int, int, Comm))                                                 \
  X(Isend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                       \
  X(Issend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                      \
  X(Irsend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                      \
  X(Ibsend_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                      \
  X(Send_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                   \
  X(Ssend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                  \
  X(Rsend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                  \
  X(Bsend_init_c, (const void*, Count, Datatype, int, int, Comm, Request*))                                  \
  X(Recv_c, (void*, Count, Datatype, int, int, Comm, Status*))                                               \
  X(Irecv_c, (void*, Count, Datatype, int, int, Comm, Request*))                                             \
  X(Recv_init_c, (void*, Count, Datatype, int, int, Comm, Request*))                                         \
  X(Sendrecv_c, (const void*, Count, Datatype, int, int, void*, Count, Datatype, int, int, Comm, Status*))   \
  X(Sendrecv_replace_c, (void*, Count, Datatype, int, int, int, int, Comm, Status*))                         \
  X(Isendrecv, (const void*, int, Datatype, int, int, void*, int, Datatype, int, int, Comm, Request*))       \
  X(Isendrecv_c, (const void*, Count, Datatype, int, int, void*, Count, Datatype, int, int, Comm, Request*)) \
  X(Request_get_status_all, (int, const Request*, int*, Status*))                                            \
  X(Request_get_status_any, (int, const Request*, int*, int*, Status*))                                      \
  X(Request_get_status_some, (int, const Request*, int*, int*, Status*))                                     \
  X(Mrecv_c, (void*, Count, Datatype, Message*, Status*))                                                    \
  X(Imrecv_c, (void*, Count, Datatype, Message*, Request*))

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are lists of types
struct Host {
#define X(name, arguments) int(*name) arguments = nullptr;
  LACUNA_MPI_HOST_CALLS(X)
  LACUNA_MPI_HOST_CALLS_MAYBE(X)
#undef X
  // NOLINTEND(bugprone-macro-parentheses)
  Comm world{}, self{}, no_comm{};
  Datatype byte{}, no_type{};
  Request no_request{};
  Message no_message{}, message_of_none{};

  bool large = false;  ///< it takes counts that are no ints; else the _c functions are fill_missing()'s

  /// An object of the host's, by its name; null if it has none.
  void* (*find)(const char* name) = nullptr;
};

/// Looks everything up at the first call; ends the program with a line that says what is missing where there is no host of this ABI.
const Host& host();
/// In missing.cpp: makes what the host lacks of what it has.
void fill_missing(Host& host);

}  // namespace lacuna::mpi
