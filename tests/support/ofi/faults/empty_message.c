/* Provider shm of libfabric 1.17, without CMA: a message without bytes that asks for its delivery is never answered.
 * Lacuna's way around is Provider::unanswered_when_empty() in lacuna/nic/ofi/provider.hpp. */
#include "endpoint.h"

#include <time.h>

/* The provider may have to do something else first. */
#define POST(provider, call)                                        \
  do {                                                              \
    long did = -FI_EAGAIN;                                          \
    while (did == -FI_EAGAIN) {                                     \
      did = (call);                                                 \
      if (did == -FI_EAGAIN) fi_cq_read((provider).queue, NULL, 0); \
    }                                                               \
    DO(did);                                                        \
  } while (0)

static int completions(struct provider* provider, int wanted) {
  struct fi_cq_data_entry entry;
  int found = 0;
  for (time_t end = time(NULL) + 5; found < wanted && time(NULL) < end;) {
    if (fi_cq_read(provider->queue, &entry, 1) == 1) ++found;
  }
  return found;
}

int main(void) {
  setenv("FI_SHM_DISABLE_CMA", "1", 1);
  struct provider provider = open_provider("shm", FI_WAIT_NONE);
  struct endpoint from = make_endpoint(&provider), to = make_endpoint(&provider);
  fi_addr_t there = 0, back = 0;
  DO(fi_av_insert(from.addresses, to.name, 1, &there, 0, NULL));
  DO(fi_av_insert(to.addresses, from.name, 1, &back, 0, NULL));
  static struct fi_context2 contexts[2];
  struct fi_msg receive = {.addr = FI_ADDR_UNSPEC, .context = &contexts[0]};
  POST(provider, fi_recvmsg(to.ep, &receive, FI_COMPLETION));
  struct fi_msg send = {.addr = there, .context = &contexts[1]};
  POST(provider, fi_sendmsg(from.ep, &send, FI_COMPLETION | FI_DELIVERY_COMPLETE));
  return completions(&provider, 2) == 2 ? SOUND : FAULTY;
}
