/* A program that forks while messages wait: its children exit as in a plain program, though Lacuna has a thread that
 * looks at idle memory, which no child has. */
/* ranks: 2 */
#include <sys/wait.h>

#include "check.h"

enum { TAG = 5, MESSAGES = 8, RUNS = MIB / 64, ENDINGS = 4 };

static const char* const endings[ENDINGS] = {"exit", "_exit", "exec", "memory"};

/* What the child does; never returns. */
static void end_child(int how) {
  watch(); /* of its own: alarms are not inherited */
  if (how == 0) exit(7);
  if (how == 1) _exit(7);
  if (how == 2) execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
  char* much = malloc(16 * MIB);
  if (much == NULL) _exit(3);
  memset(much, how, 16 * MIB);
  int right = much[MIB] == how;
  free(much);
  exit(right ? 7 : 3);
}

static void fork_all(void) {
  for (int how = 0; how < ENDINGS; ++how) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) end_child(how);
    if (child < 0 || waitpid(child, &status, 0) != child) give_up("fork or waitpid");
    say("%s: %s %d", endings[how], WIFEXITED(status) ? "exited" : "ended by signal",
        WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  }
}

int main(int argc, char** argv) {
  begin(&argc, &argv);
  MPI_Datatype block;
  MPI_Request requests[MESSAGES];
  unsigned char* memory = malloc((size_t)MESSAGES * 2 * MIB);
  if (memory == NULL) give_up("no memory");
  MPI_Type_vector(RUNS, 64, 128, MPI_BYTE, &block);
  MPI_Type_commit(&block);
  for (int round = 0; round < 2; ++round) { /* both ranks send, and fork while what they sent waits */
    int sends = me == round;
    for (long i = 0; i < (long)MESSAGES * 2 * MIB; ++i) memory[i] = sends ? (unsigned char)mixed((uint64_t)i) : 0xEE;
    for (int i = 0; i < MESSAGES && sends; ++i)
      MPI_Isend(memory + (size_t)i * 2 * MIB, 1, block, 1 - me, TAG, MPI_COMM_WORLD, &requests[i]);
    if (sends) fork_all();
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < MESSAGES && !sends; ++i)
      MPI_Irecv(memory + (size_t)i * 2 * MIB, 1, block, 1 - me, TAG, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MESSAGES; ++i) MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    long others = 0;
    for (long i = 0; i < (long)MESSAGES * 2 * MIB && !sends; ++i)
      others += memory[i] != (i % 128 < 64 ? (unsigned char)mixed((uint64_t)i) : 0xEE);
    CHECK(others == 0);
    fork_all();
  }
  MPI_Type_free(&block);
  free(memory);
  return finish();
}
