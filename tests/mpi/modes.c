/* Every mode of sending, in every size, between ends of different shapes. */
/* ranks: 2 */
#include "nests.h"

enum mode { SEND, SSEND, RSEND, BSEND, ISEND, ISSEND, IRSEND, IBSEND, SENDRECV, REPLACE, MODES };

static const char* const mode_names[] = {"Send",   "Ssend",  "Rsend",  "Bsend",    "Isend",
                                         "Issend", "Irsend", "Ibsend", "Sendrecv", "Sendrecv_replace"};

static void* attached;

static void attach(const struct end* e) {
  int bytes = 0;
  MPI_Pack_size(e->count, e->shape.type, MPI_COMM_WORLD, &bytes);
  bytes += MPI_BSEND_OVERHEAD;
  attached = allocate((size_t)bytes);
  MPI_Buffer_attach(attached, bytes);
}

static void detach(void) {
  void* buffer = NULL;
  int bytes = 0;
  MPI_Buffer_detach(&buffer, &bytes);
  CHECK(buffer == attached);
  free(attached);
}

static void send(enum mode mode, const struct end* e, int tag) {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Comm world = MPI_COMM_WORLD;
  switch (mode) {
    case SEND: MPI_Send(e->at, e->count, e->shape.type, 1, tag, world); break;
    case SSEND: MPI_Ssend(e->at, e->count, e->shape.type, 1, tag, world); break;
    case RSEND: MPI_Rsend(e->at, e->count, e->shape.type, 1, tag, world); break;
    case BSEND: MPI_Bsend(e->at, e->count, e->shape.type, 1, tag, world); break;
    case ISEND: MPI_Isend(e->at, e->count, e->shape.type, 1, tag, world, &request); break;
    case ISSEND: MPI_Issend(e->at, e->count, e->shape.type, 1, tag, world, &request); break;
    case IRSEND: MPI_Irsend(e->at, e->count, e->shape.type, 1, tag, world, &request); break;
    default: MPI_Ibsend(e->at, e->count, e->shape.type, 1, tag, world, &request); break;
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(request == MPI_REQUEST_NULL);
}

/* A ready send may only start once its receive has. */
static void one_way(enum mode mode, int size, const struct end* e, uint64_t seed) {
  bool ready = mode == RSEND || mode == IRSEND, buffered = mode == BSEND || mode == IBSEND;
  int tag = mode * 100 + size;
  if (me == 0) {
    load(e, seed);
    if (buffered) attach(e);
    if (ready) MPI_Recv(NULL, 0, MPI_BYTE, 1, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    send(mode, e, tag);
    if (buffered) {
      blank(e); /* it is the user's again at once */
      detach();
    } else {
      check_end(e, seed, bytes_of(e), "what was sent: %s of %ld", mode_names[mode], sizes[size]);
    }
  } else {
    MPI_Status status = soiled();
    MPI_Request request;
    blank(e);
    MPI_Irecv(e->at, e->count, e->shape.type, 0, tag, MPI_COMM_WORLD, &request);
    if (ready) MPI_Send(NULL, 0, MPI_BYTE, 0, tag, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    check_end(e, seed, sizes[size], "%s of %ld", mode_names[mode], sizes[size]);
    say_status(&status, e->shape.type, "%s of %ld", mode_names[mode], sizes[size]);
  }
}

static void both_ways(enum mode mode, int size, const struct end* e, uint64_t seed) {
  MPI_Status status = soiled();
  int tag = mode * 100 + size;
  load(e, seed + (uint64_t)me);
  if (mode == REPLACE) {
    MPI_Sendrecv_replace(e->at, e->count, e->shape.type, 1 - me, tag + me, 1 - me, tag + 1 - me, MPI_COMM_WORLD, &status);
    check_end(e, seed + (uint64_t)(1 - me), sizes[size], "%s of %ld", mode_names[mode], sizes[size]);
    say_status(&status, e->shape.type, "%s of %ld", mode_names[mode], sizes[size]);
    return;
  }
  int other = size > 0 ? size - 1 : SIZES - 1; /* the two messages differ in length */
  struct end in = end_with(sizes[me == 0 ? size : other], (enum style)((size + me) % STYLES), seed + 7 + (uint64_t)me);
  struct end out = end_with(sizes[me == 0 ? other : size], (enum style)((size + 1 + me) % STYLES), seed + 9 + (uint64_t)me);
  load(&out, seed + (uint64_t)me);
  blank(&in);
  MPI_Sendrecv(out.at, out.count, out.shape.type, 1 - me, tag, in.at, in.count, in.shape.type, 1 - me, tag, MPI_COMM_WORLD, &status);
  check_end(&in, seed + (uint64_t)(1 - me), bytes_of(&in), "%s of %ld", mode_names[mode], sizes[size]);
  say_status(&status, in.shape.type, "%s of %ld", mode_names[mode], sizes[size]);
  free_end(&in);
  free_end(&out);
}

/* All sizes under way at once, in the order of their sending. */
static void all_at_once(void) {
  struct end ends[SIZES];
  MPI_Request requests[SIZES];
  MPI_Status statuses[SIZES];
  soil(statuses, SIZES);
  for (int i = 0; i < SIZES; ++i) {
    ends[i] = end_with(sizes[i], (enum style)((i + me) % STYLES), (uint64_t)(900 + 2 * i + me));
    if (me == 0) {
      load(&ends[i], (uint64_t)i);
      MPI_Isend(ends[i].at, ends[i].count, ends[i].shape.type, 1, 1, MPI_COMM_WORLD, &requests[i]);
    } else {
      blank(&ends[i]);
      MPI_Irecv(ends[i].at, ends[i].count, ends[i].shape.type, 0, 1, MPI_COMM_WORLD, &requests[i]);
    }
  }
  MPI_Waitall(SIZES, requests, statuses);
  for (int i = 0; i < SIZES; ++i) {
    check_end(&ends[i], (uint64_t)i, sizes[i], "%ld of all sizes", sizes[i]);
    if (me == 1) say_status(&statuses[i], ends[i].shape.type, "%ld of all sizes", sizes[i]);
    free_end(&ends[i]);
  }
}

/* A synchronous send is not over before its receive has started, be the message seen by a probe or not. */
static void synchronous(bool probed) {
  for (int size = 0; size < SIZES; ++size) {
    /* A known difference (docs/guide/mpi.md): a probe takes what may be a descriptor from the host. */
    if (probed && sizes[size] == DESCRIPTOR) continue;
    struct end e = end_with(sizes[size], (enum style)((size + me) % STYLES), (uint64_t)(2000 + 2 * size + me));
    MPI_Request request;
    int flag = 0;
    if (me == 0) {
      load(&e, (uint64_t)size);
      MPI_Issend(e.at, e.count, e.shape.type, 1, 1, MPI_COMM_WORLD, &request);
      for (int i = 0; i < 1000 && !flag; ++i) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      MPI_Send(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
      if (!flag) MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (flag) wrong("a synchronous send of %ld is over before its receive has started", sizes[size]);
    } else {
      blank(&e);
      if (probed) MPI_Probe(0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(e.at, e.count, e.shape.type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check_end(&e, (uint64_t)size, sizes[size], "synchronous, %ld", sizes[size]);
    }
    free_end(&e);
  }
}

/* A receiver that has seen a synchronous send may first want what the same sender has under way. */
static void behind_another(void) {
  for (int size = 0; size < SIZES; ++size) {
    struct end first = end_with(3 * MIB, (enum style)0, 1), e = end_with(sizes[size], (enum style)(size % STYLES), 2);
    if (me == 0) {
      MPI_Request request;
      load(&first, 5);
      load(&e, 6);
      MPI_Isend(first.at, first.count, first.shape.type, 1, 1, MPI_COMM_WORLD, &request);
      MPI_Ssend(e.at, e.count, e.shape.type, 1, 2, MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
      blank(&first);
      blank(&e);
      MPI_Probe(0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(first.at, first.count, first.shape.type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Recv(e.at, e.count, e.shape.type, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      check_end(&first, 5, 3 * MIB, "before a synchronous send");
      check_end(&e, 6, sizes[size], "synchronous, behind another, %ld", sizes[size]);
    }
    free_end(&first);
    free_end(&e);
  }
}

/* The receiver of a synchronous send has begun its receive, and is anywhere in MPI. */
static void in_a_barrier(void) {
  for (int size = 0; size < SIZES; ++size) {
    struct end e = end_with(sizes[size], (enum style)((size + me) % STYLES), 3);
    if (me == 0) {
      load(&e, 7);
      MPI_Ssend(e.at, e.count, e.shape.type, 1, 1, MPI_COMM_WORLD);
      MPI_Barrier(MPI_COMM_WORLD);
    } else {
      MPI_Request request;
      blank(&e);
      MPI_Irecv(e.at, e.count, e.shape.type, 0, 1, MPI_COMM_WORLD, &request);
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      check_end(&e, 7, sizes[size], "synchronous, in a barrier, %ld", sizes[size]);
    }
    free_end(&e);
  }
}

/* A buffered send is over at once, whatever the other does: both send all sizes before they receive any. */
static void buffered(void) {
  struct end out[SIZES];
  int room = 0;
  for (int i = 0; i < SIZES; ++i) {
    int bytes = 0;
    out[i] = end_with(sizes[i], (enum style)((i + me) % STYLES), (uint64_t)(3000 + 2 * i + me));
    load(&out[i], (uint64_t)(i * 2 + me));
    MPI_Pack_size(out[i].count, out[i].shape.type, MPI_COMM_WORLD, &bytes);
    room += bytes + MPI_BSEND_OVERHEAD;
  }
  attached = allocate((size_t)room);
  MPI_Buffer_attach(attached, room);
  for (int i = 0; i < SIZES; ++i) {
    MPI_Bsend(out[i].at, out[i].count, out[i].shape.type, 1 - me, i, MPI_COMM_WORLD);
    free_end(&out[i]);
  }
  for (int i = SIZES - 1; i >= 0; --i) {
    struct end in = end_with(sizes[i], (enum style)((i + me + 1) % STYLES), (uint64_t)(4000 + 2 * i + me));
    blank(&in);
    MPI_Recv(in.at, in.count, in.shape.type, 1 - me, i, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check_end(&in, (uint64_t)(i * 2 + 1 - me), sizes[i], "buffered, %ld", sizes[i]);
    free_end(&in);
  }
  detach();
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  for (int size = 0; size < SIZES; ++size)
    for (int mode = 0; mode < MODES; ++mode) {
      uint64_t seed = (uint64_t)(size * MODES + mode) * 10;
      bool same = mode == REPLACE;
      enum style style = (enum style)((size + mode + (same ? 0 : me * (1 + mode % 3))) % STYLES);
      struct end e = end_with(sizes[size], style, seed + (same ? 0 : (uint64_t)me));
      if (mode < SENDRECV)
        one_way((enum mode)mode, size, &e, seed);
      else
        both_ways((enum mode)mode, size, &e, seed);
      free_end(&e);
    }
  all_at_once();
  synchronous(false);
  synchronous(true);
  behind_another();
  in_a_barrier();
  buffered();
  return finish();
}
