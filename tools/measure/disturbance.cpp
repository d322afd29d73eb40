#include "tools/measure/disturbance.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace lacuna::measure {

std::int64_t preemptions() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

double stolen_ms() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  std::array<double, 8> ticks{};  // user, nice, system, idle, iowait, irq, softirq, steal
  stat >> cpu;
  for (double& value : ticks) stat >> value;
  return stat && cpu == "cpu" ? ticks.back() * 1e3 / static_cast<double>(sysconf(_SC_CLK_TCK)) : 0;
}

}  // namespace lacuna::measure
