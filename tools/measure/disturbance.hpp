// What else happens on the machine, as far as it can be seen from inside.
#pragma once

#include <cstdint>

namespace lacuna::measure {

/// How often the kernel took the CPU from this process for another one, since it began (getrusage(2), ru_nivcsw).
[[nodiscard]] std::int64_t preemptions();
/// Milliseconds of all CPUs together that the hypervisor gave to other guests, since boot (proc(5), /proc/stat, steal).
/// 0 where the kernel does not count.
[[nodiscard]] double stolen_ms();

}  // namespace lacuna::measure
