/* A tool of MPI's profiling interface: counts the program's calls, and says at the end what each rank called. Loaded by
 * test_mpi_tools.py before or behind Lacuna's library. */
#include <mpi.h>
#include <stdio.h>

static int sends, receives, waits, exchanges;

int MPI_Send(const void* base, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Send(base, count, type, dest, tag, comm);
}
int MPI_Isend(const void* base, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, MPI_Request* request) {
  ++sends;
  return PMPI_Isend(base, count, type, dest, tag, comm, request);
}
int MPI_Recv(void* base, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status* status) {
  ++receives;
  return PMPI_Recv(base, count, type, source, tag, comm, status);
}
int MPI_Irecv(void* base, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  ++receives;
  return PMPI_Irecv(base, count, type, source, tag, comm, request);
}
int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  ++waits;
  return PMPI_Wait(request, status);
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  ++waits;
  return PMPI_Waitall(count, requests, statuses);
}
int MPI_Alltoallw(const void* out, const int* out_counts, const int* out_places, const MPI_Datatype* out_types, void* in,
                  const int* in_counts, const int* in_places, const MPI_Datatype* in_types, MPI_Comm comm) {
  ++exchanges;
  return PMPI_Alltoallw(out, out_counts, out_places, out_types, in, in_counts, in_places, in_types, comm);
}
int MPI_Finalize(void) {
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  fprintf(stderr, "tool: rank %d: %d sends, %d receives, %d waits, %d exchanges\n", rank, sends, receives, waits, exchanges);
  return PMPI_Finalize();
}
