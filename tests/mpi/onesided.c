/* Puts and gets with gaps on either side, in every kind of window, by every way to complete them. */
/* ranks: 2 */
#include "nests.h"

enum window { CREATED, ALLOCATED, DYNAMIC, WINDOWS };
static const char* const window_names[] = {"created", "allocated", "dynamic"};
enum way { FENCE, LOCK, FLUSH, FLUSH_LOCAL, ALL, STARTED, WAYS };
static const char* const way_names[] = {"fence", "lock", "flush", "flush_local", "lock_all", "start"};
enum { SLOTS = 2, MOST = 256 * KIB };

static MPI_Win window;
static unsigned char* memory; /* of the window: SLOTS ends, each with its room */
static MPI_Aint there;        /* where it begins, as the ranks' displacements count, at the right neighbour */
static int left, right;
static MPI_Group left_group, right_group;

static void open_window(enum window kind, size_t bytes) {
  MPI_Aint address = 0;
  if (kind == ALLOCATED) {
    MPI_Win_allocate((MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  } else {
    memory = allocate(bytes);
    if (kind == CREATED) MPI_Win_create(memory, (MPI_Aint)bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    if (kind == DYNAMIC) {
      MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &window);
      MPI_Win_attach(window, memory, (MPI_Aint)bytes);
      MPI_Get_address(memory, &address);
    }
  }
  MPI_Sendrecv(&address, 1, MPI_AINT, left, 1, &there, 1, MPI_AINT, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void close_window(enum window kind) {
  if (kind == DYNAMIC) MPI_Win_detach(window, memory);
  MPI_Win_free(&window);
  if (kind != ALLOCATED) free(memory);
}

static void open_epoch(enum way way) {
  if (way == FENCE) MPI_Win_fence(0, window);
  if (way == LOCK || way == FLUSH || way == FLUSH_LOCAL) MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  if (way == ALL) MPI_Win_lock_all(0, window);
  if (way == STARTED) {
    MPI_Win_post(left_group, 0, window);
    MPI_Win_start(right_group, 0, window);
  }
}

/* Complete at the origin; the epoch goes on where it can. */
static void complete(enum way way) {
  if (way == FLUSH) MPI_Win_flush(right, window);
  if (way == FLUSH_LOCAL) MPI_Win_flush_local(right, window);
  if (way == ALL) MPI_Win_flush_all(window);
}

static void close_epoch(enum way way) {
  if (way == FENCE) MPI_Win_fence(0, window);
  if (way == LOCK || way == FLUSH || way == FLUSH_LOCAL) MPI_Win_unlock(right, window);
  if (way == ALL) MPI_Win_unlock_all(window);
  if (way == STARTED) {
    MPI_Win_complete(window);
    MPI_Win_wait(window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

static bool goes_on(enum way way) { return way == FLUSH || way == FLUSH_LOCAL || way == ALL; }

static void load_slot(const struct end* e, size_t at) { memcpy(memory + at, e->memory, e->room); }

/* A slot, locked, since a window's memory may be another copy. */
static void look_at_slot(struct end* e, size_t at) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, me, 0, window);
  memcpy(e->memory, memory + at, e->room);
  MPI_Win_unlock(me, window);
}

static uint64_t seed_of(int rank, int slot) { return (uint64_t)(1000 * rank + slot); }

static void try_out(enum window kind, enum way way, enum style own, enum style theirs, long bytes) {
  struct end origins[SLOTS], targets[SLOTS];
  size_t at[SLOTS + 1] = {0};
  for (int i = 0; i < SLOTS; ++i) {
    origins[i] = end_with(bytes, own, (uint64_t)(7 + i));
    targets[i] = end_with(bytes, theirs, (uint64_t)(17 + i)); /* the same on all ranks */
    at[i + 1] = at[i] + (targets[i].room + 63) / 64 * 64;
  }
  open_window(kind, at[SLOTS]);
  MPI_Win_fence(0, window);
  for (int i = 0; i < SLOTS; ++i) {
    blank(&targets[i]);
    load_slot(&targets[i], at[i]);
    load(&origins[i], seed_of(me, i));
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);

  open_epoch(way);
  for (int i = 0; i < SLOTS; ++i) {
    MPI_Aint place = there + (MPI_Aint)(at[i] + (size_t)((unsigned char*)targets[i].at - targets[i].memory));
    MPI_Put(origins[i].at, origins[i].count, origins[i].shape.type, right, place, targets[i].count, targets[i].shape.type, window);
    complete(way);
    if (goes_on(way)) blank(&origins[i]); /* its memory may be used again */
  }
  close_epoch(way);
  for (int i = 0; i < SLOTS; ++i) {
    look_at_slot(&targets[i], at[i]);
    check_end(&targets[i], seed_of(left, i), bytes, "put, %s, %s, %d to %d, %ld", window_names[kind], way_names[way], own, theirs, bytes);
  }
  MPI_Barrier(MPI_COMM_WORLD);

  for (int i = 0; i < SLOTS; ++i) blank(&origins[i]);
  open_epoch(way);
  for (int i = 0; i < SLOTS; ++i) {
    MPI_Aint place = there + (MPI_Aint)(at[i] + (size_t)((unsigned char*)targets[i].at - targets[i].memory));
    MPI_Get(origins[i].at, origins[i].count, origins[i].shape.type, right, place, targets[i].count, targets[i].shape.type, window);
    complete(way);
    if (goes_on(way)) check_end(&origins[i], seed_of(me, i), bytes, "got at once, %s, %s, %ld", window_names[kind], way_names[way], bytes);
  }
  close_epoch(way);
  for (int i = 0; i < SLOTS; ++i)
    check_end(&origins[i], seed_of(me, i), bytes, "got, %s, %s, %d from %d, %ld", window_names[kind], way_names[way], own, theirs, bytes);
  close_window(kind);
  for (int i = 0; i < SLOTS; ++i) {
    free_end(&origins[i]);
    free_end(&targets[i]);
  }
}

static struct end spread_out(int blocks, int block) {
  struct shape s = nothing();
  for (int i = 0; i < blocks; ++i) add_run(&s, (MPI_Aint)i * (block + 8), block);
  s.ub = s.high;
  MPI_Type_vector(blocks, block, block + 8, MPI_BYTE, &s.type);
  return end_of(s, 1);
}

/* More in one epoch than is kept for it. The window is one in which no MPI takes long for each block. */
static void many(void) {
  enum { COUNT = 27, BLOCK = 1000, BLOCKS = 2600, BYTES = BLOCK * BLOCKS };
  struct end origin = spread_out(BLOCKS, BLOCK), target = end_of(basic(MPI_BYTE), BYTES);
  MPI_Win_allocate((MPI_Aint)target.room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  load(&origin, seed_of(me, 9));
  blank(&target);
  load_slot(&target, 0);
  MPI_Aint place = (unsigned char*)target.at - target.memory;
  MPI_Win_fence(0, window);
  for (int i = 0; i < COUNT; ++i)
    MPI_Put(origin.at, origin.count, origin.shape.type, right, place, target.count, target.shape.type, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  look_at_slot(&target, 0);
  check_end(&target, seed_of(left, 9), BYTES, "many puts");
  MPI_Win_free(&window);
  free_end(&origin);
  free_end(&target);
}

/* Types that are freed before their operations are complete; and nobody's memory. */
static void freed(void) {
  enum { BLOCK = 200, BLOCKS = 300, BYTES = BLOCK * BLOCKS };
  struct end origin = spread_out(BLOCKS, BLOCK), target = end_of(basic(MPI_BYTE), BYTES);
  MPI_Win_create(target.memory, (MPI_Aint)target.room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  load(&origin, seed_of(me, 9));
  blank(&target);
  MPI_Aint place = (unsigned char*)target.at - target.memory;
  for (int gets = 0; gets < 2; ++gets) {
    MPI_Datatype type;
    MPI_Win_fence(0, window);
    MPI_Type_dup(origin.shape.type, &type);
    if (gets) MPI_Get(origin.at, origin.count, type, right, place, target.count, target.shape.type, window);
    if (!gets) MPI_Put(origin.at, origin.count, type, right, place, target.count, target.shape.type, window);
    MPI_Type_free(&type);
    MPI_Win_fence(0, window);
    if (gets) check_end(&origin, seed_of(me, 9), BYTES, "a get with a type that is freed");
    if (!gets) check_end(&target, seed_of(left, 9), BYTES, "a put with a type that is freed");
    blank(&origin);
  }
  load(&origin, seed_of(me, 9));
  MPI_Get(origin.at, origin.count, origin.shape.type, MPI_PROC_NULL, 0, 1, MPI_INT, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  check_end(&origin, seed_of(me, 9), BYTES, "a get from nobody");
  MPI_Win_free(&window);
  free_end(&origin);
  free_end(&target);
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  left = (me + everybody - 1) % everybody;
  right = (me + 1) % everybody;
  MPI_Group world;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 1, &left, &left_group);
  MPI_Group_incl(world, 1, &right, &right_group);
  static const long lengths[] = {64, 2 * KIB, 12 * KIB, MOST};
  for (int kind = 0; kind < WINDOWS; ++kind) {
    for (int way = 0; way < WAYS; ++way) {
      for (int i = 0; i < COUNT_OF(lengths); ++i) {
        enum style own = lengths[i] == MOST ? STRIDED : (enum style)(STRIDED + (i + way) % (STYLES - STRIDED));
        try_out((enum window)kind, (enum way)way, own, FLAT, lengths[i]);
        if (lengths[i] <= 2 * KIB) try_out((enum window)kind, (enum way)way, own, STRIDED, lengths[i]);
      }
      say("%s, %s", window_names[kind], way_names[way]);
    }
  }
  many();
  say("many");
  freed();
  say("freed");
  MPI_Group_free(&left_group);
  MPI_Group_free(&right_group);
  MPI_Group_free(&world);
  return finish();
}
