/* What the benchmarks ask of an MPI: datatypes, MPI_Pack and MPI_Unpack, MPI_Send and MPI_Recv. mpi_shim.c implements
 * it in terms of one mpi.h and is compiled by that MPI's own mpicc into a shared library, which a benchmark loads: no
 * process loads two, so that no two MPIs meet. Types are handles of the shim's; each constructor returns null where MPI
 * reports an error. */
#ifndef LACUNA_BENCH_MPI_SHIM_H
#define LACUNA_BENCH_MPI_SHIM_H

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lacuna_mpi_type lacuna_mpi_type;

struct lacuna_mpi_shim {
  int version; /* LACUNA_MPI_SHIM_VERSION */
  /* MPI_Init of a job of so many processes; MPI_Finalize. 0 if all is well. Errors return, they do not abort. */
  int (*start)(int ranks);
  int (*stop)(void);
  /* MPI_Get_library_version, one line; valid until stop(). */
  const char* (*library)(void);
  int (*rank)(void);
  /* A basic type of 1, 2, 4, 8 or 16 bytes: MPI_BYTE, SHORT, FLOAT, DOUBLE, C_DOUBLE_COMPLEX. */
  lacuna_mpi_type* (*basic)(int bytes);
  /* MPI_PACKED, for send and recv of what pack() wrote. Not to be released. */
  const lacuna_mpi_type* (*packed)(void);
  lacuna_mpi_type* (*contiguous)(int count, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*vector)(int count, int blocklength, int stride, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*hvector)(int count, int blocklength, long stride, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*indexed)(int count, const int* lengths, const int* displacements, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*hindexed)(int count, const int* lengths, const long* displacements, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*indexed_block)(int count, int length, const int* displacements, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*hindexed_block)(int count, int length, const long* displacements, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*structure)(int count, const int* lengths, const long* displacements, lacuna_mpi_type* const* members);
  /* fortran: 0 for MPI_ORDER_C, 1 for MPI_ORDER_FORTRAN. */
  lacuna_mpi_type* (*subarray)(int dims, const int* sizes, const int* subsizes, const int* starts, int fortran, const lacuna_mpi_type* old);
  lacuna_mpi_type* (*resized)(const lacuna_mpi_type* old, long lower_bound, long extent);
  int (*commit)(lacuna_mpi_type* type);
  void (*release)(lacuna_mpi_type* type);
  /* MPI_Type_size; -1 on error. */
  long (*size)(const lacuna_mpi_type* type);
  /* One element of `type` at `base`, into or out of `bytes` packed bytes, for MPI_COMM_WORLD. Returns the position
   * afterwards, -1 on error. */
  long (*pack)(const void* base, const lacuna_mpi_type* type, void* packed, int bytes);
  long (*unpack)(const void* packed, int bytes, void* base, const lacuna_mpi_type* type);
  /* Blocking, in MPI_COMM_WORLD; 0 if all is well. A type of null: `count` bytes. */
  int (*send)(const void* base, int count, const lacuna_mpi_type* type, int dest);
  int (*recv)(void* base, int count, const lacuna_mpi_type* type, int source);
};

#define LACUNA_MPI_SHIM_VERSION 3

/* The only symbol: `const struct lacuna_mpi_shim* lacuna_mpi_shim_table(void)`. */
typedef const struct lacuna_mpi_shim* (*lacuna_mpi_shim_function)(void);

#ifdef __cplusplus
}
#endif
#endif
