// The model: a NIC in virtual time. The methods run as they are, the bytes really move, and each stage of a transfer is
// charged by the parameters of a profile. So any laptop can ask what a NIC of another machine, or one that does not
// exist, would do.
//
//   simulated process (a stack, which has its turn)                   another one
//     post ─ cpu ─▶ queue ─ doorbell ─▶ NIC                             NIC                    poll ◀─ cpu
//              │ fetch the request                                      ▲ arrivals                  ▲ completion
//              ▼                                                        │                           │
//       send engine: request, entries, keys ──▶ PCIe reads ──▶ wire ──▶ receive engine: entries, keys ──▶ PCIe writes
//        (one packet after another)                                     (one packet after another)
//
// Engines, PCIe, each port of the wire, and each process's CPU are separate resources; each has a time from which on it
// is free. Processes of one node share a NIC. A packet takes them one after the other, so that they overlap as they do
// in hardware, and the slowest sets the pace.
//
//   world      the processes, and the channels by which they find one another
//   schedule   the process, or event, with the smallest virtual time runs; waiting lets others run
//   fiber      stacks, one for each process
//   profile    the parameters, with their origins
//   memory     regions, indirect keys: an sg_list becomes pieces of regions. Pages count from the region's start, never
//              from an address
//   device     one NIC's engines: what a packet costs, stage by stage
//   copies     what pack and unpack cost the CPU
//   context    the seam: every call charges its process's clock
//   queue_pair messages between two queue pairs: requests, arrivals, receives, completions
//   hub        a process's messages with all others, over connections made when they are used
//
// Times are integers (picoseconds) and no random number is drawn: the same program and profile give the same times on
// every machine.
#pragma once

#include "lacuna/nic/world.hpp"

namespace lacuna::nic::model {

Result<std::unique_ptr<nic::World>> simulate(const WorldOptions& options);

}  // namespace lacuna::nic::model
