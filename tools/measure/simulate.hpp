// simulate: experiments in virtual time. Each makes a world, runs the methods as they are, and checks what arrived.
#pragma once

#include <string_view>

#include "lacuna/nic/world.hpp"
#include "tools/measure/measure.hpp"

namespace lacuna::measure {

struct Trial {
  Case what;
  const method::Method* method = nullptr;
  method::Notify notify{};
};

/// Of the second transfer: keys are bound, receives posted, staging is there. Times in microseconds of the simulated
/// clock.
struct Simulated {
  double latency_us =
      /// From the sender's start to the data in place, unpacked; if the receiver is not told, to the sender's
      /// completion
      0;
  double cpu_send_us = 0;
  double cpu_recv_us = 0;
  double copy_send_us = 0;
  double copy_recv_us = 0;
  double prepare_us = 0;  ///< of the first: keys, staging, registration of the latter; the longer end
  method::Counters send, receive;
};
/// Errors: those of the method; transfer (a byte is wrong: both transfers are compared with the reference, gaps
/// included).
Result<Simulated> simulate_transfer(const nic::WorldOptions& options, const Trial& trial);

/// Every rank sends its layout to every other, pair by pair; `ranks` is a power of two. Each pair's data is checked.
struct Alltoall {
  double latency_us = 0;  ///< from the first rank's start to the last one's end
  double cpu_us = 0;      ///< of a rank, on average
};
Result<Alltoall> simulate_alltoall(const nic::WorldOptions& options, const Trial& trial);

/// Creating an indirect key of a list, binding it, posting alone, taking it back; registering and deregistering memory.
struct SetUp {
  double create_key_us = 0;
  double bind_us = 0;       ///< to its completion
  double post_bind_us = 0;  ///< of it, the CPU's part
  double register_us = 0;
  double deregister_us = 0;
};
Result<SetUp> simulate_set_up(const nic::WorldOptions& options, int entries, std::int64_t bytes);

}  // namespace lacuna::measure
