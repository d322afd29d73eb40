/* What a program hangs on types and communicators is its own, and so are their names and what they say they were made
 * of. */
/* ranks: 2 */
#include "nests.h"

static int copied, deleted;

static int copy_type(MPI_Datatype type, int key, void* extra, void* in, void* out, int* flag) {
  (void)type;
  (void)key;
  ++copied;
  *(void**)out = (char*)in + *(int*)extra;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_type(MPI_Datatype type, int key, void* value, void* extra) {
  (void)type;
  (void)key;
  (void)value;
  (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

static int copy_comm(MPI_Comm comm, int key, void* extra, void* in, void* out, int* flag) {
  (void)comm;
  (void)key;
  ++copied;
  *(void**)out = (char*)in + *(int*)extra;
  *flag = 1;
  return MPI_SUCCESS;
}

static int delete_comm(MPI_Comm comm, int key, void* value, void* extra) {
  (void)comm;
  (void)key;
  (void)value;
  (void)extra;
  ++deleted;
  return MPI_SUCCESS;
}

/* Something large goes through, so that whatever is remembered of a type or communicator exists. */
static void use(MPI_Comm comm, MPI_Datatype type) {
  MPI_Aint lb, extent;
  MPI_Type_get_extent(type, &lb, &extent);
  char* from = allocate((size_t)extent);
  char* to = allocate((size_t)extent);
  MPI_Sendrecv(from, 1, type, 1 - me, 0, to, 1, type, 1 - me, 0, comm, MPI_STATUS_IGNORE);
  free(from);
  free(to);
}

static char array[100];

static void of_types(MPI_Datatype type) {
  int key, other, step = 3, flag = 0;
  char* value = NULL;
  MPI_Datatype second, third;
  MPI_Type_create_keyval(copy_type, delete_type, &key, &step);
  MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_type, &other, NULL);
  MPI_Type_set_attr(type, key, array);
  MPI_Type_set_attr(type, other, array + 50);
  MPI_Type_set_attr(MPI_DOUBLE, key, array + 9);
  use(MPI_COMM_WORLD, type);
  MPI_Type_dup(type, &second);
  MPI_Type_dup(second, &third);
  use(MPI_COMM_WORLD, third);
  MPI_Type_get_attr(third, key, &value, &flag);
  say("types: duplicate of a duplicate: %d, %d further on", flag, flag ? (int)(value - array) : -1);
  MPI_Type_get_attr(second, other, &value, &flag);
  say("types: not to be copied: %d", flag);
  MPI_Type_get_attr(MPI_DOUBLE, key, &value, &flag);
  say("types: of MPI_DOUBLE: %d, %d further on", flag, flag ? (int)(value - array) : -1);
  MPI_Type_delete_attr(MPI_DOUBLE, key);
  MPI_Type_free(&second);
  say("types: copied %d deleted %d", copied, deleted);
  MPI_Type_free(&third);
  MPI_Type_delete_attr(type, key);
  MPI_Type_delete_attr(type, other);
  say("types: copied %d deleted %d", copied, deleted);
  MPI_Type_free_keyval(&key);
  MPI_Type_free_keyval(&other);
  CHECK(key == MPI_KEYVAL_INVALID);
}

static void of_comms(MPI_Datatype type) {
  int key, step = 7, flag = 0, *top = NULL;
  char* value = NULL;
  MPI_Comm second, third;
  copied = deleted = 0;
  MPI_Comm_create_keyval(copy_comm, delete_comm, &key, &step);
  MPI_Comm_set_attr(MPI_COMM_WORLD, key, array);
  use(MPI_COMM_WORLD, type);
  MPI_Comm_dup(MPI_COMM_WORLD, &second);
  MPI_Comm_split(second, 0, me, &third);
  use(second, type);
  use(third, type);
  MPI_Comm_get_attr(second, key, &value, &flag);
  say("communicators: duplicate: %d, %d further on", flag, flag ? (int)(value - array) : -1);
  MPI_Comm_get_attr(third, key, &value, &flag);
  say("communicators: split: %d", flag);
  MPI_Comm_free(&third);
  MPI_Comm_free(&second);
  say("communicators: copied %d deleted %d", copied, deleted);
  MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
  say("communicators: copied %d deleted %d", copied, deleted);
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &top, &flag);
  say("communicators: last tag %d", flag ? *top : -1);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, array); /* is deleted as MPI ends */
  MPI_Comm_free_keyval(&key);
}

static void names(MPI_Datatype type) {
  char text[MPI_MAX_OBJECT_NAME] = "";
  int length = 0;
  MPI_Comm comm;
  MPI_Datatype second;
  MPI_Comm_get_name(MPI_COMM_WORLD, text, &length);
  say("name of all: %s", text);
  MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  MPI_Comm_set_name(comm, "a name");
  use(comm, type);
  MPI_Comm_get_name(comm, text, &length);
  say("name of a duplicate: %s", text);
  MPI_Type_get_name(type, text, &length);
  say("name of a type: '%s'", text);
  MPI_Type_set_name(type, "another name");
  MPI_Type_dup(type, &second);
  use(comm, second);
  MPI_Type_get_name(type, text, &length);
  say("name of a type: '%s'", text);
  MPI_Type_get_name(MPI_C_DOUBLE_COMPLEX, text, &length);
  say("name of a type: '%s'", text);
  MPI_Type_free(&second);
  MPI_Comm_free(&comm);
}

/* What a type was made of, which only its maker knows. */
static void contents(MPI_Datatype type) {
  static const struct {
    int value;
    const char* name;
  } combiners[] = {{MPI_COMBINER_NAMED, "named"},           {MPI_COMBINER_DUP, "dup"},
                   {MPI_COMBINER_CONTIGUOUS, "contiguous"}, {MPI_COMBINER_VECTOR, "vector"},
                   {MPI_COMBINER_HVECTOR, "hvector"},       {MPI_COMBINER_INDEXED, "indexed"},
                   {MPI_COMBINER_HINDEXED, "hindexed"},     {MPI_COMBINER_STRUCT, "struct"},
                   {MPI_COMBINER_SUBARRAY, "subarray"},     {MPI_COMBINER_DARRAY, "darray"},
                   {MPI_COMBINER_RESIZED, "resized"},       {MPI_COMBINER_INDEXED_BLOCK, "indexed block"},
                   {MPI_COMBINER_F90_REAL, "f90 real"},     {MPI_COMBINER_HINDEXED_BLOCK, "hindexed block"}};
  int numbers[64], count = 0, addresses_count = 0, types_count = 0, combiner = 0;
  MPI_Aint addresses[64];
  MPI_Datatype types[8];
  const char* name = "?";
  MPI_Type_get_envelope(type, &count, &addresses_count, &types_count, &combiner);
  for (int i = 0; i < COUNT_OF(combiners); ++i)
    if (combiners[i].value == combiner) name = combiners[i].name;
  say("made by %s of %d numbers, %d addresses, %d types", name, count, addresses_count, types_count);
  if (combiner == MPI_COMBINER_NAMED || count > 64) return;
  MPI_Type_get_contents(type, count, addresses_count, types_count, numbers, addresses, types);
  for (int i = 0; i < count; ++i)
    if (combiner != MPI_COMBINER_SUBARRAY || i + 1 < count) say("number %d: %d", i, numbers[i]);
  for (int i = 0; i < addresses_count; ++i) say("address %d: %ld", i, (long)addresses[i]);
  for (int i = 0; i < types_count; ++i) {
    int inner[3], made = 0;
    contents(types[i]);
    MPI_Type_get_envelope(types[i], &inner[0], &inner[1], &inner[2], &made);
    if (made != MPI_COMBINER_NAMED) MPI_Type_free(&types[i]);
  }
}

int main(int argc, char** argv) {
  MPI_Datatype parts[4], type;
  begin(&argc, &argv);
  MPI_Type_vector(1000, 5, 9, MPI_INT, &parts[0]);
  MPI_Type_create_subarray(2, (int[]){90, 80}, (int[]){20, 30}, (int[]){3, 4}, MPI_ORDER_C, MPI_DOUBLE, &parts[1]);
  MPI_Type_create_hindexed_block(2, 1, (MPI_Aint[]){0, 100000}, parts[0], &parts[2]);
  MPI_Type_create_struct(2, (int[]){1, 1}, (MPI_Aint[]){0, 400000}, (MPI_Datatype[]){parts[2], parts[1]}, &parts[3]);
  MPI_Type_create_resized(parts[3], 0, 500000, &type);
  MPI_Type_commit(&type);
  for (int i = 0; i < 4; ++i) MPI_Type_free(&parts[i]);
  of_types(type);
  of_comms(type);
  names(type);
  contents(type);
  MPI_Type_free(&type);
  int result = report();
  deleted = 0;
  MPI_Finalize();
  return deleted == 1 ? result : 1;
}
