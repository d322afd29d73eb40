/* Provider tcp;ofi_rxm of libfabric 1.17: once an endpoint was closed, fi_trywait() of its completion queue ends in a
 * segmentation fault. Lacuna's way around is Provider::wakes() in lacuna/nic/ofi/provider.hpp. */
#include "endpoint.h"

#include <sys/wait.h>
#include <unistd.h>

static int close_and_look(void) {
  struct provider provider = open_provider("tcp;ofi_rxm", FI_WAIT_FD);
  struct endpoint one = make_endpoint(&provider), other = make_endpoint(&provider);
  struct fid* queue = &provider.queue->fid;
  DO(fi_close(&one.ep->fid));
  fi_trywait(provider.fabric, &queue, 1);
  DO(fi_close(&other.ep->fid));
  fi_trywait(provider.fabric, &queue, 1);
  return SOUND;
}

/* In a child: libfabric may have a handler of its own for the fault. */
int main(void) {
  pid_t child = fork();
  if (child == 0) exit(close_and_look());
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return CANNOT;
  if (WIFEXITED(status) && (WEXITSTATUS(status) == SOUND || WEXITSTATUS(status) == CANNOT)) return WEXITSTATUS(status);
  return FAULTY;
}
