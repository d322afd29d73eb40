// Probes. A descriptor is as long as it is, not as the message that it stands for, so a probed message of that length
// is taken from the host. What came before it from the same sender is taken too, unread: then whatever is in the stash
// came before all that the host still has from that sender, and looking into the stash first keeps the order.
#include "lacuna/mpi/messages/messages.hpp"

namespace lacuna::mpi {

Probed* stashed(Job& job, Comm comm, int source, int tag) try {
  CommOf* of = job.comms->find(comm);
  return of == nullptr || of->stash.empty() ? nullptr : of->find(source, tag);
} catch (const std::bad_alloc&) {
  return nullptr;  // one that is not known yet has no stash
}

void look_into(Job& job, Comm comm, const Status& status) {
  CommOf* of = job.comms->find(comm);
  if (of == nullptr) return;
  for (;;) {
    std::list<std::unique_ptr<Probed>> one;  // made before it is taken from the host, so that it is not lost
    const std::unique_ptr<Probed>& probed = one.emplace_back(std::make_unique<Probed>());
    int found = 0;
    if (host().Improbe(status.source, kAnyTag, comm, &found, &probed->message, &probed->status) != kSuccess || found == 0) return;
    probed->size = bytes_of(probed->status);
    const bool it = probed->size == Descriptor::kBytes;
    if (it) {
      if (host().Mrecv(probed->wire.data(), Descriptor::kBytes, host().byte, &probed->message, ignored()) != kSuccess) return;
      probed->received = true;
      probed->descriptor = Descriptor::decode(probed->wire.data(), job.nonce);
      put_bytes(probed->status, probed->bytes());
    }
    const bool last = it && probed->status.tag == status.tag;
    of->stash.splice(of->stash.end(), one);
    if (last) return;
  }
}

}  // namespace lacuna::mpi
