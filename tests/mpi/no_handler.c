/* A program that handles errors of MPI_COMM_WORLD alone, as most do: MPICH has those of MPI_Waitall and MPI_Mrecv told
 * to MPI_COMM_SELF if that has a handler. */
/* ranks: 2 */
#define SELF_HAS_NO_HANDLER
#include "nests.h"

enum { TAG = 4 };

static void truncated(int blocks) {
  MPI_Datatype type;
  MPI_Type_vector(blocks, 8, 16, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  char* memory = allocate(20 * (size_t)blocks * 16);
  if (me == 0) {
    for (int i = 0; i < 3; ++i) MPI_Send(memory, 20, type, 1, TAG, MPI_COMM_WORLD);
  } else {
    MPI_Status status = {0};
    MPI_Request request;
    MPI_Message message;
    int index = 0, codes[3];
    MPI_Irecv(memory, 10, type, 0, TAG, MPI_COMM_WORLD, &request);
    codes[0] = MPI_Waitall(1, &request, &status);
    MPI_Irecv(memory, 10, type, 0, TAG, MPI_COMM_WORLD, &request);
    codes[1] = MPI_Waitany(1, &request, &index, &status);
    MPI_Mprobe(0, TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
    codes[2] = MPI_Mrecv(memory, 10, type, &message, &status);
    for (int i = 0; i < 3; ++i) MPI_Error_class(codes[i], &codes[i]);
    say("%d blocks: Waitall %d, Waitany %d, Mrecv %d", blocks, codes[0], codes[1], codes[2]);
  }
  free(memory);
  MPI_Type_free(&type);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  truncated(10);
  truncated(1000);
  return finish();
}
