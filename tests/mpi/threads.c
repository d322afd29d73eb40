/* Several threads of each rank at once: by tags, by communicators, one waiting while another sends, and probes that
 * compete. */
/* ranks: 2 */
#include <pthread.h>
#include <stdatomic.h>

#include "nests.h"

enum { THREADS = 4, ROUNDS = 3, RACES = 24, TAG = 100 };

static const long lengths[] = {DESCRIPTOR, 0, 8 * KIB, 64 * KIB, 513 * KIB, 1, 2 * KIB, DESCRIPTOR};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

/* Threads say nothing: they count what was wrong and add up what came. */
struct task {
  int number;
  MPI_Comm comm;
  int failed;
  long bytes;
};

static pthread_barrier_t together;
static atomic_int handed_out;

static struct end nth_end(int number, int length, int more) {
  return end_with(lengths[length], (enum style)((number + length + more) % STYLES), (uint64_t)(number * 100 + length * 4 + more));
}

static void send_one(struct task* t, int to, int tag, int length, uint64_t seed) {
  struct end e = nth_end(t->number, length, me);
  load(&e, seed);
  MPI_Send(e.at, e.count, e.shape.type, to, tag, t->comm);
  t->failed += !holds(&e, seed, bytes_of(&e));
  free_end(&e);
}

static void receive_one(struct task* t, int from, int tag, int length, uint64_t seed) {
  struct end e = nth_end(t->number, length, me + 2);
  MPI_Status status = soiled();
  int bytes = -1;
  blank(&e);
  MPI_Recv(e.at, e.count, e.shape.type, from, tag, t->comm, &status);
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  t->failed += bytes != lengths[length] || !holds(&e, seed, bytes);
  t->bytes += bytes;
  free_end(&e);
}

static uint64_t seed_of(int rank, int thread, int round, int length) {
  return (uint64_t)(rank * 100000 + thread * 1000 + round * 100 + length);
}

/* Each with the thread of its number, there and back. */
static void own_tags(struct task* t) {
  for (int round = 0; round < ROUNDS; ++round)
    for (int i = 0; i < LENGTHS; ++i) {
      int tag = TAG + t->number;
      if ((round + t->number) % 2 == me) send_one(t, 1 - me, tag, i, seed_of(me, t->number, round, i));
      receive_one(t, 1 - me, tag, i, seed_of(1 - me, t->number, round, i));
      if ((round + t->number) % 2 != me) send_one(t, 1 - me, tag, i, seed_of(me, t->number, round, i));
    }
}

/* Wildcards and probes are safe where nobody else receives. */
static void own_communicator(struct task* t) {
  for (int i = 0; i < LENGTHS; ++i) {
    struct end out = nth_end(t->number, i, me), in = nth_end(t->number, i, me + 2);
    MPI_Request request;
    MPI_Status status = soiled();
    int flag = 0;
    load(&out, seed_of(me, t->number, 9, i));
    blank(&in);
    MPI_Isend(out.at, out.count, out.shape.type, 1 - me, i, t->comm, &request);
    while (t->number % 2 && !flag) MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &flag, &status);
    if (t->number % 2 == 0) MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &status);
    t->failed += status.MPI_TAG != i || status.MPI_SOURCE != 1 - me;
    MPI_Recv(in.at, in.count, in.shape.type, MPI_ANY_SOURCE, MPI_ANY_TAG, t->comm, &status);
    t->failed += status.MPI_TAG != i || !holds(&in, seed_of(1 - me, t->number, 9, i), lengths[i]);
    while (t->number % 3 == 0 && request != MPI_REQUEST_NULL) MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    t->bytes += lengths[i];
    free_end(&out);
    free_end(&in);
  }
}

/* Thread 0 waits for a message that comes only after thread 1 has sent one; and both at once to their own rank. */
static void one_waits(struct task* t) {
  for (int i = 0; i < LENGTHS; ++i) {
    if (me == 0 && t->number == 0) receive_one(t, 1, 1, i, 1);
    if (me == 0 && t->number == 1) send_one(t, 1, 2, i, 2);
    if (me == 1 && t->number == 0) receive_one(t, 0, 2, i, 2);
    if (me == 1 && t->number == 0) send_one(t, 0, 1, i, 1);
    if (t->number == 2) send_one(t, me, 3, i, 3);
    if (t->number == 3) receive_one(t, me, 3, i, 3);
  }
}

/* Every message goes to one thread, whichever that is. */
static void race(struct task* t) {
  for (int i = t->number; me == 0 && i < RACES; i += THREADS) send_one(t, 1, i, i % LENGTHS, (uint64_t)i);
  while (me == 1 && atomic_fetch_add(&handed_out, 1) < RACES) {
    MPI_Message message = MPI_MESSAGE_NULL;
    MPI_Status status = soiled();
    int flag = 0;
    while (t->number % 2 && !flag) MPI_Improbe(0, MPI_ANY_TAG, t->comm, &flag, &message, &status);
    if (t->number % 2 == 0) MPI_Mprobe(0, MPI_ANY_TAG, t->comm, &message, &status);
    int number = status.MPI_TAG, bytes = -1;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    struct end e = nth_end(t->number, number % LENGTHS, 3);
    blank(&e);
    MPI_Mrecv(e.at, e.count, e.shape.type, &message, &status);
    t->failed += bytes != lengths[number % LENGTHS] || status.MPI_TAG != number || !holds(&e, (uint64_t)number, bytes);
    t->bytes += number;
    free_end(&e);
  }
}

/* Threads that all wait for requests of their own. */
static void waitall(struct task* t) {
  struct end ends[2 * LENGTHS];
  MPI_Request requests[2 * LENGTHS];
  for (int i = 0; i < 2 * LENGTHS; ++i) {
    bool sends = i >= LENGTHS;
    int length = i % LENGTHS, tag = TAG + t->number * LENGTHS + length;
    struct end* e = &ends[i];
    *e = nth_end(t->number, length, (sends ? 2 : 0) + me);
    sends ? load(e, seed_of(me, t->number, 5, length)) : blank(e);
    if (sends) MPI_Isend(e->at, e->count, e->shape.type, 1 - me, tag, t->comm, &requests[i]);
    if (!sends) MPI_Irecv(e->at, e->count, e->shape.type, 1 - me, tag, t->comm, &requests[i]);
  }
  MPI_Waitall(2 * LENGTHS, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < 2 * LENGTHS; ++i) {
    t->failed += !holds(&ends[i], seed_of(i < LENGTHS ? 1 - me : me, t->number, 5, i % LENGTHS), bytes_of(&ends[i]));
    free_end(&ends[i]);
  }
}

static MPI_Comm shared;

static void* all_tasks(void* state) {
  struct task* t = state;
  MPI_Comm own = t->comm;
  own_communicator(t);
  pthread_barrier_wait(&together);
  t->comm = shared;
  own_tags(t);
  pthread_barrier_wait(&together);
  one_waits(t);
  pthread_barrier_wait(&together);
  waitall(t);
  pthread_barrier_wait(&together);
  t->comm = own; /* where nobody else receives, one thread's messages to another thread of its number */
  own_communicator(t);
  return NULL;
}

static void* racing(void* state) {
  race(state);
  return NULL;
}

static void run(void* (*what)(void*), struct task* tasks) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; ++i)
    if (pthread_create(&threads[i], NULL, what, &tasks[i]) != 0) give_up("no threads");
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
}

int main(int argc, char** argv) {
  int provided = begin_with_threads(&argc, &argv, MPI_THREAD_MULTIPLE);
  if (provided < MPI_THREAD_MULTIPLE) {
    say("this MPI provides no more than level %d", provided);
    return finish();
  }
  struct task tasks[THREADS];
  pthread_barrier_init(&together, NULL, THREADS);
  MPI_Comm_dup(MPI_COMM_WORLD, &shared);
  for (int i = 0; i < THREADS; ++i) {
    tasks[i] = (struct task){.number = i};
    MPI_Comm_dup(MPI_COMM_WORLD, &tasks[i].comm);
  }
  run(all_tasks, tasks);
  long raced = 0;
  for (int i = 0; i < THREADS; ++i) {
    say("thread %d: %ld bytes", i, tasks[i].bytes);
    if (tasks[i].failed > 0) wrong("thread %d: %d messages", i, tasks[i].failed);
    MPI_Comm_free(&tasks[i].comm);
    tasks[i] = (struct task){.number = i, .comm = shared};
  }
  run(racing, tasks);
  for (int i = 0; i < THREADS; ++i) {
    raced += tasks[i].bytes;
    if (tasks[i].failed > 0) wrong("race, thread %d: %d messages", i, tasks[i].failed);
  }
  say("sum of the tags that were raced for: %ld", raced);
  MPI_Comm_free(&shared);
  return finish();
}
