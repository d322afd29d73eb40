/* The table of mpi_shim.h over the mpi.h at hand. Each MPI's own wrapper compiles it:
 *   mpicc -O2 -std=gnu11 -shared -fPIC -fvisibility=hidden mpi_shim.c -o shim.so
 * Load it with RTLD_NOW | RTLD_GLOBAL: some MPIs load parts of theirs that look for libmpi's symbols. */
#include "mpi_shim.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(long) == sizeof(MPI_Aint), "displacements are passed on as they are");

struct lacuna_mpi_type {
  MPI_Datatype type;
  int basic; /* MPI's own, which must not be freed */
};

static char library_version[MPI_MAX_LIBRARY_VERSION_STRING];

static int start(int ranks) {
  if (MPI_Init(NULL, NULL) != MPI_SUCCESS) return -1;
  if (MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN) != MPI_SUCCESS) return -1;
  if (MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN) != MPI_SUCCESS) return -1;
  int size = 0;
  if (MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS || size != ranks) return -1;
  int length = 0;
  if (MPI_Get_library_version(library_version, &length) != MPI_SUCCESS) return -1;
  library_version[strcspn(library_version, "\r\n")] = '\0';
  return 0;
}

static int stop(void) { return MPI_Finalize() == MPI_SUCCESS ? 0 : -1; }

static const char* library(void) { return library_version; }

static int rank(void) {
  int own = -1;
  return MPI_Comm_rank(MPI_COMM_WORLD, &own) == MPI_SUCCESS ? own : -1;
}

/* A handle for `*type`, which the handle then owns; null after an error. */
static lacuna_mpi_type* handle(int error, MPI_Datatype* type) {
  if (error != MPI_SUCCESS) return NULL;
  lacuna_mpi_type* made = malloc(sizeof *made);
  if (made == NULL) {
    MPI_Type_free(type);
    return NULL;
  }
  made->type = *type;
  made->basic = 0;
  return made;
}

static lacuna_mpi_type* basic(int bytes) {
  MPI_Datatype type;
  switch (bytes) {
    case 1: type = MPI_BYTE; break;
    case 2: type = MPI_SHORT; break;
    case 4: type = MPI_FLOAT; break;
    case 8: type = MPI_DOUBLE; break;
    case 16: type = MPI_C_DOUBLE_COMPLEX; break;
    default: return NULL;
  }
  lacuna_mpi_type* made = malloc(sizeof *made);
  if (made == NULL) return NULL;
  made->type = type;
  made->basic = 1;
  return made;
}

static const lacuna_mpi_type* packed(void) {
  static lacuna_mpi_type type;
  type.type = MPI_PACKED; /* no constant initializer: some MPIs have an address of theirs here */
  type.basic = 1;
  return &type;
}

static lacuna_mpi_type* contiguous(int count, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_contiguous(count, old->type, &type), &type);
}

static lacuna_mpi_type* vector(int count, int blocklength, int stride, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_vector(count, blocklength, stride, old->type, &type), &type);
}

static lacuna_mpi_type* hvector(int count, int blocklength, long stride, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_create_hvector(count, blocklength, stride, old->type, &type), &type);
}

static lacuna_mpi_type* indexed(int count, const int* lengths, const int* displacements, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_indexed(count, lengths, displacements, old->type, &type), &type);
}

static lacuna_mpi_type* hindexed(int count, const int* lengths, const long* displacements, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_create_hindexed(count, lengths, (const MPI_Aint*)displacements, old->type, &type), &type);
}

static lacuna_mpi_type* indexed_block(int count, int length, const int* displacements, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_create_indexed_block(count, length, displacements, old->type, &type), &type);
}

static lacuna_mpi_type* hindexed_block(int count, int length, const long* displacements, const lacuna_mpi_type* old) {
  MPI_Datatype type;
  return handle(MPI_Type_create_hindexed_block(count, length, (const MPI_Aint*)displacements, old->type, &type), &type);
}

static lacuna_mpi_type* structure(int count, const int* lengths, const long* displacements, lacuna_mpi_type* const* members) {
  if (count < 0) return NULL;
  MPI_Datatype* types = malloc(((size_t)count + 1) * sizeof *types);
  if (types == NULL) return NULL;
  for (int i = 0; i < count; ++i) types[i] = members[i]->type;
  MPI_Datatype type;
  int error = MPI_Type_create_struct(count, lengths, (const MPI_Aint*)displacements, types, &type);
  free(types);
  return handle(error, &type);
}

static lacuna_mpi_type* subarray(int dims, const int* sizes, const int* subsizes, const int* starts, int fortran,
                                 const lacuna_mpi_type* old) {
  MPI_Datatype type;
  int order = fortran ? MPI_ORDER_FORTRAN : MPI_ORDER_C;
  return handle(MPI_Type_create_subarray(dims, sizes, subsizes, starts, order, old->type, &type), &type);
}

static lacuna_mpi_type* resized(const lacuna_mpi_type* old, long lower_bound, long extent) {
  MPI_Datatype type;
  return handle(MPI_Type_create_resized(old->type, lower_bound, extent, &type), &type);
}

static int commit(lacuna_mpi_type* type) { return MPI_Type_commit(&type->type) == MPI_SUCCESS ? 0 : -1; }

static void release(lacuna_mpi_type* type) {
  if (type == NULL) return;
  if (!type->basic) MPI_Type_free(&type->type);
  free(type);
}

static long size(const lacuna_mpi_type* type) {
  int bytes = 0;
  return MPI_Type_size(type->type, &bytes) == MPI_SUCCESS && bytes >= 0 ? bytes : -1;
}

static long pack(const void* base, const lacuna_mpi_type* type, void* packed, int bytes) {
  int position = 0;
  return MPI_Pack(base, 1, type->type, packed, bytes, &position, MPI_COMM_WORLD) == MPI_SUCCESS ? position : -1;
}

static long unpack(const void* packed, int bytes, void* base, const lacuna_mpi_type* type) {
  int position = 0;
  return MPI_Unpack(packed, bytes, &position, base, 1, type->type, MPI_COMM_WORLD) == MPI_SUCCESS ? position : -1;
}

static int send(const void* base, int count, const lacuna_mpi_type* type, int dest) {
  return MPI_Send(base, count, type == NULL ? MPI_BYTE : type->type, dest, 0, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : -1;
}

static int recv(void* base, int count, const lacuna_mpi_type* type, int source) {
  return MPI_Recv(base, count, type == NULL ? MPI_BYTE : type->type, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS ? 0 : -1;
}

static const struct lacuna_mpi_shim table = {
    .version = LACUNA_MPI_SHIM_VERSION,
    .start = start,
    .stop = stop,
    .library = library,
    .rank = rank,
    .basic = basic,
    .packed = packed,
    .contiguous = contiguous,
    .vector = vector,
    .hvector = hvector,
    .indexed = indexed,
    .hindexed = hindexed,
    .indexed_block = indexed_block,
    .hindexed_block = hindexed_block,
    .structure = structure,
    .subarray = subarray,
    .resized = resized,
    .commit = commit,
    .release = release,
    .size = size,
    .pack = pack,
    .unpack = unpack,
    .send = send,
    .recv = recv,
};

__attribute__((visibility("default"))) const struct lacuna_mpi_shim* lacuna_mpi_shim_table(void) { return &table; }
