/* Whether the ABI that lacuna/mpi writes down is that of the mpi.h at hand. Compiled, not run, by test_mpi_abi.py, with
 * what it finds in lacuna/mpi/abi/openmpi.hpp, mpich.hpp or standard.hpp as -D options:  LACUNA_kErrTruncate=15 ... */
#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

#define EQUAL(what, wanted) _Static_assert((what) == (wanted), #what)

EQUAL(MPI_SUCCESS, LACUNA_kSuccess);
EQUAL(MPI_ERR_COUNT, LACUNA_kErrCount);
EQUAL(MPI_ERR_TYPE, LACUNA_kErrType);
EQUAL(MPI_ERR_TRUNCATE, LACUNA_kErrTruncate);
EQUAL(MPI_ERR_OTHER, LACUNA_kErrOther);
EQUAL(MPI_ERR_IN_STATUS, LACUNA_kErrInStatus);
EQUAL(MPI_ERR_PENDING, LACUNA_kErrPending);
EQUAL(MPI_ERR_NO_MEM, LACUNA_kErrNoMem);
EQUAL(MPI_UNDEFINED, LACUNA_kUndefined);
EQUAL(MPI_ANY_TAG, LACUNA_kAnyTag);
EQUAL(MPI_ANY_SOURCE, LACUNA_kAnySource);
EQUAL(MPI_PROC_NULL, LACUNA_kProcNull);
EQUAL(MPI_THREAD_MULTIPLE, LACUNA_kThreadMultiple);
EQUAL(MPI_ORDER_C, LACUNA_kOrderC);
EQUAL(MPI_DISTRIBUTE_BLOCK, LACUNA_kDistributeBlock);
EQUAL(MPI_DISTRIBUTE_CYCLIC, LACUNA_kDistributeCyclic);
EQUAL(MPI_DISTRIBUTE_DFLT_DARG, LACUNA_kDefaultBlock);

EQUAL(MPI_COMBINER_NAMED, LACUNA_named);
EQUAL(MPI_COMBINER_DUP, LACUNA_dup);
EQUAL(MPI_COMBINER_CONTIGUOUS, LACUNA_contiguous);
EQUAL(MPI_COMBINER_VECTOR, LACUNA_vector);
EQUAL(MPI_COMBINER_HVECTOR, LACUNA_hvector);
EQUAL(MPI_COMBINER_INDEXED, LACUNA_indexed);
EQUAL(MPI_COMBINER_HINDEXED, LACUNA_hindexed);
EQUAL(MPI_COMBINER_INDEXED_BLOCK, LACUNA_indexed_block);
EQUAL(MPI_COMBINER_HINDEXED_BLOCK, LACUNA_hindexed_block);
EQUAL(MPI_COMBINER_STRUCT, LACUNA_structure);
EQUAL(MPI_COMBINER_SUBARRAY, LACUNA_subarray);
EQUAL(MPI_COMBINER_DARRAY, LACUNA_darray);
EQUAL(MPI_COMBINER_F90_REAL, LACUNA_f90_real);
EQUAL(MPI_COMBINER_F90_COMPLEX, LACUNA_f90_complex);
EQUAL(MPI_COMBINER_F90_INTEGER, LACUNA_f90_integer);
EQUAL(MPI_COMBINER_RESIZED, LACUNA_resized);
#if !defined(OPEN_MPI) && (MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1))
EQUAL(MPI_COMBINER_VALUE_INDEX, LACUNA_value_index);
#endif

EQUAL(sizeof(MPI_Aint), sizeof(ptrdiff_t));
EQUAL(sizeof(MPI_Count), sizeof(long long));

EQUAL(MPI_CART, LACUNA_kCart);
EQUAL(MPI_GRAPH, LACUNA_kGraph);
EQUAL(MPI_DIST_GRAPH, LACUNA_kDistGraph);

#if defined(MPI_ABI_VERSION) && !defined(OPEN_MPI) && LACUNA_kCommWorld == 0x101
EQUAL(sizeof(MPI_Comm), sizeof(void*));
EQUAL(sizeof(MPI_Status), 32);
EQUAL(offsetof(MPI_Status, MPI_SOURCE), 0);
EQUAL(offsetof(MPI_Status, MPI_TAG), 4);
EQUAL(offsetof(MPI_Status, MPI_ERROR), 8);
int handles_as_written(void) {
  return (intptr_t)MPI_COMM_WORLD == LACUNA_kCommWorld && (intptr_t)MPI_COMM_SELF == LACUNA_kCommSelf &&
         (intptr_t)MPI_COMM_NULL == LACUNA_kCommNull && (intptr_t)MPI_BYTE == LACUNA_kByte &&
         (intptr_t)MPI_DATATYPE_NULL == LACUNA_kDatatypeNull && (intptr_t)MPI_REQUEST_NULL == LACUNA_kRequestNull &&
         (intptr_t)MPI_BAND == LACUNA_kBand && (intptr_t)MPI_MESSAGE_NULL == LACUNA_kMessageNull &&
         (intptr_t)MPI_MESSAGE_NO_PROC == LACUNA_kMessageNoProc && (intptr_t)MPI_ERRORS_ARE_FATAL == LACUNA_kErrorsAreFatalNumber;
}
#elif defined(OPEN_MPI)
EQUAL(sizeof(MPI_Comm), sizeof(void*));
EQUAL(sizeof(MPI_Status), 24);
EQUAL(offsetof(MPI_Status, MPI_SOURCE), 0);
EQUAL(offsetof(MPI_Status, MPI_TAG), 4);
EQUAL(offsetof(MPI_Status, MPI_ERROR), 8);
#else
EQUAL(sizeof(MPI_Comm), sizeof(int));
EQUAL(sizeof(MPI_Status), 20);
EQUAL(offsetof(MPI_Status, MPI_SOURCE), 8);
EQUAL(offsetof(MPI_Status, MPI_TAG), 12);
EQUAL(offsetof(MPI_Status, MPI_ERROR), 16);
EQUAL((int)MPI_COMM_WORLD, LACUNA_kCommWorld);
EQUAL((int)MPI_COMM_SELF, LACUNA_kCommSelf);
EQUAL((int)MPI_ERRORS_ARE_FATAL, LACUNA_kErrorsAreFatal);
EQUAL((int)MPI_COMM_NULL, LACUNA_kCommNull);
EQUAL((int)MPI_BYTE, LACUNA_kByte);
EQUAL((int)MPI_BAND, LACUNA_kBand);
EQUAL((int)MPI_DATATYPE_NULL, LACUNA_kDatatypeNull);
EQUAL((int)MPI_REQUEST_NULL, LACUNA_kRequestNull);
EQUAL((int)MPI_MESSAGE_NULL, LACUNA_kMessageNull);
EQUAL((int)MPI_MESSAGE_NO_PROC, LACUNA_kMessageNoProc);
/* Predefined types have their sizes in their handles (Types::is_short). */
EQUAL((unsigned)MPI_DOUBLE >> 26, 0x13);
EQUAL(((unsigned)MPI_DOUBLE >> 8) & 0xff, 8);
EQUAL(((unsigned)MPI_INT >> 8) & 0xff, 4);
EQUAL(((unsigned)MPI_CHAR >> 8) & 0xff, 1);
EQUAL(((unsigned)MPI_LONG_DOUBLE >> 8) & 0xff, 16);
#endif

/* The program's choice of what is ignored: numbers that are no constant expressions. */
int ignored_as_written(void) { return (intptr_t)MPI_STATUS_IGNORE == LACUNA_ignored && (intptr_t)MPI_STATUSES_IGNORE == LACUNA_ignored; }
