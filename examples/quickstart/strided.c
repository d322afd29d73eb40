/* Every second of 65536 doubles, from rank 0 to rank 1 and back; prints the least time one way.
 *
 *   mpicc -O2 strided.c -o strided && mpirun -n 2 ./strided */
#include <mpi.h>
#include <stdio.h>

enum { BLOCKS = 32768, ROUNDS = 400 };

static double values[2 * BLOCKS];

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Datatype strided;
  MPI_Type_vector(BLOCKS, 1, 2, MPI_DOUBLE, &strided);
  MPI_Type_commit(&strided);
  double least = 1e9;
  for (int round = 0; round < ROUNDS; ++round) {
    const double start = MPI_Wtime();
    if (rank == 0) MPI_Send(values, 1, strided, 1, 0, MPI_COMM_WORLD);
    if (rank <= 1) MPI_Recv(values, 1, strided, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(values, 1, strided, 0, 0, MPI_COMM_WORLD);
    const double one_way = (MPI_Wtime() - start) / 2;
    if (one_way < least) least = one_way;
  }
  if (rank == 0) printf("every second of %d doubles: %.1f us one way\n", 2 * BLOCKS, least * 1e6);
  MPI_Type_free(&strided);
  MPI_Finalize();
  return 0;
}
