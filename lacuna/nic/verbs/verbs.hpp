// verbs: any RDMA device that rdma-core drives, through libibverbs.
//
//   library.hpp     libibverbs, loaded when a device is asked for and not before
//   device.hpp      one opened device: its port, GID and MTU; what it promises and what it takes
//   context.hpp     memory, regions, completion queues, waiting, events of the device
//   info.cpp        what its devices are, for people
//   queue_pair.hpp  requests into ibv_send_wr and back from ibv_wc; connect.cpp connects
//
//   post_chain ─▶ ibv_send_wr … ibv_send_wr ─▶ one ibv_post_send, one doorbell
//   poll ◀─ ibv_wc, whose wr_id is the request's number within its queue
//
// A connection of which nothing is heard writes nothing to its peer now and then (RDMA WRITE of 0 bytes, which needs no
// key): only so does the passive end of one-sided transfers learn that its peer is gone.
#pragma once

#include "lacuna/nic/devices.hpp"

namespace lacuna::nic::verbs {

/// `device`: as libibverbs names it; empty for the first that has a port which is up. Errors: unsupported (no
/// libibverbs, no device, no port that is up), invalid_argument (no such device; the message lists them), permission,
/// limit (memory that may be locked).
Result<std::unique_ptr<nic::Context>> open(std::string_view device, const OpenOptions& options);

/// All devices, those that cannot be used too. What cannot be asked is not there.
Devices describe();

}  // namespace lacuna::nic::verbs
